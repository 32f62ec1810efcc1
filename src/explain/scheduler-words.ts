/** What the scheduler says of a Pod that it cannot place, and what to do about it. */
import type { PersistentVolumeClaim } from '../provision/objects.ts';
import type { ClusterNode, Pod } from './cluster-objects.ts';
import { found, type Reading } from './cluster-reader.ts';
import { barrierOf, isForNode } from './node-labels.ts';
import { lowerFirst } from './texts.ts';

/** Why the scheduler cannot place a Pod; undefined where it has not said so. */
export function refusalOf({ status }: Pod): string | undefined {
  const condition = status?.conditions?.find(({ type }) => type === 'PodScheduled');
  return condition?.status === 'False' ? (condition.message ?? condition.reason ?? '') : undefined;
}

/** Whether the scheduler is to choose a node for the Pod now. */
export function isForScheduler({ spec }: Pod): boolean {
  return (spec?.schedulingGates ?? []).length === 0 && (spec?.nodeName ?? '') === '';
}

/** Of those that use a claim, one that the scheduler refuses; undefined where it makes room for one, or has yet to say something. */
export function refusedPod(pods: readonly Pod[]): Pod | undefined {
  const waiting = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined).filter(isForScheduler);
  const isHopeful = (pod: Pod): boolean => refusalOf(pod) === undefined || (pod.status?.nominatedNodeName ?? '') !== '';
  return waiting.some(isHopeful) ? undefined : waiting[0];
}

/** Refusals by the volumes of a Pod (plugins VolumeBinding, VolumeZone and VolumeRestrictions of the scheduler). */
export const refused = {
  noRoom: /did not have enough free storage/,
  nothingToBind: /didn't find available persistent volumes to bind/,
  /** By a volume that is bound; before Kubernetes 1.35 it had other words. */
  elsewhere:
    /didn't match PersistentVolume's node affinity|had volume node affinity conflict|had no available volume zone/,
  /** Kubernetes 1.32 has other words. */
  usedByOne:
    /ReadWriteOncePod access mode already in-use by another pod|has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod/,
  foreignClaim: /PVC \S+ was not created for pod \S+ \(pod is not owner\)/,
} as const;

/** Whether a claim of the Pod may be the reason. */
export function isAboutVolumes(refusal: string): boolean {
  return /persistent ?volume|\bpvcs?\b|binding volumes|storage ?class|free storage|volume node affinity|volume zone/i.test(
    refusal,
  );
}

/** Whether the scheduler does not place a Pod with this claim until something happens to the claim. */
export function isAwaited(reading: Reading<PersistentVolumeClaim>): boolean {
  const claim = found(reading);
  return claim?.status?.phase !== 'Bound' || claim.metadata.deletionTimestamp !== undefined;
}

/** Whether only one Pod may use a claim. */
export function isForOne({ spec }: PersistentVolumeClaim): boolean {
  return spec.accessModes?.includes('ReadWriteOncePod') === true;
}

/** A running scheduler has said something about a Pod after this time, in milliseconds, unless it waits for a volume. */
export const silentForMs = 2 * 60_000;

