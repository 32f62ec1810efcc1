/** Group, version and lower-case plural of a served resource, such as `{ group: '', version: 'v1', plural: 'pods' }`. */
export interface ResourceRef {
  /** Empty for the core group. */
  group: string;
  version: string;
  plural: string;
}

/** Metadata of a stored object (Kubernetes API conventions, "Metadata"). */
export interface SandboxMeta {
  name: string;
  namespace?: string;
  generateName?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  /** RFC 3339, whole seconds. */
  creationTimestamp?: string;
  /** RFC 3339; present once the object is being deleted. */
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: SandboxOwner[];
}

/** One entry of `metadata.ownerReferences`. */
export interface SandboxOwner {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** A Kubernetes object as plain JSON. */
export interface SandboxObject {
  apiVersion?: string;
  kind?: string;
  metadata: SandboxMeta;
  [field: string]: unknown;
}

/** One committed change; `object` is the state after it, for `DELETED` the last state under the RV of the deletion. */
export interface WatchEvent {
  type: 'ADDED' | 'MODIFIED' | 'DELETED';
  object: SandboxObject;
}

/** The name that addresses one object; `namespace` only for namespaced resources. */
export interface SandboxName {
  namespace?: string;
  name: string;
}

/** An open subscription; `close` is safe to repeat, and no call of the handler follows it. */
export interface Subscription {
  close(): void;
}

/**
 * The API as the in-process controllers use it: the validation, admission and store that HTTP clients meet, under a
 * user name of its own, without authorisation. All calls are synchronous. What is handed out is
 * deeply frozen: copy (`structuredClone`) before changing it. What is handed in is copied.
 */
export interface SandboxClient {
  /** The object, or `undefined` if there is none. */
  get(resource: ResourceRef, name: SandboxName): SandboxObject | undefined;
  /** All objects of the resource, of one namespace or of all, ordered by namespace and name. */
  list(resource: ResourceRef, options?: { namespace?: string }): SandboxObject[];
  /** Creates the object and returns it as stored. @throws {StatusError} among others `AlreadyExists`, `Invalid`. */
  create(resource: ResourceRef, object: SandboxObject): SandboxObject;
  /**
   * PUT: replaces all but the status. A `resourceVersion` in the object makes it conditional.
   * @throws {StatusError} among others `Conflict`, `NotFound`, `Invalid`.
   */
  update(resource: ResourceRef, object: SandboxObject): SandboxObject;
  /** PUT on the subresource `status`: keeps the stored spec. @throws {StatusError} as `update`. */
  updateStatus(resource: ResourceRef, object: SandboxObject): SandboxObject;
  /**
   * Deletes, or marks as deleted while finalizers hold the object; `uid` is a precondition. `gracePeriodSeconds`
   * matters for pods only.
   * @throws {StatusError} `NotFound`, `Conflict` for a failed precondition.
   */
  delete(resource: ResourceRef, name: SandboxName, options?: { uid?: string; gracePeriodSeconds?: number }): void;
  /** POST on the subresource `binding`: assigns the pod to the node. @throws {StatusError} `Conflict` if assigned. */
  bindPod(pod: SandboxName, node: string): void;
  /**
   * Drops `spec.finalizers` of a terminating namespace, which removes it (subresource `finalize`).
   * @throws {StatusError} `NotFound`.
   */
  finalizeNamespace(name: string): void;
  /**
   * Records an event in the object's namespace (`default` for cluster-scoped ones). A repeat (same object, type,
   * reason, message and component) raises `count` and `lastTimestamp` of the first one. Never throws a StatusError:
   * an event that cannot be stored is dropped.
   */
  recordEvent(
    about: SandboxObject,
    type: 'Normal' | 'Warning',
    reason: string,
    message: string,
    component: string,
  ): void;
  /** Calls `handler` for every change committed from now on, in order, after the commit and never inside it. */
  subscribe(resource: ResourceRef, handler: (event: WatchEvent) => void): Subscription;
}
