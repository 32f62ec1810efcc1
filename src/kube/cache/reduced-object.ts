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
