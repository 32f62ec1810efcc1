/** The controllers whose Pods would use a claim that no Pod uses yet. */
import type { Resource } from '../kube/kube-object.ts';
import type { PersistentVolumeClaim } from '../provision/objects.ts';
import { type ClusterEvent, events } from './cluster-objects.ts';
import { type ClusterReader, found, type Reading } from './cluster-reader.ts';
import {
  failedCreateReason,
  type Needed,
  neededBy,
  readNeeded,
  type RefusedObject,
  refusedPod,
} from './refused-creations.ts';
import {
  claimOfSet,
  cronJobs,
  deployments,
  jobs,
  replicaSets,
  statefulSets,
  wantsPods,
  type Workload,
  wouldUseClaim,
} from './workloads.ts';

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
  { resource: jobs, fieldSelector: 'status.successful=0' }, // the others have ended
  { resource: cronJobs },
];

/** Four lists, which the API server has in its cache; and for up to three controllers that still have Pods to create up to three requests. */
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
