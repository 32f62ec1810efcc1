import { once } from 'node:events';
import { type Segment, segmentOf, type SegmentListener, type SegmentSource } from './segment.ts';

/** A node's topology, as its driver reports it. */
export interface NodeTopology {
  /** Read each time: a restarted driver may report another topology. */
  labels: () => Readonly<Record<string, string>>;
  /** Calls the listener when the labels may have changed. */
  onChange: (listener: () => void) => Disposable;
}

/** The one segment of a node, in node deployment. Known from the start. */
export class NodeSegment implements SegmentSource {
  readonly hasSynced = true;
  readonly synced = Promise.resolve();
  readonly #topology: NodeTopology;
  readonly #listeners = new Set<SegmentListener>();
  #segment: Segment;

  constructor(topology: NodeTopology) {
    this.#topology = topology;
    this.#segment = segmentOf(topology.labels());
  }

  list(): Iterable<Segment> {
    return [this.#segment];
  }

  onChange(listener: SegmentListener): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  async run(signal: AbortSignal): Promise<void> {
    using _following = this.#topology.onChange(() => this.#update());
    this.#update();
    if (!signal.aborted) await once(signal, 'abort');
  }

  #update(): void {
    const old = this.#segment;
    const now = segmentOf(this.#topology.labels());
    if (now.key === old.key) return;
    this.#segment = now;
    for (const listener of [...this.#listeners]) listener({ added: [now], removed: [old] });
  }
}
