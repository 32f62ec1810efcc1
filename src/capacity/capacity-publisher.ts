import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { CsiCalls } from '../csi/csi-calls.ts';
import { ConflictError, NotFoundError } from '../kube/client/api-error.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import { objectKey } from '../kube/kube-object.ts';
import type { Lister } from '../kube/cache/store.ts';
import type { StorageClass } from '../provision/objects.ts';
import type { CapacityItem, CapacityItems } from './capacity-items.ts';
import type { CurrentOwner } from './current-owner.ts';
import { changeObject, isOwnedBy, newObject, type ObjectFrame } from './desired-object.ts';
import { askCapacity, type DriverCapacity } from './driver-capacity.ts';
import type { StorageCapacity } from './storage-capacity.ts';

export interface CapacityPublisherOptions {
  /** The fields common to all objects, and which objects are ours. */
  frame: ObjectFrame;
  /** Looks the owner up again before it is written. Undefined: `frame.owner` is used as it is. */
  owner?: CurrentOwner | undefined;
  client: KubeClient;
  driver: Pick<CsiCalls, 'getCapacity'>;
  /** While false, GetCapacity is not called; the items are to be published again when it is true. Default: always true. */
  driverConnected?: () => boolean;
  classes: Pick<Lister<StorageClass>, 'get'>;
  capacities: Pick<Lister<StorageCapacity>, 'get'>;
  items: CapacityItems;
  /** An object that we created belongs to no item: it is to be deleted. */
  onObsolete: (object: StorageCapacity) => void;
  clock: Clock;
  logger: Logger;
}

/** When calls are to be abandoned. */
export interface PublishSignals {
  /** Aborts at the start of a shutdown, and with it the calls to the driver. */
  ended: AbortSignal;
  /** Aborts when writes are to be abandoned, too. */
  signal: AbortSignal;
}

/**
 * How long an object we created may take to reach the cache, in milliseconds; after that it counts as deleted before the
 * watch delivered it.
 */
const unseenMs = 30_000;

/**
 * Requests the capacity of an item from the driver, and writes it to the API server. All methods may be repeated; for one item or
 * object they must not run concurrently.
 */
export class CapacityPublisher {
  readonly #options: CapacityPublisherOptions;
  readonly #items: CapacityItems;
  /** Objects that we created and the cache does not show yet, by UID, with the time. */
  readonly #unseen = new Map<string, number>();
  /** UIDs of objects whose foreign owner was logged. */
  readonly #loggedOwners = new Set<string>();

  constructor(options: CapacityPublisherOptions) {
    this.#options = options;
    this.#items = options.items;
  }

  /** The cache shows the object. */
  seen({ metadata: { uid = '' } }: StorageCapacity): void {
    this.#unseen.delete(uid);
  }

  /** Whether this process has created the object and the cache does not show it yet. */
  isUnseen({ metadata: { uid = '' } }: StorageCapacity): boolean {
    return this.#unseen.has(uid);
  }

  /** The object is gone, or no longer ours. */
  gone({ metadata: { uid = '' } }: StorageCapacity): void {
    this.#unseen.delete(uid);
    this.#loggedOwners.delete(uid);
  }

