/** The controllers whose Pods would use a claim that no Pod uses yet. */
import type { KubeObject, Resource } from '../kube/kube-object.ts';
import type { PersistentVolumeClaim } from '../provision/objects.ts';
import { type ClusterEvent, events, type Pod, usesClaim } from './cluster-objects.ts';
import { type ClusterReader, found, type Reading } from './cluster-reader.ts';
import {
  failedCreateReason,
  type Needed,
  neededBy,
  readNeeded,
  type RefusedObject,
  refusedPod,
} from './refused-creations.ts';

/** A StatefulSet, Deployment, ReplicaSet, DaemonSet, Job or CronJob, with the fields that are read of them. */
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
    /** Of DaemonSets: on how many nodes they have Pods, and on how many they are to have one. */
    currentNumberScheduled?: number;
    desiredNumberScheduled?: number;
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
export const daemonSets = workload('apps', 'DaemonSet');
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
  if (kind === 'DaemonSet') return (status.currentNumberScheduled ?? 0) < (status.desiredNumberScheduled ?? 0);
  return (status.replicas ?? 0) < (spec?.replicas ?? 1);
}

export interface ClaimOwner {
  /** Items of a list do not have it. */
  kind: string;
  owner: Workload;
  /** A Pod that it cannot create. */
  refused?: RefusedObject | undefined;
  /** What the refusal names. */
  needed?: Needed | undefined;
}

/** Controllers whose events are read at most. */
const maxOwners = 3;
const kinds: readonly { resource: Resource; fieldSelector?: string }[] = [
  { resource: deployments },
  { resource: statefulSets },
  { resource: daemonSets },
  { resource: jobs, fieldSelector: 'status.successful=0' }, // the others have ended
  { resource: cronJobs },
];

/** Five lists, which the API server has in its cache; and for up to three controllers that still have Pods to create up to three requests. */
export async function readOwners(
  { metadata: { namespace = '', name } }: PersistentVolumeClaim,
  reader: ClusterReader,
): Promise<Reading<ClaimOwner[]>> {
  const lists = await Promise.all(
    kinds.map(({ resource, ...options }) =>
      reader.select<Workload>(resource, (each) => isOwner(each, name), { namespace, ...options }),
    ),
  );
  const owners = lists.flatMap((list, index) =>
    (found(list) ?? []).map((owner): ClaimOwner => ({ kind: kinds[index]?.resource.kind ?? '', owner })),
  );
  const hidden = lists.find(({ kind }) => kind === 'unreadable');
  if (owners.length === 0 && hidden?.kind === 'unreadable') return hidden;
  const wanting = owners.filter(({ owner, kind }) => wantsPods(owner, kind)).slice(0, maxOwners);
  const refusals = await Promise.all(wanting.map((each) => readRefusal(each, namespace, reader)));
  const unreadable = refusals.find(({ kind }) => kind === 'unreadable');
  if (unreadable?.kind === 'unreadable') return unreadable;
  return { kind: 'found', value: [...refusals.flatMap((each) => found(each) ?? []), ...owners] };
}

/** Also a StatefulSet that no longer has the ordinal. */
function isOwner(owner: Workload, claimName: string): boolean {
  return wouldUseClaim(owner, claimName) || claimOfSet(owner, claimName) !== undefined;
}

/** Undefined, where it has not recorded that it cannot create a Pod. */
async function readRefusal(
  { kind, owner }: ClaimOwner,
  namespace: string,
  reader: ClusterReader,
): Promise<Reading<ClaimOwner | undefined>> {
  const creator =
    kind === deployments.kind
      ? await readReplicaSet(owner, namespace, reader)
      : ({ kind: 'found', value: owner } as const);
  if (creator?.kind !== 'found') return creator?.kind === 'unreadable' ? creator : { kind: 'found', value: undefined };
  const { uid = '', name } = creator.value.metadata;
  const fieldSelector = `involvedObject.uid=${uid},reason=${failedCreateReason}`;
  const recorded = await reader.list<ClusterEvent>(events, { namespace, fieldSelector });
  if (recorded.kind !== 'found') return recorded;
  const creatorKind = kind === deployments.kind ? replicaSets.kind : kind;
  const refused = refusedPod(recorded.value, { kind: creatorKind, name });
  if (refused === undefined) return { kind: 'found', value: undefined };
  const needed = neededBy(refused.refusal.text, namespace);
  return { kind: 'found', value: { kind, owner, refused, needed: needed && (await readNeeded(needed, reader)) } };
}

/** The one that creates the Pods of a Deployment now. */
async function readReplicaSet(
  { metadata: { uid }, spec }: Workload,
  namespace: string,
  reader: ClusterReader,
): Promise<Reading<Workload> | undefined> {
  const labels = Object.entries(spec?.selector?.matchLabels ?? {});
  const list = await reader.list<Workload>(replicaSets, {
    namespace,
    labelSelector: labels.map(([key, value]) => `${key}=${value}`).join(','),
  });
  if (list.kind !== 'found') return list;
  const own = list.value.find(
    (each) => wantsPods(each, replicaSets.kind) && each.metadata.ownerReferences?.some((owner) => owner.uid === uid),
  );
  return own && { kind: 'found', value: own };
}

interface PodTemplate {
  spec?: Pod['spec'];
}
