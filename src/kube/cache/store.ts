import type { Logger } from '../../base/logger.ts';
import { fnv1a } from '../../base/text-hash.ts';
import { type KubeObject, objectKey } from '../kube-object.ts';

/** Values under which an object is found; an empty list keeps it out of the index. Integers of 32 bits take the least. */
export type IndexFunction<T> = (object: T) => readonly IndexValue[];
type IndexValue = string | number;

/** Called when the object under one key changes, with the old object and the new one; undefined: none. */
export type OnStoreChange<T> = (old: T | undefined, object: T | undefined) => void;

/** The keys under one index value: a single key by itself, several in a Set, since most values have one. */
type IndexEntry = string | Set<string>;

/**
 * Objects by key, with indexes. Everything handed out is shared and read only; with `freeze` a write into it
 * throws, which development and tests use.
 */
export class Store<T extends KubeObject> implements Lister<T> {
  readonly #objects = new PartitionedMap<string, T>();
  readonly #indexes = new Map<string, { of: IndexFunction<T>; entries: PartitionedMap<IndexValue, IndexEntry> }>();
  readonly #logger: Logger;
  readonly #freeze: boolean;
  readonly #onChange: OnStoreChange<T> | undefined;

  constructor(options: {
    indexers?: Record<string, IndexFunction<T>>;
    logger: Logger;
    freeze?: boolean;
    onChange?: OnStoreChange<T> | undefined;
  }) {
    this.#logger = options.logger;
    this.#freeze = options.freeze ?? false;
    this.#onChange = options.onChange;
    for (const [name, of] of Object.entries(options.indexers ?? {})) this.addIndex(name, of);
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  /** In no particular order. Objects may be added and removed during the iteration. */
  list(): Iterable<T> {
    return this.#objects.values();
  }

  /** A snapshot of the objects, in no particular order. */
  toArray(): T[] {
    return this.#objects.toArray();
  }

  keys(): Iterable<string> {
    return this.#objects.keys();
  }

  byIndex(indexName: string, value: IndexValue): T[] {
    const entry = this.#index(indexName).entries.get(value);
    if (entry === undefined) return [];
    const keys = typeof entry === 'string' ? [entry] : entry;
    const found: T[] = [];
    for (const key of keys) {
      const object = this.#objects.get(key);
      if (object !== undefined) found.push(object);
    }
    return found;
  }

  hasIndex(name: string): boolean {
    return this.#indexes.has(name);
  }

  /** Adds an index and fills it from the present objects. @throws {Error} when the name is taken. */
  addIndex(name: string, of: IndexFunction<T>): void {
    if (this.#indexes.has(name)) throw new Error(`the index ${JSON.stringify(name)} exists already`);
    this.#indexes.set(name, { of, entries: new PartitionedMap() });
    for (const [key, object] of this.#objects) this.#link(key, object, name);
  }

  /** Adds the object, or replaces the one with its key, which is returned. */
  set(object: T): T | undefined {
    const [key, hash] = [objectKey(object), objectKeyHash(object)];
    const old = this.#objects.get(key, hash);
    if (old !== undefined) for (const name of this.#indexes.keys()) this.#unlink(key, old, name);
    this.#objects.set(key, this.#freeze ? deepFreeze(object) : object, hash);
    for (const name of this.#indexes.keys()) this.#link(key, object, name);
    this.#onChange?.(old, object);
    return old;
  }

  /** Removes and returns the object. */
  delete(key: string): T | undefined {
    const old = this.#objects.get(key);
    if (old === undefined) return undefined;
    for (const name of this.#indexes.keys()) this.#unlink(key, old, name);
    this.#objects.delete(key);
    this.#onChange?.(old, undefined);
    return old;
  }

  #index(name: string): { of: IndexFunction<T>; entries: PartitionedMap<IndexValue, IndexEntry> } {
    const index = this.#indexes.get(name);
    if (index === undefined) throw new Error(`there is no index ${JSON.stringify(name)}`);
    return index;
  }

  #link(key: string, object: T, name: string): void {
    const { entries } = this.#index(name);
    for (const value of this.#values(object, name)) {
      const entry = entries.get(value);
      if (entry === undefined || entry === key) entries.set(value, key);
      else if (typeof entry === 'string') entries.set(value, new Set([entry, key]));
      else entry.add(key);
    }
  }

  #unlink(key: string, object: T, name: string): void {
    const { entries } = this.#index(name);
    for (const value of this.#values(object, name)) {
      const entry = entries.get(value);
      if (entry === key) entries.delete(value);
      else if (entry instanceof Set) {
        entry.delete(key);
        if (entry.size === 0) entries.delete(value);
      }
    }
  }

  #values(object: T, name: string): readonly IndexValue[] {
    try {
      return this.#index(name).of(object);
    } catch (error) {
      this.#logger.error({ err: error, index: name, object: objectKey(object) }, 'An index function failed');
      return [];
    }
  }
}

/** That of `objectKey(object)`, without reading the characters of the text that it joins. */
function objectKeyHash({ metadata: { namespace, name } }: KubeObject): number {
  return namespace === undefined || namespace === '' ? fnv1a(name) : fnv1a(name, fnv1a('/', fnv1a(namespace)));
}

/** Read access to an informer's cache. Objects are shared and read only; none is ever written back. */
export interface Lister<T> {
  /** The object under `namespace/name` (or `name`), as the cache last saw it. */
  get(key: string): T | undefined;
  /** All objects, in no order. */
  list(): Iterable<T>;
  /** The objects whose index `indexName` holds `value`. Throws when there is no such index. */
  byIndex(indexName: string, value: string | number): T[];
}

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

/** The longest value that is shared, in characters: users could fill the table with longer ones. */
const maxSharedChars = 512;

/**
 * Shares equal values: thousands of cached objects name the same namespaces, classes and drivers, request the
 * same sizes and have the same finalizers. Only for values that repeat; unique ones would only fill the table.
 */
export class SharedValues {
  readonly #strings = new Map<string, string>();
  readonly #values = new Map<string, unknown>();
  readonly #limit: number;

  /** @param limit - max strings, and max values, kept; further ones pass through unshared. Default 10,000. */
  constructor(limit = 10_000) {
    this.#limit = limit;
  }

  /** The shared copy of a string. */
  string<T extends string | undefined>(text: T): T {
    if (text === undefined || text.length > maxSharedChars) return text;
    const known = this.#strings.get(text);
    if (known !== undefined) return known as T;
    if (this.#strings.size < this.#limit) this.#strings.set(text, text);
    return text;
  }

  /** The shared, frozen copy of a small plain value: a list of finalizers, a phase, a size. */
  value<T extends object | undefined>(value: T): T {
    if (value === undefined) return value;
    const key = JSON.stringify(value);
    const known = this.#values.get(key);
    if (known !== undefined) return known as T;
    const copy = deepFreeze(JSON.parse(key) as T);
    if (this.#values.size < this.#limit && key.length <= maxSharedChars) this.#values.set(key, copy);
    return copy;
  }
}

/** Makes a plain value and all its parts unchangeable. */
export function deepFreeze<V>(value: V): V {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) deepFreeze(part);
  }
  return value;
}
