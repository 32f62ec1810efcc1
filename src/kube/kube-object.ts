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