const claimTexts = [
  /persistentvolumeclaim "([^"]+)"/i,
  /provisioning failed for PVC "([^"]+)"/,
  /for PVC "([^"]+)"/,
  /PVC "[^"/]+\/([^"]+)"/,
  /claim "[^"/]+\/([^"]+)"/,
];

/** The claim that a refusal names. */
export function claimIn(refusal: string): string | undefined {
  for (const pattern of claimTexts) {
    const name = pattern.exec(refusal)?.[1];
    if (name !== undefined) return name;
  }
  return undefined;
}

const spread = 'topology spread constraints';

interface NodeCure {
  reason: RegExp;
  cure: string;
}

interface CandidateCure extends NodeCure {
  /** On the nodes to which the volume of the Pod is bound. */
  there: string;
}

/** The nodes on which the volume of a Pod can be used. */
export interface VolumePlace {
  /** Such as `topology.kubernetes.io/zone=a`. */
  labels: string;
  /** Whether a node that is added can be one of them. */
  canGrow: boolean;
}

/** Reasons of plugins that the scheduler asks about nodes which the Pod may use: it asks the others first (`getDefaultPlugins`). */
const candidateCures: readonly CandidateCure[] = [
  {
    reason: /Insufficient |Too many pods/,
    cure: 'Free some of that on a node, request less of it in the Pod, or add a node; if a cluster autoscaler is to add it, the events of the Pod say why it does not',
    there: 'Free some of that there, or request less of it in the Pod',
  },
  {
    reason: /exceed max volume count/,
    cure: 'A node takes as many volumes as its driver says (allocatable.count in its CSINode). Add a node, or delete Pods with volumes from one',
    there: 'Delete Pods with volumes there: a node takes as many as its driver says (allocatable.count in its CSINode)',
  },
  {
    reason: /CSI driver is not installed on the node/,
    cure: "Let the driver's node plugin, usually a DaemonSet, run on a node that fits the Pod: kubectl get csinodes",
    there: "Let the driver's node plugin, usually a DaemonSet, run there: kubectl get csinodes",
  },
  {
    reason: new RegExp(spread),
    cure: 'Add a node in another domain, or relax topologySpreadConstraints of the Pod (whenUnsatisfiable: ScheduleAnyway)',
    there: 'Relax topologySpreadConstraints of the Pod (whenUnsatisfiable: ScheduleAnyway)',
  },
  {
    reason: /affinity rules/,
    cure: 'Add a node, or relax podAffinity and podAntiAffinity of the Pods',
    there: 'Relax podAffinity and podAntiAffinity of the Pods, or have the Pods that exclude this one run elsewhere',
  },
  {
    reason: /free ports/,
    cure: 'Add a node, or end the Pod that has the hostPort',
    there: 'End the Pod that has the hostPort there',
  },
  {
    reason: /resource ?claim|device class|allocate all claims/i,
    cure: 'This is not about storage, but about the devices that the Pod asks for: kubectl get resourceclaims,deviceclasses,resourceslices',
    there:
      'This is not about storage, but about the devices that the Pod asks for there: kubectl get resourceclaims,deviceclasses,resourceslices',
  },
];

const otherNode = /node affinity\/selector|match node selector|requested node name/;
const cordoned = 'were unschedulable';
const tainted = 'taint';

const otherNodeCure: NodeCure = {
  reason: otherNode,
  cure: 'Correct nodeSelector or affinity of the Pod, or label a node as they ask: kubectl get nodes --show-labels',
};
const cordonedCure: NodeCure = {
  reason: new RegExp(cordoned),
  cure: 'Let Pods run on a node that is cordoned: kubectl uncordon NODE',
};
/** The last: nodes of the control plane have taints in nearly every cluster. */
const taintedCure = 'Add a toleration to the Pod, or remove the taint from a node: kubectl taint nodes NODE KEY-';

const generalCure = 'Make a node fit the Pod, as the message says';

/**
 * Whether only the nodes show which of the reasons matters: of a node that is cordoned or tainted the others are not asked, and since
 * Kubernetes 1.36 the scheduler does not say which taint it is.
 */
export function needsNodes(refusal: string): boolean {
  if (refusal.includes(tainted)) return true;
  return refusal.includes(cordoned) && (otherNode.test(refusal) || refusal.includes(spread));
}

/** Whether the nodes that the volume of the Pod allows decide on what to do. */
export function needsPlace(refusal: string): boolean {
  return refused.elsewhere.test(refusal) || mostFrequent(candidateCures, nodeReasons(refusal)) !== undefined;
}

/**
 * What to do about the reason that matters: that of a node which the Pod may use, else that for which most nodes are refused. Without a
 * full stop.
 *
 * @param known.nodes - all of the cluster; read where `needsNodes`. With `place`, those that it has.
 */
export function schedulingCure(
  refusal: string,
  { pod, nodes, place }: { pod: Pod; nodes: readonly ClusterNode[] | undefined; place?: VolumePlace },
): string {
  if (refusal.includes('no nodes available')) return 'Add a node: kubectl get nodes';
  const reasons = nodeReasons(refusal);
  const candidate = mostFrequent(candidateCures, reasons);
  const own = place !== undefined || needsNodes(refusal) ? nodes?.filter((node) => isForNode(pod, node)) : undefined;
  const barriers = own?.flatMap((node) => barrierOf(node, pod) ?? []) ?? [];
  const barrier = barriers.find(({ isUsual }) => !isUsual) ?? barriers[0];
  if (candidate !== undefined) {
    const text = place === undefined ? candidate.cure : thereCure(candidate, place);
    const isRemovable = barrier !== undefined && (!barrier.isUsual || refusal.includes(spread));
    return isRemovable ? `${text}. Or: ${lowerFirst(barrier.cure)}` : text;
  }
  if (barrier !== undefined) return barrier.cure;
  if (own?.length === 0) return otherNodeCure.cure;
  const first = mostFrequent([otherNodeCure, cordonedCure], reasons);
  return first?.cure ?? (refusal.includes(tainted) ? taintedCure : generalCure);
}

function thereCure({ there }: CandidateCure, { labels, canGrow }: VolumePlace): string {
  const other = canGrow ? `Or add a node with ${labels}` : 'Another node does not help: the volume is only on these';
  return `${there}. ${other}`;
}

function mostFrequent<Cure extends NodeCure>(
  cures: readonly Cure[],
  reasons: readonly { count: number; text: string }[],
): Cure | undefined {
  const counted = cures.map((cure) => ({
    cure,
    count: reasons.filter(({ text }) => cure.reason.test(text)).reduce((sum, { count }) => sum + count, 0),
  }));
  return counted.filter(({ count }) => count > 0).toSorted((a, b) => b.count - a.count)[0]?.cure;
}

/** As in `0/5 nodes are available: 2 Insufficient cpu, 3 node(s) were unschedulable. preemption: …`. */
function nodeReasons(refusal: string): { count: number; text: string }[] {
  const [, list = refusal] = /nodes are available: (.*?)(?:\. |\.?$)/s.exec(refusal) ?? [];
  return list.split(/, (?=\d+ )/).map((part) => {
    const [, count = '1', text = part] = /^(\d+) (.*)$/s.exec(part) ?? [];
    return { count: Number(count), text };
  });
}
