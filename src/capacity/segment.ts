/** Parts of a cluster by the labels of their nodes (CSI spec, "Topology"). */
import type { NodeSelectorTerm } from '../provision/objects.ts';
import type { StorageCapacity } from './storage-capacity.ts';

/** The labels that the nodes of one part have in common. Without labels: the whole cluster. */
export interface Segment {
  /** The same for the same labels, whatever their order; can be read by people. */
  readonly key: string;
  /** By label key, sorted. */
  readonly labels: Readonly<Record<string, string>>;
}

/** The segment of these labels. */
export function segmentOf(labels: Readonly<Record<string, string>>): Segment {
  const sorted = Object.fromEntries(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));
  return { key: JSON.stringify(sorted), labels: Object.freeze(sorted) };
}

/** The segment an object is about; undefined when it is about no node, or says so in other words than we do. */
export function segmentOfObject({ nodeTopology }: StorageCapacity): Segment | undefined {
  if (nodeTopology === undefined || nodeTopology === null) return undefined;
  if ((nodeTopology.matchExpressions ?? []).length > 0) return undefined;
  return segmentOf(nodeTopology.matchLabels ?? {});
}

/** The segment that one term of a volume's node affinity stands for; undefined when it is more or less than one. */
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

/** Where the segments come from that capacity is published for. */
export interface SegmentSource {
  /** Whether the segments are known; it may be that there are none. */
  readonly hasSynced: boolean;
  readonly synced: Promise<void>;
  /** The segments there are now, each once. */
  list(): Iterable<Segment>;
  /** Calls the listener after each change, not on registration; at least one of the lists has an entry. */
  onChange(listener: SegmentListener): Disposable;
  /** Follows the cluster until the signal aborts; resolves then. To be called once. */
  run(signal: AbortSignal): Promise<void>;
}

export type SegmentListener = (change: { added: readonly Segment[]; removed: readonly Segment[] }) => void;
