/** Why a claim does not exist: what was refused, who would create it, and what somebody may have meant. */
import { nameList } from '../base/name-list.ts';
import { nearestName } from '../base/near-name.ts';
import type { KubeObject } from '../kube/kube-object.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims, persistentVolumes } from '../provision/objects.ts';
import { refusalHolding } from './causes/refusal.ts';
import { claimOfSet, ordinalsOf, type SetClaim, statefulSets, type Workload } from './claim-owners.ts';
import { type ClusterEvent, events, type Namespace, namespaces, type Pod, pods, usesClaim } from './cluster-objects.ts';
import { type ClusterReader, found, type Reading } from './cluster-reader.ts';
import type { CheckedStep, Finding, Holding } from './explanation.ts';
import {
  failedBindingReason,
  failedCreateReason,
  type Needed,
  neededBy,
  readNeeded,
  refusedClaim,
  type RefusedObject,
  refusedPod,
} from './refused-creations.ts';
import { durationText, withCommand } from './texts.ts';

export interface AbsentFacts {
  /** The time of the API server, in milliseconds since the epoch. */
  nowMs: number;
  namespace: string;
  /** Of the claim. */
  name: string;
  /** `missing`, or why it could not be read. */
  claim: Reading<PersistentVolumeClaim>;
  /** Absent, as all that follows, where the claim could not be read. */
  space?: Reading<Namespace> | undefined;
  /** Names, where there is no such namespace. */
  spaces?: Reading<string[]> | undefined;
  /** With which controllers of the namespace record that they cannot create something. */
  refusals?: Reading<ClusterEvent[]> | undefined;
  /** Of the namespace. */
  sets?: Reading<Workload[]> | undefined;
  /** Those that use the claim, or have its name, or belong to a StatefulSet that is part of its name. */
  pods?: Reading<Pod[]> | undefined;
  /** About Pods with an ephemeral volume whose claim this would be. */
  podEvents?: Reading<ClusterEvent[]> | undefined;
  /** Names of the claims of the namespace. */
  claims?: Reading<string[]> | undefined;
  /** Namespaces with a claim of the name. */
  elsewhere?: Reading<string[]> | undefined;
  /** A PersistentVolume of the name. */
  volume?: Reading<KubeObject> | undefined;
  /** What the refusal names. */
  needed?: Needed | undefined;
}

/** The Pod that a StatefulSet has to have ready before it creates the one that would use the claim. */
export interface PodBefore {
  set: Workload;
  pod: Pod;
  /** Names of its claims. */
  claims: string[];
}

/** A controller creates what is new within this time, in milliseconds. */
const createdWithinMs = 60_000;
/** A Pod that is not ready by then is not about to be, in milliseconds. */
const readyWithinMs = 10 * 60_000;
const maxNamed = 5;
/** A name that more namespaces use, such as `data`, says nothing about what was meant. */
const maxElsewhere = 3;

/** At most ten requests, and one for each further 2,000 Pods and claims of the namespace. */
export async function readAbsentFacts(
  { namespace, name }: { namespace: string; name: string },
  claim: Reading<PersistentVolumeClaim>,
  { reader, now }: { reader: ClusterReader; now: () => number },
): Promise<AbsentFacts> {
  const object = { nowMs: now(), namespace, name, claim };
  if (claim.kind === 'unreadable') return object;
  const [space, refusals, sets, using, claims, elsewhere, volume] = await Promise.all([
    reader.get<Namespace>(namespaces, { name: namespace }),
    reader.list<ClusterEvent>(events, { namespace, fieldSelector: `reason=${failedCreateReason}` }),
    reader.list<Workload>(statefulSets, { namespace }),
    reader.select<Pod>(pods, (pod) => concerns(pod, name), { namespace }),
    reader.pick<KubeObject, string>(persistentVolumeClaims, ({ metadata }) => metadata.name, { namespace }),
    reader.pick<KubeObject, string>(persistentVolumeClaims, ({ metadata }) => metadata.namespace, {
      fieldSelector: `metadata.name=${name}`,
    }),
    reader.exists(persistentVolumes, { name }),
  ]);
  const facts = { ...object, space, refusals, sets, pods: using, claims, elsewhere, volume };
  const [spaces, podEvents] = await Promise.all([
    space.kind === 'missing' ? reader.pick<KubeObject, string>(namespaces, ({ metadata }) => metadata.name) : undefined,
    readPodEvents(facts, reader),
  ]);
  const all = { ...facts, spaces, podEvents, nowMs: now() };
  const refused = refusalOf(all);
  const needed = refused && neededBy(refused.refusal.text, namespace);
  return { ...all, needed: needed && (await readNeeded(needed, reader)) };
}

