/** On the objects of caches that are not whole. A symbol, so that copies by spreading carry it and JSON does not. */
const mark = Symbol('reduced');

/**
 * Says of a cached form that parts of the object are missing from it: `KubeClient.update` then refuses it, since a PUT
 * would delete them on the server.
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
