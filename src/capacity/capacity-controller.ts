import { inSlices } from '../base/event-loop.ts';
import { TaskGroup } from '../base/task-group.ts';
import { type Informer, Tombstone } from '../kube/cache/informer.ts';
import { ExponentialLimiter, type RateLimiter } from '../kube/queue/rate-limiter.ts';
import { waitForSync } from '../kube/cache/wait-for-sync.ts';
import { WorkQueue, type WorkQueueMetrics } from '../kube/queue/work-queue.ts';
import type { StorageClass } from '../provision/objects.ts';
import { runWorkers } from '../provision/run-workers.ts';
import { type CapacityItem, CapacityItems } from './capacity-items.ts';
import type { CapacityCounts, CapacityMetrics } from './capacity-metrics.ts';
import { CapacityPublisher, type CapacityPublisherOptions, type PublishSignals } from './capacity-publisher.ts';
import { isManaged } from './desired-object.ts';
import type { Segment, SegmentSource } from './segment.ts';
import type { StorageCapacity } from './storage-capacity.ts';

export interface CapacityControllerOptions extends Omit<CapacityPublisherOptions, 'items' | 'onObsolete'> {
  /** As in `CapacityPublisherOptions`; call `refreshAll` when it is true again. */
  driverConnected?: () => boolean;
  /** All classes; may be shared. The caller that makes the caches runs them. */
  classes: Informer<StorageClass>;
  /** From `capacityInformer`. */
  capacities: Informer<StorageCapacity>;
  segments: SegmentSource;
  /** `--capacity-for-immediate-binding`. */
  forImmediateBinding: boolean;
  /** `--capacity-threads`. */
  workers: number;
  /** Pause between two refreshes of all items, in milliseconds; 0 or less: only when something changes. */
  pollIntervalMs: number;
  /** Back-off of failed items: `--retry-interval-start` and `--retry-interval-max`, in milliseconds. */
  retryStartMs: number;
  retryMaxMs: number;
  /** Of the queue `csistoragecapacity`. */
  queueMetrics?: WorkQueueMetrics | undefined;
  metrics?: CapacityMetrics | undefined;
}

/**
 * Publishes the capacity of the driver: one CSIStorageCapacity for each class in each segment, which the scheduler
 * reads before it chooses a node (Kubernetes, "Storage Capacity"). There is one GetCapacity call per item at a time,
 * and its object is written only when something changed. Nothing happens before `run`.
 */
export class CapacityController {
  readonly #options: CapacityControllerOptions;
  readonly #limiter: RateLimiter;
  readonly #queue: WorkQueue;
  readonly #items = new CapacityItems();
  readonly #publisher: CapacityPublisher;

