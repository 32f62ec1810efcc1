import { fnv1a } from '../../base/text-hash.ts';

const partitionBits = 4;
const partitionCount = 2 ** partitionBits;
const shift = 32 - partitionBits;
/** Of Knuth's multiplicative hashing: a prime near 2^32 divided by the golden ratio. */
const knuthMultiplier = 0x9e3779b1;

/**
 * A map for hundreds of thousands of keys. A growing JavaScript `Map` is rehashed in one piece, which blocks the event loop for 8 ms
 * at 131,072 keys, and about twice as long with each doubling. This map is partitioned by a hash of the key, so that only a
 * sixteenth of the keys is rehashed at a time.
 *
 * Methods take the hash of a text, if it is known: to read the characters of a text that was joined makes it take more memory.
 */
export class PartitionedMap<K extends string | number, V> {
  /** Sparse: a partition is created on first use. */
  readonly #partitions: Map<K, V>[] = [];

  get size(): number {
    return this.#present().reduce((size, partition) => size + partition.size, 0);
  }

  get(key: K, hash = hashOf(key)): V | undefined {
    return this.#partition(hash).get(key);
  }

  set(key: K, value: V, hash = hashOf(key)): void {
    this.#partition(hash).set(key, value);
  }

  delete(key: K, hash = hashOf(key)): boolean {
    return this.#partition(hash).delete(key);
  }

  /**
   * In no particular order. Entries may be added and deleted during the iteration; each entry that is present throughout is visited
   * exactly once.
   */
  *[Symbol.iterator](): Generator<[K, V]> {
    for (let index = 0; index < partitionCount; index++) yield* this.#partitions[index] ?? [];
  }

  /** With the guarantees of the iterator. */
  *keys(): Generator<K> {
    for (let index = 0; index < partitionCount; index++) yield* this.#partitions[index]?.keys() ?? [];
  }

  /** With the guarantees of the iterator. */
  *values(): Generator<V> {
    for (let index = 0; index < partitionCount; index++) yield* this.#partitions[index]?.values() ?? [];
  }

  /** A snapshot of all values, in no particular order. Faster than spreading `values()`. */
  toArray(): V[] {
    return new Array<V>().concat(...this.#present().map((partition) => Array.from(partition.values())));
  }

  #present(): Map<K, V>[] {
    return Object.values(this.#partitions);
  }

  #partition(hash: number): Map<K, V> {
    // the top bits of the product depend on all bits of the hash
    return (this.#partitions[Math.imul(hash, knuthMultiplier) >>> shift] ??= new Map());
  }
}

function hashOf(key: string | number): number {
  return typeof key === 'number' ? key : fnv1a(key);
}
