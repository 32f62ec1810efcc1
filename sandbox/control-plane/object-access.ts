import type {
  SandboxClient,
  SandboxMeta,
  SandboxName,
  SandboxObject,
  Subscription,
  WatchEvent,
} from '../api/client.ts';
import { copyJson } from '../api/json.ts';
import { StatusError } from '../api/status-error.ts';
import type { TypedResource } from './objects.ts';

/** `SandboxClient.get` with the type of the resource; nothing is found of a resource that is not served. */
export function getObject<T extends SandboxObject>(
  client: SandboxClient,
  resource: TypedResource<T>,
  name: SandboxName,
): T | undefined {
  return ifServed(() => client.get(resource, name) as T | undefined, undefined);
}

/** `SandboxClient.list` with the type of the resource; empty for a resource that is not served. */
export function listObjects<T extends SandboxObject>(
  client: SandboxClient,
  resource: TypedResource<T>,
  options?: { namespace?: string },
): T[] {
  return ifServed(() => client.list(resource, options) as T[], []);
}

/** One committed change of an object of type `T`. */
export type TypedEvent<T> = Pick<WatchEvent, 'type'> & { object: T };

/** `SandboxClient.subscribe` with the type of the resource; a resource that is not served never changes. */
export function subscribeTo<T extends SandboxObject>(
  client: SandboxClient,
  resource: TypedResource<T>,
  handler: (event: TypedEvent<T>) => void,
): Subscription {
  return ifServed(() => client.subscribe(resource, handler as (event: WatchEvent) => void), { close: () => undefined });
}

/** Resources can be switched off to test how clients cope; the controllers then do without. */
function ifServed<Result>(read: () => Result, otherwise: Result): Result {
  try {
    return read();
  } catch (error) {
    if (error instanceof StatusError && error.reason === 'NotFound') return otherwise;
    throw error;
  }
}

/**
 * Writes a changed copy of `object`, conditional on its resource version.
 * @returns the object as stored.
 * @throws {StatusError} as `SandboxClient.update`.
 */
export function updateObject<T extends SandboxObject>(
  client: SandboxClient,
  resource: TypedResource<T>,
  object: T,
  change: (copy: T) => void,
): T {
  const copy = copyJson(object);
  change(copy);
  return client.update(resource, copy) as T;
}

/** As `updateObject`, on the subresource `status`. @throws {StatusError} as `SandboxClient.updateStatus`. */
export function updateObjectStatus<T extends SandboxObject>(
  client: SandboxClient,
  resource: TypedResource<T>,
  object: T,
  change: (copy: T) => void,
): T {
  const copy = copyJson(object);
  change(copy);
  return client.updateStatus(resource, copy) as T;
}

/** `namespace/name`, or `name` for cluster-scoped objects: the key of queues and indexes. */
export function keyOf(object: { metadata: Pick<SandboxMeta, 'namespace' | 'name'> }): string {
  const { namespace, name } = object.metadata;
  return namespace ? `${namespace}/${name}` : name;
}

/** The name that a key of `keyOf` stands for. */
export function nameOf(key: string): SandboxName {
  const slash = key.indexOf('/');
  return slash === -1 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** Whether the annotation is present, whatever its value. */
export function hasAnnotation(object: SandboxObject, key: string): boolean {
  return object.metadata.annotations?.[key] !== undefined;
}

/** Sets an annotation in place: only for copies. */
export function setAnnotation(copy: SandboxObject, key: string, value: string): void {
  copy.metadata.annotations = { ...copy.metadata.annotations, [key]: value };
}

/** Removes an annotation in place: only for copies. */
export function removeAnnotation(copy: SandboxObject, key: string): void {
  const kept = Object.entries(copy.metadata.annotations ?? {}).filter(([name]) => name !== key);
  copy.metadata.annotations = Object.fromEntries(kept);
}
