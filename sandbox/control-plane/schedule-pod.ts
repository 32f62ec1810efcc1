import { planVolumes, type VolumePlan, type VolumePlanContext } from './capacity-index.ts';
import type { Node, Pod, Toleration } from './objects.ts';
import { resolvePodClaims } from './pod-claims.ts';
import { matchesNodeSelector } from './selectors.ts';

/** A node the pod fits, with the way its claims get their volumes there. */
export interface Placement {
  node: Node;
  plan: VolumePlan;
}

/** The nodes a pod fits, in the order given; if there are none, the message for its event and condition. */
type SchedulingDecision = { placements: Placement[] } | { message: string };

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

type Taint = NonNullable<NonNullable<Node['spec']>['taints']>[number];

const unschedulableTaint: Taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };

/**
 * Why the pod cannot run on the node, volumes aside, in the words of the scheduler; `undefined` if it can (Kubernetes,
 * "Assigning Pods to Nodes" and "Taints and Tolerations").
 */
export function whyNodeUnfit(pod: Pod, node: Node): string | undefined {
  const { tolerations = [], nodeSelector = {}, affinity } = pod.spec;
  if (node.spec?.unschedulable === true && !isTolerated(unschedulableTaint, tolerations)) {
    return 'node(s) were unschedulable';
  }
  for (const taint of node.spec?.taints ?? []) {
    if (taint.effect !== 'NoSchedule' && taint.effect !== 'NoExecute') continue;
    if (isTolerated(taint, tolerations)) continue;
    return `node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`;
  }
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const { labels = {} } = node.metadata;
  const selected = Object.entries(nodeSelector).every(([key, value]) => labels[key] === value);
  if (!selected || (required !== undefined && !matchesNodeSelector(required, node))) {
    return "node(s) didn't match Pod's node affinity/selector";
  }
  return undefined;
}

function isTolerated(taint: Taint, tolerations: Toleration[]): boolean {
  return tolerations.some(({ key, operator = 'Equal', value = '', effect }) => {
    if (effect && effect !== taint.effect) return false;
    if (key && key !== taint.key) return false;
    return operator === 'Exists' || (Boolean(key) && value === (taint.value ?? ''));
  });
}
