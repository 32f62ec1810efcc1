/** The Pods for which kube-controller-manager keeps a claim that is being deleted, and why a Pod does not end. */
import { nameList } from '../../base/name-list.ts';
import { shellCommand, shellWord } from '../../base/shell-word.ts';
import type { PersistentVolume } from '../../provision/objects.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { type ClusterNode, holdsClaim, type Pod } from '../cluster-objects.ts';
import { found } from '../cluster-reader.ts';
import type { Holding } from '../explanation.ts';
import { finalizerCure } from '../known-finalizers.ts';
import { isReady } from '../node-labels.ts';
import { recordedOf } from '../provisioning-events.ts';
import { retainCommand } from '../static-volumes.ts';
import { durationText, quotedError } from '../texts.ts';
import type { Hint } from './cause.ts';

/** Pods in a message: more are counted. */
const maxNamed = 5;
/** A kubelet that runs has reported the end of a Pod by then, and kube-controller-manager has deleted one whose node is gone; in milliseconds. */
const endedWithinMs = 3 * 60_000;
/** With which a kubelet says that a Pod does not end. */
const endReasons = new Set(['FailedKillPod', 'FailedPreStopHook', 'ExceededGracePeriod']);
/** A Pod that may take longer to end has a reason, in milliseconds. */
const longGraceMs = 10 * 60_000;
const outOfService = 'node.kubernetes.io/out-of-service';

/** Those that hold the claim; a Pod that has ended is one of them until it is deleted. */
export function holdersOf({ claim, pods }: ClaimFacts): Pod[] {
  return (found(pods) ?? []).filter((pod) => holdsClaim(pod, claim));
}

/** @param base - what is being deleted, and by what it is held. */
export function heldByPods(base: string, facts: ClaimFacts): Holding | undefined {
  const holders = holdersOf(facts);
  if (holders.length === 0) return undefined;
  const going = holders.filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
  const staying = holders.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  if (staying.length > 0) return heldByStaying(base, staying, facts);
  const ways = going.map((pod) => ({ pod, ...wayToEnd(pod, facts) }));
  const worst = ways.find(({ state }) => state !== 'waiting') ?? ways[0];
  if (worst === undefined) return undefined;
  const { pod, state, text, cure } = worst;
  return { state, cause: 'deleting', message: `${base}, because of Pod ${pod.metadata.name}: it ${text}.`, cure };
}

function heldByStaying(base: string, staying: readonly Pod[], { claim: { metadata }, volume }: ClaimFacts): Holding {
  const ended = staying.filter(hasEnded);
  const using = staying.filter((pod) => !hasEnded(pod));
  const parts = [
    ...(using.length > 0 ? [`it is used by Pod ${namesOf(using)}`] : []),
    ...(ended.length > 0
      ? [
          `Pod ${namesOf(ended)}, which ${ended.length === 1 ? 'has' : 'have'} ended (${[...new Set(ended.map(({ status }) => status?.phase ?? ''))].join(', ')}), ${ended.length === 1 ? 'holds' : 'hold'} it until deleted`,
        ]
      : []),
  ];
  const owners = [...new Set(using.flatMap(ownerText))];
  const first =
    owners.length > 0
      ? `Scale down what creates them (${nameList(owners, maxNamed)}), or delete the Pods that use it`
      : `Delete ${using.length > 0 ? 'the Pods that use it' : 'what has ended'}`;
  return {
    state: 'stuck',
    cause: 'deleting',
    message: `${base}, because ${parts.join(', and ')}.`,
    cure: `${keepText(found(volume))}${first}: ${deleteCommand(staying, metadata.namespace)}`,
  };
}

/** A claim that was deleted by mistake is often found when it is held. */
function keepText(volume: PersistentVolume | undefined): string {
  if (volume?.spec.persistentVolumeReclaimPolicy !== 'Delete') return '';
  return `To keep the data, which is deleted with the claim (reclaim policy Delete), first run: ${retainCommand(volume.metadata.name)}. `;
}

