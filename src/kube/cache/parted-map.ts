/**
 * A map for hundreds of thousands of keys. A JavaScript `Map` that has grown moves all its keys in one piece, which blocks the
 * event loop for 10 ms at 131,072 keys and for twice that with each further doubling. This one is divided into parts by a
 * hash of the key, so that a part moves a sixteenth, and the parts do so one after the other.
 */
export class PartedMap<K extends string | number, V> {
  /** Has holes: a part is made when it is first needed. */
  readonly #parts: Map<K, V>[] = [];

  get size(): number {
    return this.#all().reduce((size, part) => size + part.size, 0);
  }

  get(key: K): V | undefined {
    return this.#partOf(key).get(key);
  }

  set(key: K, value: V): void {
    this.#partOf(key).set(key, value);
  }

  delete(key: K): boolean {
    return this.#partOf(key).delete(key);
  }

  /** In no particular order. Entries may be added and deleted meanwhile; those that are there all the time come once. */
  *[Symbol.iterator](): Generator<[K, V]> {
    for (let index = 0; index < partCount; index++) yield* this.#parts[index] ?? [];
  }

  /** As the iterator. */
  *keys(): Generator<K> {
    for (let index = 0; index < partCount; index++) yield* this.#parts[index]?.keys() ?? [];
  }

  /** As the iterator. */
  *values(): Generator<V> {
    for (let index = 0; index < partCount; index++) yield* this.#parts[index]?.values() ?? [];
  }

  /** All values now, in no particular order. Faster than to spread `values()`. */
  toArray(): V[] {
    return new Array<V>().concat(...this.#all().map((part) => Array.from(part.values())));
  }

  #all(): Map<K, V>[] {
    return Object.values(this.#parts);
  }

  #partOf(key: K): Map<K, V> {
    const hash: number = typeof key === 'number' ? key : hashOf(key);
    // the upper bits of a product depend on all bits of the hash
    return (this.#parts[Math.imul(hash, golden) >>> shift] ??= new Map());
  }
}

const partBits = 4;
const partCount = 2 ** partBits;
const shift = 32 - partBits;
/** 2^32 divided by the golden ratio: multiplicative hashing, as Knuth describes it. */
const golden = 0x9e3779b1;

/** FNV-1a of the UTF-16 code units. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash;
}
