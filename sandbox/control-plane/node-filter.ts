import type { Node, Pod, Toleration } from './objects.ts';
import { matchesNodeSelector } from './selectors.ts';

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
