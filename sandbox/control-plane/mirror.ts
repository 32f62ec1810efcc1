import type { SandboxClient, SandboxObject, Subscription } from '../api/client.ts';
import { keyOf, listObjects, subscribeTo } from './object-access.ts';
import type { TypedResource } from './objects.ts';

/** One change of a mirrored object. */
export interface Change<T> {
  /** The state after the change; for a deletion the last one. */
  object: T;
  /** The state before, if the mirror had one. */
  previous: T | undefined;
  deleted: boolean;
}

/**
 * A resource kept in memory by subscription. It may lag behind the store by one turn of the event loop: what is
 * decided from it must be checked against `SandboxClient.get` before it is written. The objects are the store's own
 * frozen ones, so a mirror costs references only.
 */
export class Mirror<T extends SandboxObject> implements Disposable {
  readonly #client: SandboxClient;
  readonly #resource: TypedResource<T>;
  readonly #objects = new Map<string, T>();
  readonly #listeners: ((change: Change<T>) => void)[] = [];
  #subscription: Subscription | undefined;

  constructor(client: SandboxClient, resource: TypedResource<T>) {
    this.#client = client;
    this.#resource = resource;
  }

  /** Calls `listener` after each change, in the order of registration. To be called before `start`. */
  listen(listener: (change: Change<T>) => void): void {
    this.#listeners.push(listener);
  }

  /** Subscribes and reports every existing object as a change without a previous state. */
  start(): void {
    this.#subscription = subscribeTo(this.#client, this.#resource, ({ type, object }) => {
      this.#apply(object, type === 'DELETED');
    });
    for (const object of listObjects(this.#client, this.#resource)) this.#apply(object, false);
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  values(): Iterable<T> {
    return this.#objects.values();
  }

  [Symbol.dispose](): void {
    this.#subscription?.close();
    this.#objects.clear();
  }

  #apply(object: T, deleted: boolean): void {
    const key = keyOf(object);
    const previous = this.#objects.get(key);
    if (deleted) this.#objects.delete(key);
    else this.#objects.set(key, object);
    for (const listener of this.#listeners) listener({ object, previous, deleted });
  }
}

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
