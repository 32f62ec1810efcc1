/** The objects whose controllers create Pods and claims, and what their templates ask for. */
import type { KubeObject, Resource } from '../kube/kube-object.ts';
import { type Pod, usesClaim } from './cluster-objects.ts';

interface PodTemplate {
  spec?: Pod['spec'];
}

/** A StatefulSet, Deployment, ReplicaSet, Job or CronJob, with the fields that are read of them. */
export interface Workload extends KubeObject {
  spec?: {
    replicas?: number;
    /** Of Jobs and CronJobs. */
    suspend?: boolean;
    selector?: { matchLabels?: Record<string, string> };
    ordinals?: { start?: number };
    podManagementPolicy?: string;
    template?: PodTemplate;
    jobTemplate?: { spec?: { template?: PodTemplate } };
    volumeClaimTemplates?: { metadata: { name: string }; spec?: { storageClassName?: string } }[];
  };
  status?: {
    observedGeneration?: number;
    replicas?: number;
    completionTime?: string;
  };
}

const workload = (group: string, kind: string): Resource => ({
  group,
  version: 'v1',
  kind,
  plural: `${kind.toLowerCase()}s`,
  namespaced: true,
});

export const statefulSets = workload('apps', 'StatefulSet');
export const deployments = workload('apps', 'Deployment');
export const replicaSets = workload('apps', 'ReplicaSet');
export const jobs = workload('batch', 'Job');
export const cronJobs = workload('batch', 'CronJob');

/** Which claim of a StatefulSet a name is: of which template, and for which Pod. */
export interface SetClaim {
  template: string;
  ordinal: number;
  pod: string;
}

/** @returns undefined where no template of the StatefulSet gives a claim this name (Kubernetes page "StatefulSets", "Stable Storage"). */
export function claimOfSet({ metadata, spec }: Workload, claimName: string): SetClaim | undefined {
  for (const { metadata: template } of spec?.volumeClaimTemplates ?? []) {
    const start = `${template.name}-${metadata.name}-`;
    const ordinal = claimName.startsWith(start) ? ordinalOf(claimName.slice(start.length)) : undefined;
    if (ordinal !== undefined) return { template: template.name, ordinal, pod: `${metadata.name}-${ordinal}` };
  }
  return undefined;
}

/** @returns undefined for what is no ordinal as Kubernetes writes it. */
export function ordinalOf(text: string): number | undefined {
  return /^(0|[1-9]\d{0,8})$/.test(text) ? Number(text) : undefined;
}

/** First and last ordinal of a StatefulSet; the last is lower than the first for one without replicas. */
export function ordinalsOf({ spec }: Workload): { first: number; last: number } {
  const first = spec?.ordinals?.start ?? 0;
  return { first, last: first + (spec?.replicas ?? 1) - 1 };
}

/** Whether the Pods, or one of them, would use the claim. Of ephemeral volumes the Pod's name is part of the claim's. */
export function wouldUseClaim(owner: Workload, claimName: string): boolean {
  const { spec } = owner;
  const template = spec?.template ?? spec?.jobTemplate?.spec?.template;
  const pod: Pod = { metadata: { name: '' }, ...(template?.spec && { spec: template.spec }) };
  if (usesClaim(pod, claimName)) return true;
  const claim = claimOfSet(owner, claimName);
  const { first, last } = ordinalsOf(owner);
  return claim !== undefined && claim.ordinal >= first && claim.ordinal <= last;
}

/** Whether it still has Pods to create. @param kind - which items of a list do not have. */
export function wantsPods({ metadata, spec, status = {} }: Workload, kind: string): boolean {
  if (metadata.deletionTimestamp !== undefined || spec?.suspend === true) return false;
  if (kind === 'Job') return status.completionTime === undefined;
  if (kind === 'CronJob') return true;
  return (status.replicas ?? 0) < (spec?.replicas ?? 1);
}
