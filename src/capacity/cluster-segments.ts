import { untilAborted } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import { inSlices } from '../base/event-loop.ts';
import type { Logger } from '../base/logger.ts';
import { type NodeInformers, topologyKeysOf } from '../csi/topology/topology-nodes.ts';
import { ExponentialLimiter } from '../kube/queue/rate-limiter.ts';
import { WorkQueue, type WorkQueueMetrics } from '../kube/queue/work-queue.ts';
import { type Segment, segmentOf, type SegmentListener, type SegmentSource } from './segment.ts';

export interface ClusterSegmentsOptions {
  /** The caller that makes the caches runs them; they may be shared. */
  nodes: NodeInformers;
  driverName: string;
  /** Of the queue `csitopology`. */
  queueMetrics?: WorkQueueMetrics | undefined;
  clock: Clock;
  logger: Logger;
}

/** All changes share one key, so that a burst of them leads to one sync. */
const queueKey = 'segments';

/**
 * The segments of a cluster: one for each set of values that nodes with the driver have for the driver's topology keys.
 * Whether a node is ready or schedulable does not matter: its storage exists.
 */
export class ClusterSegments implements SegmentSource {
  readonly #options: ClusterSegmentsOptions;
  readonly #queue: WorkQueue;
  readonly #listeners = new Set<SegmentListener>();
  readonly #synced = Promise.withResolvers<undefined>();
  #hasSynced = false;
  #segments = new Map<string, Segment>();

  constructor(options: ClusterSegmentsOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      limiter: new ExponentialLimiter({ baseMs: 0, maxMs: 0 }), // never used: a sync cannot fail
      clock: options.clock,
      metrics: options.queueMetrics,
    });
  }

  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  list(): Iterable<Segment> {
    return this.#segments.values();
  }

  onChange(listener: SegmentListener): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  async run(signal: AbortSignal): Promise<void> {
    const { nodes, csiNodes } = this.#options.nodes;
    try {
      await untilAborted(Promise.all([nodes.synced, csiNodes.synced]), signal);
    } catch {
      return; // ended before the caches were filled
    }
    const enqueue = (): void => this.#queue.add(queueKey);
    enqueue(); // also where there are no nodes
    const handler = { onAdd: enqueue, onUpdate: enqueue, onDelete: enqueue };
    const registrations = [nodes.addHandler(handler), csiNodes.addHandler(handler)];
    const end = (): void => this.#queue.shutDown();
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    this.#options.logger.info({}, 'Started node topology worker');
    for (let key = await this.#queue.get(); key !== undefined; key = await this.#queue.get()) {
      if (!signal.aborted) await this.#sync();
      this.#queue.done(key);
    }
    for (const registration of registrations) registration.remove();
  }

  async #sync(): Promise<void> {
    const old = this.#segments;
    const now = await this.#read();
    this.#segments = now;
    const added = [...now.values()].filter(({ key }) => !old.has(key));
    const removed = [...old.values()].filter(({ key }) => !now.has(key));
    if (!this.#hasSynced) {
      this.#hasSynced = true;
      this.#synced.resolve(undefined);
    }
    if (added.length === 0 && removed.length === 0) return;
    for (const listener of [...this.#listeners]) listener({ added, removed });
  }

  /** By key. A node that lacks one of the driver's labels is no part of any segment until it has them all. */
  async #read(): Promise<Map<string, Segment>> {
    const { nodes, driverName } = this.#options;
    const segments = new Map<string, Segment>();
    const seen = new Set<string>();
    await inSlices(nodes.csiNodes.list(), (csiNode) => {
      const keys = topologyKeysOf(csiNode, driverName);
      const node = nodes.nodes.get(csiNode.metadata.name);
      if (keys === undefined || node === undefined) return;
      const { labels = {} } = node.metadata;
      // Thousands of nodes are in a few segments: building one per node would dominate the run time.
      const values = keys.map((key) => (Object.hasOwn(labels, key) ? labels[key] : undefined));
      if (values.includes(undefined)) return;
      const text = [...keys, ...values].join('\0');
      if (seen.has(text)) return;
      seen.add(text);
      const segment = segmentOf(Object.fromEntries(keys.map((key, index) => [key, values[index] ?? ''])));
      segments.set(segment.key, segment);
    });
    return segments;
  }
}
