/** Topology segments of a cluster: sets of labels that nodes share (CSI spec, "Topology"). */
import { compareBytes } from '../base/compare-bytes.ts';
import type { NodeSelectorTerm } from '../provision/objects.ts';
import type { StorageCapacity } from './storage-capacity.ts';

/** The labels that the nodes of a segment have in common. Without labels: the whole cluster. */
export interface Segment {
  /** The same for the same labels, whatever their order; human-readable. */
  readonly key: string;
  /** By label key, sorted. */
  readonly labels: Readonly<Record<string, string>>;
}

/** The segment of these labels. */
export function segmentOf(labels: Readonly<Record<string, string>>): Segment {
  const sorted = Object.fromEntries(Object.entries(labels).sort(([a], [b]) => compareBytes(a, b)));
  return { key: JSON.stringify(sorted), labels: Object.freeze(sorted) };
}

/** The segment of an object; undefined when it selects no node, or its selector has another form than ours. */
export function segmentOfObject({ nodeTopology }: StorageCapacity): Segment | undefined {
  if (nodeTopology === undefined || nodeTopology === null) return undefined;
  if ((nodeTopology.matchExpressions ?? []).length > 0) return undefined;
  return segmentOf(nodeTopology.matchLabels ?? {});
}

/** The segment of one term of a volume's node affinity; undefined when the term is not exactly one segment. */
export function segmentOfTerm({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm): Segment | undefined {
  if (matchFields.length > 0) return undefined;
  const labels: Record<string, string> = {};
  for (const { key, operator, values = [] } of matchExpressions) {
    const [value, ...more] = values;
    if (operator !== 'In' || value === undefined || more.length > 0 || Object.hasOwn(labels, key)) return undefined;
    labels[key] = value;
  }
  return segmentOf(labels);
}

/** The source of the segments that capacity is published for. */
export interface SegmentSource {
  /** Whether the segments are known; there may be none. */
  readonly hasSynced: boolean;
  readonly synced: Promise<void>;
  /** The present segments, each once. */
  list(): Iterable<Segment>;
  /** Calls the listener after each change, not on registration; at least one of the lists has an entry. */
  onChange(listener: SegmentListener): Disposable;
  /** Follows the cluster until the signal aborts; resolves then. To be called once. */
  run(signal: AbortSignal): Promise<void>;
}

export type SegmentListener = (change: { added: readonly Segment[]; removed: readonly Segment[] }) => void;