/** Whether a Pod may be about a claim of the name. */
function concerns(pod: Pod, claimName: string): boolean {
  const { name } = pod.metadata;
  const [, setName] = /^(.+)-\d+$/.exec(name) ?? [];
  return (
    usesClaim(pod, claimName) || name === claimName || (setName !== undefined && claimName.includes(`-${setName}-`))
  );
}

async function readPodEvents(facts: AbsentFacts, reader: ClusterReader): Promise<Reading<ClusterEvent[]> | undefined> {
  const { namespace, name } = facts;
  const [pod] = usersOf(facts).filter((each) => hasEphemeral(each, name));
  if (pod === undefined) return undefined;
  const fieldSelector = `involvedObject.uid=${pod.metadata.uid ?? ''},reason=${failedBindingReason}`;
  return await reader.list<ClusterEvent>(events, { namespace, fieldSelector });
}

export const absentSteps: readonly CheckedStep<AbsentFacts>[] = [
  { step: 'claim', checks: [claimUnread] },
  { step: 'namespace', checks: [checkNamespace] },
  { step: 'owner', checks: [checkSet, checkRefused, checkUsers, ownersUnread] },
  { step: 'name', checks: [checkNames] },
];

function claimUnread({ claim }: AbsentFacts): Finding {
  return claim.kind === 'unreadable'
    ? { state: 'unknown', detail: claim.why, ends: true }
    : { state: 'unknown', detail: 'it does not exist' };
}

function checkNamespace({ space, spaces, namespace, name, nowMs }: AbsentFacts): Finding | undefined {
  if (space?.kind === 'missing') {
    const near = nearestName(namespace, found(spaces) ?? []);
    const message = `There is no namespace ${namespace}, and so no claim ${namespace}/${name}.`;
    return near === undefined
      ? { ...absent, message, cure: 'List the namespaces: kubectl get namespaces' }
      : { ...absent, message: `${message} The cluster has a namespace ${near}.`, cure: whyOf(`${near}/${name}`) };
  }
  const { metadata, status } = found(space) ?? {};
  if (metadata?.deletionTimestamp === undefined) return undefined;
  const ms = nowMs - Date.parse(metadata.deletionTimestamp);
  const held = (status?.conditions ?? []).flatMap((each) =>
    each.status === 'True' ? [each.message ?? each.type] : [],
  );
  return {
    state: 'stuck',
    cause: 'not-found',
    message: `There is no claim ${namespace}/${name}, and none can be created: the namespace has been deleted ${durationText(ms)} ago and is still there.${held.length === 0 ? '' : ` It is held: ${held.join(' ')}`}`,
    cure: withCommand('Free what holds it, or wait until it is gone; then create the namespace and the claim again', [
      ...['kubectl', 'get', 'namespace', namespace, '-o', 'yaml'],
    ]),
  };
}

const absent = { state: 'unknown', cause: 'not-found' } as const;

/** A StatefulSet whose claim this would be. */
function checkSet(facts: AbsentFacts): Finding | undefined {
  const { namespace, name, nowMs, refusals } = facts;
  const { set, claim } = setOf(facts) ?? {};
  if (set === undefined || claim === undefined) return undefined;
  const setName = set.metadata.name;
  const owner = { kind: 'StatefulSet', name: setName };
  const { first, last } = ordinalsOf(set);
  const there = `There is no claim ${namespace}/${name}`;
  if (claim.ordinal < first || claim.ordinal > last) {
    const names = `${claim.template}-${setName}-`;
    const has = last < first ? 'has no replicas' : `creates claims ${names}${first} to ${names}${last}`;
    const scaled = [
      'kubectl',
      'scale',
      `statefulset/${setName}`,
      '-n',
      namespace,
      `--replicas=${claim.ordinal - first + 1}`,
    ];
    return {
      ...absent,
      message: `${there}: StatefulSet ${setName} ${has}.`,
      cure: claim.ordinal < first ? listCure(namespace) : withCommand('If it is to be created', scaled),
    };
  }
  const own = refusedClaim(found(refusals) ?? [], name);
  if (own !== undefined) return refused(own, 'claim', facts);
  const before = refusedPod(found(refusals) ?? [], owner);
  if (before !== undefined && !isThere(before.pod, facts)) return refused(before, 'pod', facts);
  if (refusals?.kind === 'unreadable') return { state: 'unknown', detail: refusals.why };
  if (isThere(claim.pod, facts)) {
    return {
      state: 'stuck',
      cause: 'not-found',
      message: `${there}: Pod ${claim.pod} of StatefulSet ${setName} uses it, so it has been deleted since.`,
      cure: withCommand('Delete the Pod: the StatefulSet creates both again', [
        ...['kubectl', 'delete', 'pod', claim.pod, '-n', namespace],
      ]),
    };
  }
  const podBefore = notReadyBefore(facts);
  if (podBefore !== undefined) {
    const { metadata } = podBefore.pod;
    const ageMs = nowMs - Date.parse(metadata.creationTimestamp ?? '');
    return {
      state: ageMs < readyWithinMs ? 'waiting' : 'stuck',
      cause: 'not-found',
      message: `${there}: StatefulSet ${setName} creates it once Pod ${metadata.name} is ready, which it is not ${durationText(ageMs)} after it was created.`,
      cure: withCommand(`See why Pod ${metadata.name} is not ready`, [
        'kubectl',
        'describe',
        'pod',
        metadata.name,
        '-n',
        namespace,
      ]),
      next: podBefore.claims.map((claimName) => ({
        namespace,
        name: claimName,
        way: `${there}: StatefulSet ${setName} creates it once Pod ${metadata.name} is ready, which needs claim ${claimName}`,
      })),
    };
  }
  const ageMs = nowMs - Date.parse(set.metadata.creationTimestamp ?? '');
  return {
    state: ageMs < createdWithinMs ? 'waiting' : 'stuck',
    cause: 'not-found',
    message: `${there}: StatefulSet ${setName} is to create it, and has not recorded why it does not.`,
    cure:
      ageMs < createdWithinMs
        ? 'Nothing yet: kube-controller-manager creates it in a moment'
        : withCommand('Check that kube-controller-manager runs, and what the StatefulSet says', [
            ...['kubectl', 'describe', `statefulset/${setName}`, '-n', namespace],
          ]),
  };
}