  constructor(options: CapacityControllerOptions) {
    this.#options = options;
    this.#limiter = new ExponentialLimiter({ baseMs: options.retryStartMs, maxMs: options.retryMaxMs });
    const { clock, queueMetrics: metrics } = options;
    this.#queue = new WorkQueue({ limiter: this.#limiter, clock, metrics });
    this.#publisher = new CapacityPublisher({
      ...options,
      items: this.#items,
      onObsolete: (object) => this.#enqueueDeletion(object),
    });
  }

  /**
   * Works until it is stopped; resolves when the last sync has ended. Waits for its caches first, without a limit. To be
   * called once.
   *
   * @param options.stop - ends the taking of items, and calls to the driver. @param options.abort - ends writes, too.
   */
  async run({ stop, abort }: { stop: AbortSignal; abort: AbortSignal }): Promise<void> {
    const { classes, capacities, segments, workers: count, clock, logger } = this.#options;
    const ended = AbortSignal.any([stop, abort]);
    try {
      await waitForSync({ segments, classes, capacities }, { signal: ended, clock, logger });
    } catch (error) {
      if (ended.aborted) return;
      throw error;
    }
    logger.info({}, 'Starting Capacity Controller');
    using registered = new DisposableStack();
    try {
      await this.#follow(registered, ended);
    } catch (error) {
      if (ended.aborted) return;
      throw error;
    }
    this.#options.metrics?.observe(() => this.counts());
    logger.info({ items: this.#items.size }, 'Started Capacity Controller');
    const sync = (key: string, signal: AbortSignal): Promise<void> => this.#sync(key, { ended, signal });
    const rest = { failureThreshold: 0, timeoutMs: 0, what: 'capacity' };
    const work = new TaskGroup(ended);
    work.start((stop) => this.#poll(stop));
    work.start((stop) => runWorkers({ queue: this.#queue, count, sync, stop, abort, clock, logger, ...rest }));
    await work.ended();
  }

  /** Requeues every item, so that GetCapacity is called again. Before the run nothing happens. */
  refreshAll(): void {
    void inSlices(this.#items.list(), (item) => this.#enqueue(item));
  }

  /** Requeues a class in all segments. Before the run, and for classes that are not ours, nothing happens. */
  refreshClass(className: string): void {
    void inSlices(this.#options.segments.list(), (segment) => this.#enqueueAgain(className, segment));
  }

  /** Requeues a segment for all classes. */
  refreshSegment(segment: Segment): void {
    for (const { metadata } of this.#options.classes.list()) this.#enqueueAgain(metadata.name, segment);
  }

  counts(): CapacityCounts {
    let obsolete = 0;
    for (const object of this.#options.capacities.list())
      if (this.#items.ownerOf(object) === undefined && this.#items.matching(object) === undefined) obsolete += 1;
    return { goal: this.#items.size, current: this.#items.withObject, obsolete };
  }

  /** Items first, then the existing objects: else each of those would count as obsolete. */
  async #follow(registered: DisposableStack, signal: AbortSignal): Promise<void> {
    const { classes, capacities, segments, clock, logger } = this.#options;
    registered.use(
      segments.onChange(({ added, removed }) => {
        for (const storageClass of classes.list()) {
          this.#drop(storageClass, removed);
          this.#serve(storageClass, added);
        }
      }),
    );
    const onClasses = classes.addHandler({
      onAdd: (storageClass) => this.#serve(storageClass, segments.list()),
      onUpdate: (old, storageClass) => {
        this.#serve(storageClass, segments.list());
        const replaced = old.metadata.uid !== storageClass.metadata.uid;
        if (replaced && !this.#isServed(storageClass)) this.#drop(storageClass, segments.list());
      },
      onDelete: (gone) => this.#drop(gone instanceof Tombstone ? gone.object : gone, segments.list()),
    });
    registered.defer(() => onClasses.remove());
    await waitForSync({ classes: onClasses }, { signal, clock, logger });
    const onCapacities = capacities.addHandler({
      onAdd: (object) => this.#onObject(object),
      onUpdate: (old, object) => {
        if (old.metadata.uid !== object.metadata.uid) this.#onDeleted(old);
        this.#onObject(object);
      },
      onDelete: (gone) => this.#onDeleted(gone instanceof Tombstone ? gone.object : gone),
    });
    registered.defer(() => onCapacities.remove());
  }

  #isServed({ provisioner, volumeBindingMode }: StorageClass): boolean {
    const { frame, forImmediateBinding } = this.#options;
    return provisioner === frame.driverName && (forImmediateBinding || volumeBindingMode !== 'Immediate');
  }

  #serve(storageClass: StorageClass, segments: Iterable<Segment>): void {
    if (!this.#isServed(storageClass)) return;
    for (const segment of segments) this.#enqueue(this.#items.ensure(storageClass.metadata.name, segment));
  }

  #drop({ metadata: { name } }: StorageClass, gone: Iterable<Segment>): void {
    for (const segment of gone) {
      const item = this.#items.of(name, segment);
      const object = item && this.#items.drop(item);
      if (object !== undefined) this.#enqueueDeletion(object);
    }
  }

  /** An object was added or changed. Its amounts are compared after the next GetCapacity. */
  #onObject(object: StorageCapacity): void {
    this.#publisher.seen(object);
    if (!isManaged(object, this.#options.frame)) {
      this.#onDeleted(object); // no longer ours: its labels were changed
      return;
    }
    const known = this.#items.ownerOf(object);
    const item = known ?? this.#items.matching(object);
    // of two created at the same time, the one whose watch event comes first is kept: all processes see the events in the same order
    if (item !== undefined && (known !== undefined || !this.#hasSeen(item.object))) this.#items.assign(item, object);
    else this.#enqueueDeletion(object);
  }

  #hasSeen(object: StorageCapacity | undefined): boolean {
    return object !== undefined && !this.#publisher.isUnseen(object);
  }

  #onDeleted(object: StorageCapacity): void {
    this.#publisher.gone(object);
    const item = this.#items.ownerOf(object);
    if (item === undefined) return;
    this.#items.assign(item, undefined);
    this.#enqueue(item);
  }

  #enqueueAgain(className: string, segment: Segment): void {
    const item = this.#items.of(className, segment);
    if (item !== undefined) this.#enqueue(item);
  }

  #enqueue({ key }: CapacityItem): void {
    this.#queue.add(`${itemPrefix}${key}`);
  }

  #enqueueDeletion({ metadata: { name, uid = '' } }: StorageCapacity): void {
    this.#queue.add(`${objectPrefix}${name} ${uid}`);
  }

  async #poll(signal: AbortSignal): Promise<void> {
    const { pollIntervalMs, clock } = this.#options;
    if (pollIntervalMs <= 0) return;
    for (;;) {
      try {
        await clock.sleep(pollIntervalMs, { signal });
      } catch {
        return; // the run ends
      }
      this.refreshAll();
    }
  }

  async #sync(key: string, signals: PublishSignals): Promise<void> {
    try {
      if (key.startsWith(objectPrefix)) {
        const [name = '', uid = ''] = key.slice(objectPrefix.length).split(' ');
        await this.#publisher.delete({ name, uid }, signals.signal);
      } else await this.#publisher.publish(key.slice(itemPrefix.length), signals);
    } catch (error) {
      if (!signals.ended.aborted) throw error; // else the shutdown aborted the call: not a failure
    }
  }
}

/** Keys of the queue: an item, or an object to delete with its name and UID. */
const itemPrefix = 'item ';
const objectPrefix = 'object ';
