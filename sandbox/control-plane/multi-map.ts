/** Sets of values by key; a key without values takes no memory. */
export class MultiMap<V> {
  readonly #sets = new Map<string, Set<V>>();

  /** The values in the order they came; a live view, so copy it before changing the map. */
  get(key: string): Iterable<V> {
    return this.#sets.get(key) ?? [];
  }

  /** Safe to repeat. */
  add(key: string, value: V): void {
    const set = this.#sets.get(key);
    if (set === undefined) this.#sets.set(key, new Set([value]));
    else set.add(value);
  }

  /** Safe to repeat. */
  delete(key: string, value: V): void {
    const set = this.#sets.get(key);
    set?.delete(value);
    if (set?.size === 0) this.#sets.delete(key);
  }
}