/** Somebody else's claim: of an ephemeral volume, or of a controller that is not part of Kubernetes. */
function checkRefused(facts: AbsentFacts): Finding | undefined {
  const { refusals, podEvents, sets, name } = facts;
  const own = refusedClaim([...(found(refusals) ?? []), ...(found(podEvents) ?? [])], name);
  if (own === undefined) return undefined;
  const isGone = own.owner.kind === 'StatefulSet' && sets?.kind === 'found'; // else `checkSet` has found it
  return isGone ? undefined : refused(own, own.owner.kind === 'Pod' ? 'ephemeral' : 'claim', facts);
}

/** Pods wait for a claim that nobody has created. */
function checkUsers(facts: AbsentFacts): Finding | undefined {
  const { namespace, name, nowMs, claims } = facts;
  const users = usersOf(facts);
  const [pod] = users;
  if (pod === undefined) return undefined;
  const there = `There is no claim ${namespace}/${name}`;
  const names = nameList(
    users.map(({ metadata }) => metadata.name),
    maxNamed,
  );
  const ageMs = nowMs - Date.parse(pod.metadata.creationTimestamp ?? '');
  if (hasEphemeral(pod, name)) {
    const isNew = ageMs < createdWithinMs;
    return {
      state: isNew ? 'waiting' : 'stuck',
      cause: 'not-found',
      message: `${there}: it is that of an ephemeral volume of Pod ${names}, and kube-controller-manager has not created it.`,
      cure: isNew
        ? 'Nothing yet: it is created in a moment'
        : 'Check that kube-controller-manager runs and that its log is free of errors',
    };
  }
  const near = similarName(name, found(claims) ?? []);
  return {
    state: 'stuck',
    cause: 'not-found',
    message: `${there}: Pod ${names} uses it, and nobody has created it.${near === undefined ? '' : ` Claim ${near} exists: claimName of the Pod may be misspelt.`}`,
    cure:
      near === undefined
        ? 'Create the claim, or correct claimName in the template of the Pod'
        : `Correct claimName in the template of the Pod to ${near}, or create the claim`,
  };
}

/** What hides a controller that was refused; nothing else has explained it. */
function ownersUnread({ refusals, sets, pods: using }: AbsentFacts): Finding | undefined {
  const hidden = [refusals, sets, using].flatMap((reading) => (reading?.kind === 'unreadable' ? [reading.why] : []));
  return hidden.length === 0 ? undefined : { state: 'unknown', detail: hidden.join('; ') };
}