/** How a Pod that is being deleted comes to its end, and what to do; the text goes on after its name. */
export function wayToEnd(
  pod: Pod,
  { podNodes, podEvents, nowMs }: Pick<ClaimFacts, 'podNodes' | 'podEvents' | 'nowMs'>,
): { state: Holding['state']; text: string; cure: string } {
  const { metadata } = pod;
  const { finalizers = [], deletionTimestamp = '', deletionGracePeriodSeconds } = metadata;
  const name = pod.spec?.nodeName ?? '';
  const lateMs = nowMs - Date.parse(deletionTimestamp); // the time is that of its end
  const since = durationText(lateMs);
  if (deletionGracePeriodSeconds === 0 && finalizers.length > 0) {
    return {
      state: 'stuck',
      text: `has ended, and is held by ${finalizers.join(', ')}`,
      cure: finalizerCure(
        { kind: 'pod', name: metadata.name, namespace: metadata.namespace, finalizers },
        finalizers[0] ?? '',
      ),
    };
  }
  const reading = podNodes?.get(name);
  if (reading?.kind === 'missing') {
    const isLate = lateMs > endedWithinMs;
    return {
      state: isLate ? 'stuck' : 'waiting',
      text: `is Terminating, and its node ${name} does not exist`,
      cure: isLate
        ? `Check that kube-controller-manager runs, which deletes such Pods within two minutes. Otherwise: ${deleteCommand([pod], metadata.namespace)} --force`
        : 'Nothing: kube-controller-manager deletes such Pods within two minutes',
    };
  }
  const node = found(reading);
  if (node !== undefined && !isReady(node)) return onDeadNode(node, { since: lateMs > 0 ? ` for ${since}` : '' });
  if (lateMs <= endedWithinMs) {
    const isLong = (deletionGracePeriodSeconds ?? 0) * 1000 > longGraceMs;
    return {
      state: 'waiting',
      text: `is Terminating, until ${deletionTimestamp}`,
      cure: isLong
        ? `Wait, as the Pod may take that long (terminationGracePeriodSeconds), or see what its containers and preStop hook wait for. To end it sooner, if it need not shut down cleanly: ${deleteCommand([pod], metadata.namespace)} --grace-period=1`
        : 'Nothing: the claim is deleted once the Pod ends',
    };
  }
  const about = podEvents?.pod === metadata.name ? (found(podEvents.events) ?? []) : [];
  const failed = recordedOf(about.filter(({ reason = '' }) => endReasons.has(reason)));
  if (failed !== undefined) {
    return {
      state: 'stuck',
      text: `is Terminating, and late by ${since}: the kubelet of node ${name} cannot end it. Last event, ${durationText(nowMs - failed.atMs)} ago: ${quotedError(failed.text)}`,
      cure: `Do what the event says: usually the container runtime of node ${name}, or storage that its processes wait for, does not respond`,
    };
  }
  const unseen = reading?.kind === 'unreadable' ? `; ${reading.why}` : '';
  return {
    state: 'stuck',
    text: `is Terminating, and late by ${since}: the kubelet of node ${name} has not reported its end${unseen}`,
    cure: `See the kubelet's log on node ${name} and its events about the Pod: ${describeCommand(pod)}`,
  };
}

/** Nobody there confirms the end of a Pod: its containers may still run. */
function onDeadNode(node: ClusterNode, { since }: { since: string }): ReturnType<typeof wayToEnd> {
  const { name } = node.metadata;
  const text = `is Terminating${since}, and its node ${name} is ${notReadyText(node)}, so that its end is not confirmed`;
  if (node.spec?.taints?.some(({ key }) => key === outOfService) === true) {
    return {
      state: 'waiting',
      text: `${text}; the node is marked as out of service`,
      cure: 'Nothing: kube-controller-manager deletes its Pods within a minute',
    };
  }
  return {
    state: 'stuck',
    text,
    cure: notReadyCure(node),
  };
}

function readyOf({ status }: ClusterNode): { status: string; lastTransitionTime?: string } | undefined {
  return status?.conditions?.find(({ type }) => type === 'Ready');
}

