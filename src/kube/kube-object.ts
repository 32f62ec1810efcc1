import { shortValue } from '../base/short-value.ts';
/** Metadata of a Kubernetes object in JSON (Kubernetes API conventions, "Metadata"). */
export interface ObjectMeta {
  name: string;
  namespace?: string;
  generateName?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  /** RFC 3339, whole seconds. */
  creationTimestamp?: string | null;
  /** RFC 3339; present once the object is being deleted. */
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
  /** Who set which fields, and when last; caches do not keep it. */
  managedFields?: { manager?: string; time?: string }[];
}

/** A reference to the object that owns this one. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
}

/** Any Kubernetes object: raw JSON, typed by types only, so that unknown fields survive a read and a write. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

/** What an event or a log line needs to refer to an object. */
export interface ObjectReference {
  apiVersion?: string;
  kind?: string;
  namespace?: string;
  name?: string;
  uid?: string;
  resourceVersion?: string;
}

/** A resource of the API: enough to build its paths. */
export interface Resource {
  /** Empty for the core group. */
  group: string;
  version: string;
  /** Lower-case plural as in the path, such as `persistentvolumes`. */
  plural: string;
  kind: string;
  namespaced: boolean;
  /** RBAC verbs that its users need, logged all together when one is missing. Default: the forbidden one. */
  verbs?: readonly string[];
}

/** The name that addresses one object; `namespace` only for namespaced resources. */
export interface ObjectName {
  namespace?: string;
  name: string;
}

/** `namespace/name`, or `name` for cluster-scoped objects: the key of stores and log lines. */
export function objectKey(object: { metadata: { namespace?: string | undefined; name: string } }): string {
  const { namespace, name } = object.metadata;
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
}

/** `apiVersion` of a resource: `v1` or `group/version`. */
export function apiVersion(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

/** On cached objects that lack parts. A symbol, so that copies by spreading carry it and JSON does not. */
const mark = Symbol('reduced');

/**
 * Marks a cached form that lacks parts of the object: `KubeClient.update` then refuses it, since a PUT would delete them on
 * the server.
 *
 * @returns the same object.
 */
export function markReduced<T extends object>(object: T): T {
  return Object.assign(object, { [mark]: true });
}

/** Whether the object, or the one it was copied from by spreading, lacks parts of what the server has. */
export function isReduced(object: object): boolean {
  return mark in object;
}

export interface PathParts {
  namespace?: string | undefined;
  name?: string | undefined;
  subresource?: string | undefined;
  /** The namespace of a namespaced resource must be given (everything but list and watch). */
  required?: boolean;
}

/**
 * The path of a resource or of one object.
 *
 * @throws {TypeError} before anything is sent, when a part cannot be in a path: an empty namespace where
 * one is needed, `.` or `..`, a slash or a percent sign.
 */
export function resourcePath(resource: Resource, parts: PathParts): string {
  const { namespace, name, subresource, required = false } = parts;
  const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  let path = root;
  if (resource.namespaced) {
    if (namespace !== undefined && namespace !== '') path += `/namespaces/${segment(namespace, resource, 'namespace')}`;
    else if (required) throw new TypeError(`${resource.plural}: a namespace is needed, got an empty one`);
  }
  path += `/${resource.plural}`;
  if (name !== undefined) path += `/${segment(name, resource, 'name')}`;
  if (subresource !== undefined) path += `/${segment(subresource, resource, 'subresource')}`;
  return path;
}

function segment(text: string, resource: Resource, what: string): string {
  if (text === '' || text === '.' || text === '..' || /[/%]/.test(text)) {
    throw new TypeError(`${resource.plural}: ${JSON.stringify(shortValue(text))} cannot be a ${what}`);
  }
  return encodeURIComponent(text);
}

/**
 * Whether one version of an object is older than another (Kubernetes API concepts, "Resource versions": numbers that
 * grow). Versions that are no numbers are never older: then nothing is known of their order.
 */
export function isOlderVersion(version: string | undefined, than: string): boolean {
  const isNumber = /^\d+$/;
  return version !== undefined && isNumber.test(version) && isNumber.test(than) && BigInt(version) < BigInt(than);
}

/**
 * The place of a resource version among others: they are numbers, of which a later one is greater. NaN for what is none, such as
 * `0`, which stands for any version.
 */
export function orderOf(version: string | undefined): number {
  const order = /^[1-9]\d*$/.test(version ?? '') ? Number(version) : NaN;
  return Number.isSafeInteger(order) ? order : NaN;
}

/** What objects may be called (Kubernetes page "Object Names and IDs"). */
const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const labelPattern = new RegExp(`^${label}$`);
const subdomainPattern = new RegExp(`^${label}(\\.${label})*$`);

/** RFC 1123 label: what a namespace may be called. */
export function isLabelName(text: string): boolean {
  return text.length <= 63 && labelPattern.test(text);
}

/** RFC 1123 subdomain: what most objects may be called, such as a Secret or a ServiceAccount. */
export function isSubdomainName(text: string): boolean {
  return text.length <= 253 && subdomainPattern.test(text);
}

/** One line, or frame, of a watch (Kubernetes API concepts, "Efficient detection of changes"). */
export interface WatchEvent {
  type: string;
  object: KubeObject & Record<string, unknown>;
}

/** A cause inside a Status (metav1 StatusCause). */
export interface StatusCause {
  reason?: string;
  message?: string;
  field?: string;
}

/** The body of every failed response (Kubernetes API conventions, "Response Status Kind"). */
export interface Status {
  kind?: string;
  apiVersion?: string;
  status?: string;
  message?: string;
  reason?: string;
  code?: number;
  details?: {
    name?: string;
    group?: string;
    kind?: string;
    uid?: string;
    causes?: StatusCause[];
    retryAfterSeconds?: number;
  };
  metadata?: { continue?: string };
}
