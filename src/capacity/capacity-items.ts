import { segmentOfObject, type Segment } from './segment.ts';
import type { StorageCapacity } from './storage-capacity.ts';

/** One class in one segment: exactly one object is to exist for it. */
export interface CapacityItem {
  /** Names the item in the queue and the log. */
  readonly key: string;
  readonly className: string;
  readonly segment: Segment;
  /** Its object as last seen; undefined: none is known. */
  readonly object: StorageCapacity | undefined;
}

/**
 * The items that should have an object, and the object of each. Objects are identified by UID: one that was deleted and
 * recreated is another one. All methods are idempotent.
 */
export class CapacityItems {
  readonly #items = new Map<string, CapacityItem>();
  readonly #byUid = new Map<string, string>();

  get size(): number {
    return this.#items.size;
  }

  /** How many items have an object. */
  get withObject(): number {
    return this.#byUid.size;
  }

  list(): Iterable<CapacityItem> {
    return this.#items.values();
  }

  get(key: string): CapacityItem | undefined {
    return this.#items.get(key);
  }

  /** The item of a class in a segment. */
  of(className: string, segment: Segment): CapacityItem | undefined {
    return this.#items.get(keyOf(className, segment));
  }

  /** Adds the item unless it exists. */
  ensure(className: string, segment: Segment): CapacityItem {
    const key = keyOf(className, segment);
    const item = this.#items.get(key) ?? { key, className, segment, object: undefined };
    this.#items.set(key, item);
    return item;
  }

  /** Removes an item. @returns its object. */
  drop(item: CapacityItem): StorageCapacity | undefined {
    const object = this.#items.get(item.key)?.object;
    this.#items.delete(item.key);
    if (object?.metadata.uid !== undefined) this.#byUid.delete(object.metadata.uid);
    return object;
  }

  /** The item that has this very object. */
  ownerOf({ metadata: { uid = '' } }: StorageCapacity): CapacityItem | undefined {
    const key = this.#byUid.get(uid);
    return key === undefined ? undefined : this.#items.get(key);
  }

  /** The item of an object's class and topology. */
  matching(object: StorageCapacity): CapacityItem | undefined {
    const segment = segmentOfObject(object);
    return segment === undefined ? undefined : this.#items.get(keyOf(object.storageClassName, segment));
  }

  /** Sets the object of the item; undefined: it has none. */
  assign({ key }: CapacityItem, object: StorageCapacity | undefined): void {
    const item = this.#items.get(key);
    if (item === undefined) return;
    if (item.object?.metadata.uid !== undefined) this.#byUid.delete(item.object.metadata.uid);
    this.#items.set(key, { ...item, object });
    if (object?.metadata.uid !== undefined) this.#byUid.set(object.metadata.uid, key);
  }
}

/** Class names have no blanks. */
function keyOf(className: string, segment: Segment): string {
  return `${className} ${segment.key}`;
}
