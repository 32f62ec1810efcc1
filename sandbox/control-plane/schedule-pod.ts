import { whyNodeUnfit } from './node-filter.ts';
import type { Node, Pod } from './objects.ts';
import { resolvePodClaims } from './pod-claims.ts';
import { planVolumes, type VolumePlan, type VolumePlanContext } from './volume-plan.ts';

/** A node the pod fits, with the way its claims get their volumes there. */
export interface Placement {
  node: Node;
  plan: VolumePlan;
}

/** The nodes a pod fits, in the order given; if there are none, the message for its event and condition. */
export type SchedulingDecision = { placements: Placement[] } | { message: string };

/** Decides where the pod may go. Writes nothing. */
export function schedulePod(context: VolumePlanContext, pod: Pod, nodes: readonly Node[]): SchedulingDecision {
  if (nodes.length === 0) return { message: 'no nodes available to schedule pods' };
  const claims = resolvePodClaims(context.client, pod);
  if ('why' in claims) return { message: unschedulable(nodes.length, claims.why) };
  const placements: Placement[] = [];
  const counts = new Map<string, number>();
  for (const node of nodes) {
    const why = whyNodeUnfit(pod, node);
    const plan = why === undefined ? planVolumes(context, claims, node) : { reasons: [why] };
    if (!('reasons' in plan)) placements.push({ node, plan });
    else for (const reason of plan.reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  if (placements.length > 0) return { placements };
  const reasons = [...counts].map(([reason, count]) => `${count} ${reason}`).sort();
  return { message: unschedulable(nodes.length, reasons.join(', ')) };
}

function unschedulable(nodeCount: number, why: string): string {
  const where = `0/${nodeCount} nodes are available`;
  return `${where}: ${why}. preemption: ${where}: ${nodeCount} Preemption is not helpful for scheduling.`;
}
