import type { NodeSelectorTerm, PersistentVolume } from '../../provision/objects.ts';
import type { Topology__Output } from '../generated/csi/v1/Topology.ts';

/**
 * Where a volume can be used: one term per topology of the driver's response, in its order, one requirement per segment.
 * Topologies without segments are skipped; a repeated one is kept (CSI spec, `Volume.accessible_topology`).
 */
export function nodeAffinity(topologies: readonly Topology__Output[]): PersistentVolume['spec']['nodeAffinity'] {
  if (topologies.length === 0) return undefined;
  const nodeSelectorTerms: NodeSelectorTerm[] = [];
  for (const { segments = {} } of topologies) {
    const matchExpressions = Object.entries(segments).map(([key, value]) => ({ key, operator: 'In', values: [value] }));
    if (matchExpressions.length > 0) nodeSelectorTerms.push({ matchExpressions });
  }
  return { required: { nodeSelectorTerms } };
}