/** What somebody may have meant. */
function checkNames(facts: AbsentFacts): Holding {
  const { namespace, name, volume, elsewhere, claims, sets } = facts;
  const message = `There is no claim ${namespace}/${name}.`;
  if (volume?.kind === 'found') {
    return { ...absent, message: `${message} PersistentVolume ${name} exists.`, cure: whyOf(`pv/${name}`) };
  }
  const others = found(elsewhere) ?? [];
  if (others[0] !== undefined && others.length <= maxElsewhere) {
    return {
      ...absent,
      message: `${message} There is one of this name in namespace ${others.join(', ')}.`,
      cure: whyOf(`${others[0]}/${name}`),
    };
  }
  const ofPod = claimsOf((found(facts.pods) ?? []).find(({ metadata }) => metadata.name === name));
  if (ofPod[0] !== undefined) {
    return {
      ...absent,
      message: `${message} It is the name of a Pod, which uses ${nameList(ofPod, maxNamed)}.`,
      cure: whyOf(`${namespace}/${ofPod[0]}`),
    };
  }
  const ofSets = (found(sets) ?? []).flatMap(claimNames);
  const near = similarName(name, [...(found(claims) ?? []), ...ofSets]);
  if (near !== undefined) {
    return { ...absent, message: `${message} ${near} has a similar name.`, cure: whyOf(`${namespace}/${near}`) };
  }
  return { ...absent, message, cure: listCure(namespace) };
}

/** The claims that a StatefulSet creates for its first Pod, also where it has none now. */
function claimNames(set: Workload): string[] {
  const { first } = ordinalsOf(set);
  return (set.spec?.volumeClaimTemplates ?? []).map(({ metadata }) => `${metadata.name}-${set.metadata.name}-${first}`);
}

/** Names that differ in a number alone are not misspelt. */
function similarName(name: string, others: readonly string[]): string | undefined {
  const letters = (text: string): string => text.replaceAll(/\d+/g, '0');
  return nearestName(
    name,
    others.filter((other) => letters(other) !== letters(name)),
  );
}

function whyOf(object: string): string {
  return withCommand('Run it for that one', ['csi-provisioner', 'why', object]);
}

function listCure(namespace: string): string {
  return withCommand('List the claims', ['kubectl', 'get', 'pvc', '--namespace', namespace]);
}

function refused(object: RefusedObject, what: 'claim' | 'ephemeral' | 'pod', facts: AbsentFacts): Holding {
  const { namespace, name, nowMs, needed } = facts;
  const created = what === 'pod' ? `Pod ${object.pod ?? ''}, and no claim ${name} before that` : `claim ${name}`;
  return refusalHolding(object, { created, what, namespace, nowMs, needed });
}

/** What was refused, for which a further object may have to be read. */
function refusalOf(facts: AbsentFacts): RefusedObject | undefined {
  const recorded = [...(found(facts.refusals) ?? []), ...(found(facts.podEvents) ?? [])];
  const { set } = setOf(facts) ?? {};
  return (
    refusedClaim(recorded, facts.name) ??
    (set && refusedPod(recorded, { kind: 'StatefulSet', name: set.metadata.name }))
  );
}

function setOf({ sets, name }: AbsentFacts): { set: Workload; claim: SetClaim } | undefined {
  for (const set of found(sets) ?? []) {
    const claim = claimOfSet(set, name);
    if (claim !== undefined) return { set, claim };
  }
  return undefined;
}

/** A StatefulSet creates its Pods, and their claims, in the order of their ordinals (Kubernetes page "StatefulSets", "Deployment and Scaling Guarantees"). */
export function notReadyBefore(facts: AbsentFacts): PodBefore | undefined {
  const { set, claim } = setOf(facts) ?? {};
  if (set === undefined || claim === undefined || set.spec?.podManagementPolicy === 'Parallel') return undefined;
  for (let ordinal = ordinalsOf(set).first; ordinal < claim.ordinal; ordinal++) {
    const pod = (found(facts.pods) ?? []).find(({ metadata }) => metadata.name === `${set.metadata.name}-${ordinal}`);
    if (pod === undefined) return undefined;
    const isReady = pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
    if (!isReady) return { set, pod, claims: claimsOf(pod) };
  }
  return undefined;
}

function isThere(name: string | undefined, { pods: using }: AbsentFacts): boolean {
  return (found(using) ?? []).some(({ metadata }) => metadata.name === name);
}

function usersOf({ pods: using, name }: AbsentFacts): Pod[] {
  return (found(using) ?? []).filter((pod) => usesClaim(pod, name) && pod.metadata.deletionTimestamp === undefined);
}

function hasEphemeral({ metadata, spec }: Pod, claimName: string): boolean {
  return (spec?.volumes ?? []).some(
    ({ name, ephemeral }) => ephemeral !== undefined && `${metadata.name}-${name}` === claimName,
  );
}

/** The names of the claims that a Pod uses. */
function claimsOf(pod: Pod | undefined): string[] {
  return (pod?.spec?.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }) => {
    if (persistentVolumeClaim !== undefined) return [persistentVolumeClaim.claimName];
    return ephemeral === undefined ? [] : [`${pod?.metadata.name ?? ''}-${name}`];
  });
}
