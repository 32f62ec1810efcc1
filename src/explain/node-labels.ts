/** Labels of nodes against the conditions of volumes and of published capacity. */
import { nameList } from '../base/name-list.ts';
import { shortValue } from '../base/short-value.ts';
import type { KubeObject } from '../kube/kube-object.ts';
import type { NodeSelectorRequirement, PersistentVolume } from '../provision/objects.ts';
import type { ClusterNode, Pod } from './cluster-objects.ts';

export type Labels = Readonly<Record<string, string>>;

/** Names in a message: more are counted. */
export const maxNamed = 8;

/** One condition of a node affinity or of a label selector. An operator that volumes do not have counts as met. */
export function isMet({ key, operator, values = [] }: NodeSelectorRequirement, labels: Labels): boolean {
  const value = labels[key];
  if (operator === 'In') return value !== undefined && values.includes(value);
  if (operator === 'NotIn') return value === undefined || !values.includes(value);
  if (operator === 'Exists') return value !== undefined;
  return operator !== 'DoesNotExist' || value === undefined;
}

/** Labels of a volume that the scheduler compares with those of nodes (its plugin VolumeZone). */
const zoneKeys = ['topology.kubernetes.io/zone', 'topology.kubernetes.io/region'];

/** Where a volume can be used: of several terms one is enough; none means everywhere. */
export function termsOf({ metadata, spec }: PersistentVolume): NodeSelectorRequirement[][] {
  const terms =
    spec.nodeAffinity?.required?.nodeSelectorTerms.map(({ matchExpressions = [] }) => matchExpressions) ?? [];
  const zones = zoneKeys.flatMap((key) => {
    const value = metadata.labels?.[key];
    return value === undefined ? [] : [{ key, operator: 'In', values: value.split('__') }];
  });
  if (terms.length === 0) return zones.length === 0 ? [] : [zones];
  return terms.map((term) => [...term, ...zones.filter(({ key }) => !term.some((each) => each.key === key))]);
}

/** Whether one of the terms fits a node with these labels. */
export function fitsOne(terms: readonly NodeSelectorRequirement[][], labels: Labels = {}): boolean {
  return terms.length === 0 || terms.some((term) => term.every((each) => isMet(each, labels)));
}

/** Whether nodeSelector and required node affinity of a Pod allow a node (plugin NodeAffinity of the scheduler). */
export function isForNode({ spec }: Pod, { metadata }: KubeObject): boolean {
  const { name, labels = {} } = metadata;
  const wanted = Object.entries(spec?.nodeSelector ?? {});
  if (!wanted.every(([key, value]) => labels[key] === value)) return false;
  const terms = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  if (terms.length === 0) return true;
  return terms.some(
    ({ matchExpressions = [], matchFields = [] }) =>
      matchExpressions.every((each) => isMet(each, labels)) &&
      matchFields.every((each) => isMet(each, { 'metadata.name': name })),
  );
}

/** As in `topology.kubernetes.io/zone=a or b, rack=1`. */
export function termText(term: readonly NodeSelectorRequirement[]): string {
  return term
    .map(({ key, operator, values = [] }) =>
      operator === 'In'
        ? `${shortValue(key)}=${values.map((value) => shortValue(value)).join(' or ')}`
        : `${shortValue(key)} ${operator} ${values.map((value) => shortValue(value)).join(', ')}`.trim(),
    )
    .join(', ');
}

/** The values that nodes have of a label. */
export function valuesOn(nodes: readonly ClusterNode[], key: string): string {
  const values = [...new Set(nodes.flatMap(({ metadata }) => metadata.labels?.[key] ?? []))].sort();
  return nameList(
    values.map((value) => shortValue(value)),
    maxNamed,
  );
}

/** Whether the kubelet of a node reports that it is ready. */
export function isReady({ status }: ClusterNode): boolean {
  return status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
}

/** Taints that a controller sets and removes: by hand they are removed too early. */
const ownedTaints: readonly { key: RegExp; cure: (node: string, taint: { key: string; effect: string }) => string }[] =
  [
    {
      key: /cloudprovider\.kubernetes\.io\/uninitialized$/,
      cure: (node, { key }) =>
        `Check that the cloud controller manager runs: it removes the taint ${key} from nodes such as ${node} once it has set them up; until then they lack providerID and zone`,
    },
    {
      key: /^(ToBeDeletedByClusterAutoscaler|DeletionCandidateOfClusterAutoscaler|karpenter\.sh\/disrupt(ed|ion))$/,
      cure: (node) => `The autoscaler is about to remove node ${node}: check its log for whether a new node is coming`,
    },
    {
      key: /^node\.kubernetes\.io\/out-of-service$/,
      cure: (node, { key, effect }) =>
        `Node ${node} was marked as switched off. Once it runs again: kubectl taint nodes ${node} ${key}:${effect}-`,
    },
    {
      key: /^node\.kubernetes\.io\/disk-pressure$/,
      cure: (node) =>
        `Free disk space on node ${node}, used by container images, logs and emptyDir volumes; Kubernetes then removes the taint: kubectl describe node ${node}`,
    },
    {
      key: /^node\.kubernetes\.io\/(memory|pid)-pressure$/,
      cure: (node, { key }) =>
        `Node ${node} runs out of ${key.includes('memory') ? 'memory' : 'process IDs'}: end or move Pods there; Kubernetes then removes the taint: kubectl describe node ${node}`,
    },
    {
      key: /^node\.kubernetes\.io\/(network-unavailable|unreachable|not-ready)$/,
      cure: (node) =>
        `Kubernetes removes the taint once node ${node} is healthy; see why it is not: kubectl describe node ${node}`,
    },
  ];

/** Nodes of the control plane have it in nearly every cluster. */
const controlPlane = /^node-role\.kubernetes\.io\/(control-plane|master)$/;

interface Barrier {
  text: string;
  /** Without a full stop. */
  cure: string;
  /** Whether it is there by design, as on nodes of the control plane: that of another node says more. */
  isUsual: boolean;
}

/** Why no Pod, or not this one, is started on a node; undefined where the node itself shows no reason. */
export function barrierOf(node: ClusterNode, pod: Pod): Barrier | undefined {
  const { name } = node.metadata;
  if (node.spec?.unschedulable === true)
    return { text: 'cordoned', cure: `Let Pods run on it: kubectl uncordon ${name}`, isUsual: false };
  if (!isReady(node)) {
    const reason = node.status?.conditions?.find(({ type }) => type === 'Ready')?.reason ?? '';
    return {
      text: 'not Ready',
      cure: `Start node ${name}, or find out why it is not ready${reason === '' ? '' : ` (${reason})`}: kubectl describe node ${name}`,
      isUsual: false,
    };
  }
  const taint = node.spec?.taints?.find(
    ({ key, effect }) =>
      effect !== 'PreferNoSchedule' && !(pod.spec?.tolerations ?? []).some((each) => (each.key ?? key) === key),
  );
  if (taint === undefined) return undefined;
  const owned = ownedTaints.find(({ key }) => key.test(taint.key));
  const text = `taint ${taint.key}:${taint.effect}`;
  if (owned !== undefined) return { text, cure: owned.cure(name, taint), isUsual: false };
  return {
    text,
    cure: `Add a toleration to the Pod, or remove the taint: kubectl taint nodes ${name} ${taint.key}:${taint.effect}-`,
    isUsual: controlPlane.test(taint.key),
  };
}