  /** Creates the object of an item, or updates it if something changed. @throws when that must be tried again later. */
  async publish(key: string, { ended, signal }: PublishSignals): Promise<void> {
    const queued = this.#items.get(key);
    const storageClass = queued && this.#options.classes.get(queued.className);
    if (queued === undefined || storageClass === undefined) return;
    if (this.#options.driverConnected?.() === false) return; // else thousands of calls would each fail and be logged
    const capacity = await askCapacity(this.#options.driver, queued, storageClass, ended);
    const item = this.#items.get(key); // as it is now: the call may take a while
    const isSameClass = this.#options.classes.get(queued.className)?.metadata.uid === storageClass.metadata.uid;
    if (item === undefined || !isSameClass) return; // a class that was recreated has queued its item again
    const known = this.#knownObject(item);
    if (known === undefined) await this.#create(item, capacity, signal);
    else await this.#update(item, known, capacity, signal);
  }

  /** Deletes an object that still exists, is still ours, and belongs to no item. */
  async delete({ name, uid }: { name: string; uid: string }, signal: AbortSignal): Promise<void> {
    const { capacities, client, frame } = this.#options;
    const object = capacities.get(objectKey({ metadata: { namespace: frame.namespace, name } }));
    const isUnseen = this.#unseen.has(uid);
    if (object?.metadata.uid !== uid && !isUnseen) return;
    if (object !== undefined && this.#items.ownerOf(object) !== undefined) return;
    try {
      const preconditions = { uid };
      await client.delete(frame.resource, { namespace: frame.namespace, name }, { preconditions, signal });
    } catch (error) {
      // deleted, or replaced by another one of its name
      if (!(error instanceof NotFoundError) && !(error instanceof ConflictError)) throw error;
    }
    this.#unseen.delete(uid);
  }

  #knownObject(item: CapacityItem): StorageCapacity | undefined {
    const { object } = item;
    const createdMs = this.#unseen.get(object?.metadata.uid ?? '');
    if (createdMs === undefined || this.#options.clock.monotonicMs() - createdMs < unseenMs) return object;
    this.#unseen.delete(object?.metadata.uid ?? '');
    this.#items.assign(item, undefined);
    return undefined;
  }

  async #create(item: CapacityItem, capacity: DriverCapacity, signal: AbortSignal): Promise<void> {
    const { client, clock, capacities } = this.#options;
    const frame = await this.#frameFor(undefined, signal);
    // one without an owner would outlive a driver that is being removed
    if (this.#options.owner !== undefined && frame.owner === undefined) throw new NoOwnerError();
    const created = await client
      .create(frame.resource, newObject(frame, item, capacity), { signal })
      .catch((error: unknown) => {
        throw new CapacityWriteError('create', item, error);
      });
    // The cache may have been faster. If not, remember it, so that the next sync does not create a second one.
    if (capacities.get(objectKey(created))?.metadata.uid === created.metadata.uid) return;
    this.#unseen.set(created.metadata.uid ?? '', clock.monotonicMs());
    const now = this.#items.get(item.key);
    if (now?.object === undefined && now !== undefined) this.#items.assign(now, created);
    else this.#options.onObsolete(created);
  }

  async #update(
    item: CapacityItem,
    known: StorageCapacity,
    capacity: DriverCapacity,
    signal: AbortSignal,
  ): Promise<void> {
    const { client } = this.#options;
    const frame = await this.#frameFor(known, signal);
    const { object, foreignOwner } = changeObject(frame, known, capacity);
    if (foreignOwner !== undefined) this.#logOwner(known, foreignOwner);
    if (object === undefined) return;
    const updated = await client.update(frame.resource, object, { signal }).catch((error: unknown) => {
      throw new CapacityWriteError('update', item, error);
    });
    // Only if nothing changed meanwhile: the cache may have a newer version already.
    if (this.#items.get(item.key)?.object === known) this.#items.assign(item, updated);
  }

  /** The frame with the owner that the object already has, else with the current one. */
  async #frameFor(known: StorageCapacity | undefined, signal: AbortSignal): Promise<ObjectFrame> {
    const { frame, owner } = this.#options;
    if (owner === undefined) return frame;
    const has = known !== undefined && owner.last !== undefined && isOwnedBy(known, owner.last);
    return { ...frame, owner: has ? owner.last : await owner.current(signal) };
  }

  #logOwner(object: StorageCapacity, owner: { kind: string; name: string }): void {
    const { uid = '' } = object.metadata;
    if (this.#loggedOwners.has(uid)) return;
    this.#loggedOwners.add(uid);
    this.#options.logger.warn(
      { capacity: objectKey(object), owner: `${owner.kind} ${owner.name}` },
      'A CSIStorageCapacity belongs to another controller, its owner is left as it is',
    );
  }
}

/** An object could not be written. */
class CapacityWriteError extends Error {
  override readonly name = 'CapacityWriteError';

  constructor(verb: 'create' | 'update', item: CapacityItem, cause: unknown) {
    const text = cause instanceof Error ? cause.message : String(cause);
    super(`${verb} CSIStorageCapacity for ${item.key}: ${text}`, { cause });
  }
}

/** To be tried again. */
class NoOwnerError extends Error {
  override readonly name = 'NoOwnerError';

  constructor() {
    super('the owner of CSIStorageCapacity objects does not exist at present');
  }
}