export function notReadyText(node: ClusterNode): string {
  const condition = readyOf(node);
  return `not ready (Ready is ${condition?.status ?? 'unknown'} since ${condition?.lastTransitionTime ?? 'its start'})`;
}

/** Where the kubelet itself says that it is not ready, the machine runs: it must not be declared dead, as its volumes would be detached. */
export function notReadyCure(node: ClusterNode): string {
  const { name } = node.metadata;
  if (readyOf(node)?.status === 'False') return `See why its kubelet is not ready: kubectl describe node ${name}`;
  return `Start the node again. If it is switched off for good, say so, or delete the node: kubectl taint nodes ${name} ${outOfService}=nodeshutdown:NoExecute`;
}

export function hasEnded({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

/** What created a Pod, and creates it again: of a Deployment its name is that of its ReplicaSet without the hash. */
export function creatorOf({ metadata }: Pod): { kind: string; name: string; replicaSet?: string } | undefined {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
  if (owner === undefined || owner.kind === 'Node') return undefined;
  const { kind, name } = owner;
  const end = `-${metadata.labels?.['pod-template-hash'] ?? ''}`;
  const isOfDeployment = kind === 'ReplicaSet' && end !== '-' && name.endsWith(end);
  return isOfDeployment ? { kind: 'Deployment', name: name.slice(0, -end.length), replicaSet: name } : { kind, name };
}

/** Another Pod is in the way of one. @param base - what it is in the way of, without a full stop. */
export function holderHint(base: string, { holder, pod }: { holder: Pod; pod: Pod }, facts: ClaimFacts): Hint {
  if (holder.metadata.deletionTimestamp === undefined)
    return { text: `${base}.`, cure: makeRoom(holder, pod, facts.claim.metadata.namespace) };
  const { text, cure } = wayToEnd(holder, facts);
  return { text: `${base}; that Pod ${text}.`, cure: cure.replace('the claim is deleted', 'the other Pod starts') };
}

/** A Pod that is created again must not be deleted alone: the new one takes the volume again. */
function makeRoom(holder: Pod, pod: Pod, namespace = ''): string {
  const creator = creatorOf(holder);
  if (creator === undefined) return `Delete that Pod, or wait for its end: ${deleteCommand([holder], namespace)}`;
  const { kind, name, replicaSet } = creator;
  const of = ['-n', namespace, name];
  const own = creatorOf(pod);
  if (kind !== 'Deployment' || own?.kind !== kind || own.name !== name) {
    return `${kind} ${name} would create that Pod again: let only one of the two use the claim, such as by scaling down what creates the other`;
  }
  if (own.replicaSet === replicaSet) {
    const command = shellCommand(['kubectl', 'scale', 'deployment', ...of, '--replicas=1']) ?? '';
    return `Both are replicas of Deployment ${name}, for which a claim with such an access mode has no room: ${command}`;
  }
  const strategy = JSON.stringify({ spec: { strategy: { type: 'Recreate', rollingUpdate: null } } });
  const command = shellCommand(['kubectl', 'patch', 'deployment', ...of, '-p', strategy]) ?? '';
  return `Deployment ${name} keeps the old Pod until the new one is ready, and the new one waits for the volume of the old: give it the strategy Recreate, which ends the old Pod first: ${command}`;
}

function ownerText(pod: Pod): string[] {
  const creator = creatorOf(pod);
  return creator === undefined ? [] : [`${creator.kind} ${creator.name}`];
}

function namesOf(pods: readonly Pod[]): string {
  return nameList(
    pods.map(({ metadata }) => metadata.name),
    maxNamed,
  );
}

export function deleteCommand(pods: readonly Pod[], namespace = ''): string {
  const names = pods.slice(0, maxNamed).map(({ metadata }) => metadata.name);
  return `kubectl delete pod -n ${shellWord(namespace) ?? 'NAMESPACE'} ${names.join(' ')}`;
}

/** What kubectl shows of a Pod and its events. */
export function describeCommand({ metadata: { namespace = '', name } }: Pod): string {
  return `kubectl describe pod -n ${shellWord(namespace) ?? 'NAMESPACE'} ${name}`;
}
