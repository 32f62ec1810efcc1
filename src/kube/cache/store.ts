import { fnv1a } from '../../base/text-hash.ts';
import type { Logger } from '../../base/logger.ts';
import type { Lister } from './lister.ts';
import { type KubeObject, objectKey } from '../kube-object.ts';
import { PartitionedMap } from './partitioned-map.ts';
import { deepFreeze } from './shared-values.ts';

/** Values under which an object is found; an empty list keeps it out of the index. Integers of 32 bits take the least. */
export type IndexFunction<T> = (object: T) => readonly IndexValue[];
export type IndexValue = string | number;

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
