/** The Pod that uses the claim: whether there is one, whether the scheduler places it, and whether there is room. */
import { nameList } from '../../base/name-list.ts';
import { shellWord } from '../../base/shell-word.ts';
import { shortValue } from '../../base/short-value.ts';
import { requestedProvisioner, selectedNode } from '../../provision/claim-fields.ts';
import { type PersistentVolumeClaim, selectedNodeKey } from '../../provision/objects.ts';
import { attempts, type FailedAttempt } from '../attempts.ts';
import { type ClaimFacts, waitsForConsumer } from '../claim-facts-reader.ts';
import { isBlockedBy, type Pod } from '../cluster-objects.ts';
import { found } from '../cluster-reader.ts';
import type { Finding, Holding, Link } from '../explanation.ts';
import { barrierOf, fitsOne, isForNode, maxNamed, termText } from '../node-labels.ts';
import { signOfLifeMs } from '../provisioner-facts.ts';
import { type Recorded, recordedOf } from '../provisioning-events.ts';
import {
  claimIn,
  isAwaited,
  isForScheduler,
  refusalOf,
  refused,
  schedulingCure,
  silentForMs,
} from '../scheduler-words.ts';
import { durationText, lasting } from '../texts.ts';
import { type Cause, defineCause } from './cause.ts';
import { noRoomError, stockWords, vagueError } from './storage-words.ts';
import { noRoomCure, roomFinding } from './published-capacity.ts';

/** What the scheduler says of a Pod whose claim lost its node because the provisioner could not create the volume there. */
const provisioningFailed = /provisioning failed for PVC|selectedNode annotation reset/;

/** What follows a failure on a selected node. */
const chosenAgain = 'the scheduler is to choose a node again';

/** Without the class or the Pods nothing later means anything. */
export function checkConsumerReadable(facts: ClaimFacts): Finding | undefined {
  const { claim, storageClass, pods } = facts;
  if (storageClass?.kind === 'unreadable' && selectedNode(claim) === '' && requestedProvisioner(claim) === undefined) {
    return { state: 'unknown', detail: 'whether its class waits for a Pod is not visible', ends: true };
  }
  if (!waitsForConsumer(claim, found(storageClass)) || pods?.kind !== 'unreadable') return undefined;
  return saidByOthers(facts) ?? { state: 'unknown', detail: pods.why, ends: true };
}

/** The Pods cannot be read; kube-controller-manager and the scheduler have recorded what they wait for. */
function saidByOthers({ events, podEvents, nowMs }: ClaimFacts): Holding | undefined {
  const about = found(events) ?? [];
  const waits = recordedOf(
    about.filter(({ reason = '' }) => reason === 'WaitForFirstConsumer' || reason === 'WaitForPodScheduled'),
  );
  if (waits === undefined || nowMs - waits.atMs > signOfLifeMs) return undefined;
  const ago = durationText(nowMs - waits.atMs);
  if (podEvents === undefined) {
    return {
      state: 'waiting',
      cause: 'waits-for-consumer',
      message: `kube-controller-manager ${ago} ago: ${waits.text}.`,
      cure: 'Nothing: the volume is provisioned once a Pod uses the claim',
    };
  }
  const refusal = recordedOf(found(podEvents.events) ?? []);
  if (refusal === undefined) return undefined;
  return {
    state: 'stuck',
    cause: refused.noRoom.test(refusal.text) ? 'no-capacity' : 'pod-unschedulable',
    message: `Pod ${podEvents.pod} uses the claim and is not scheduled. The scheduler ${durationText(nowMs - refusal.atMs)} ago: ${refusal.text}`,
    cure: refused.noRoom.test(refusal.text)
      ? noRoomCure
      : schedulingCure(refusal.text, { pod: { metadata: { name: podEvents.pod } }, nodes: undefined }),
  };
}

export function checkHasConsumer(facts: ClaimFacts): Finding | FailedAttempt | undefined {
  const ofClass = found(facts.storageClass);
  if (ofClass === undefined || !waitsForConsumer(facts.claim, ofClass) || consumersOf(facts).length > 0)
    return undefined;
  const { failed } = attempts(facts);
  // the provisioner does not know the Pods: that it has begun for one says that there is one
  if (facts.pods === undefined && isRecent(failed, facts)) return { failed, next: chosenAgain };
  return {
    state: 'waiting',
    cause: 'waits-for-consumer',
    message:
      facts.pods === undefined
        ? `StorageClass ${ofClass.metadata.name} waits until a Pod that uses the claim is scheduled.`
        : `StorageClass ${ofClass.metadata.name} waits for the first Pod that uses the claim, and there is none yet.`,
    cure: `Nothing: the volume is provisioned once a Pod uses claim ${facts.claim.metadata.name}. What waits for the claim to be Bound before it creates that Pod, such as a sync wave or a hook, waits in vain`,
  };
}

/** Of a claim that Pods use: what holds the one that is most likely to be scheduled. */
export function checkConsumer(facts: ClaimFacts): Finding | FailedAttempt | undefined {
  const { claim } = facts;
  if (!waitsForConsumer(claim, found(facts.storageClass))) return undefined;
  const all = consumersOf(facts);
  const own = all.filter((pod) => !isBlockedBy(pod, claim));
  const using = own.length > 0 ? own : all;
  return failureElsewhere(facts, using) ?? mostHopeful(using.map((pod) => podFinding(pod, facts)));
}

function consumersOf({ pods }: ClaimFacts): Pod[] {
  return (found(pods) ?? []).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
}

/** One Pod that gets a node is enough: that another one is unschedulable does not matter then. */
function mostHopeful(findings: readonly Holding[]): Holding | undefined {
  return (
    findings.find(({ cause }) => cause === 'waits-for-consumer') ??
    findings.find(({ state }) => state === 'stuck') ??
    findings[0]
  );
}

/** A working provisioner would have repeated it. */
function isRecent(failed: Recorded | undefined, { nowMs }: ClaimFacts): failed is Recorded {
  return failed !== undefined && nowMs - failed.atMs <= signOfLifeMs;
}

/** The failure after which the provisioner gave up the chosen node, so that the scheduler chooses again. */
function failureElsewhere(facts: ClaimFacts, using: readonly Pod[]): FailedAttempt | undefined {
  const { failed } = attempts(facts);
  if (!isRecent(failed, facts)) return undefined;
  const isBeingScheduled = using.some((pod) => {
    if (!isForScheduler(pod)) return false;
    const refusal = refusalOf(pod);
    return refusal === undefined || provisioningFailed.test(refusal);
  });
  if (!isBeingScheduled) return undefined;
  return { failed, next: chosenAgain };
}

/** Whoever sets a scheduling gate to wait for something short has removed it by then, in milliseconds. */
const gatedWithinMs = 10 * 60_000;
/** A scheduler that binds the volumes of a Pod has done so before it places the Pod; the claim was read earlier. In milliseconds. */
const boundWithinMs = 60_000;
/** Pods have ended by then that are to make room, as a rule, in milliseconds. */
const preemptedWithinMs = 3 * 60_000;
const usualScheduler = 'default-scheduler';

/** A Pod that has no node, and that the scheduler has not refused, or for which it makes room. The text goes on after what it does. */
export function waitsForScheduler(
  pod: Pod,
  { claim, nowMs }: Pick<ClaimFacts, 'claim' | 'nowMs'>,
): { state: 'waiting' | 'stuck'; text: string; cure: string; cause: Cause } | undefined {
  const { metadata, spec, status } = pod;
  const ageMs = nowMs - Date.parse(metadata.creationTimestamp ?? '');
  const gates = (spec?.schedulingGates ?? []).map(({ name }) => shortValue(name)).join(', ');
  if (gates !== '') {
    const isLate = ageMs > gatedWithinMs;
    return {
      state: isLate ? 'stuck' : 'waiting',
      cause: 'pod-unschedulable',
      text: ` and is held by scheduling gates: ${gates}.${isLate ? ` Nobody has removed them for ${durationText(ageMs)}.` : ''}`,
      cure: isLate
        ? 'Look at what set the gates: it removes them once its condition is met, such as a quota of Kueue (kubectl get workloads)'
        : 'Wait for the controllers that set the gates to remove them',
    };
  }
  const nominated = status?.nominatedNodeName ?? '';
  // since Kubernetes 1.35 also of a Pod that has its node, and only waits for its volumes
  if (nominated !== '' && nominated === selectedNode(claim)) {
    return {
      state: 'waiting',
      cause: 'waits-for-consumer',
      text: `, and the scheduler has chosen node ${nominated} for it, once its volumes are there.`,
      cure: 'Nothing: the Pod gets its node once all its claims are bound',
    };
  }
  if (nominated !== '') {
    const since = status?.conditions?.find(({ type }) => type === 'PodScheduled')?.lastTransitionTime;
    const isLate = nowMs - Date.parse(since ?? '') > preemptedWithinMs;
    const look = `See which Pods on that node stay Terminating, and the log of its kubelet: kubectl get pods -A --field-selector spec.nodeName=${nominated}`;
    return {
      state: isLate ? 'stuck' : 'waiting',
      cause: isLate ? 'pod-unschedulable' : 'waits-for-consumer',
      text: `, and the scheduler is preempting Pods of lower priority on node ${nominated} to make room for it${isLate ? `; they have not ended for ${durationText(nowMs - Date.parse(since ?? ''))}` : ''}.`,
      cure: isLate
        ? look
        : lasting(
            'Nothing: it is scheduled once they have ended, usually within their terminationGracePeriodSeconds',
            look,
          ),
    };
  }
  if ((spec?.nodeName ?? '') !== '' || refusalOf(pod) !== undefined) return undefined;
  const { schedulerName = usualScheduler } = spec ?? {};
  if (ageMs > silentForMs) {
    return {
      state: 'stuck',
      cause: 'pod-unschedulable',
      text: ` and is not scheduled: no scheduler has reported anything about it for ${durationText(ageMs)}. Its scheduler is ${schedulerName}.`,
      cure: `Check that ${schedulerName} runs, and that spec.schedulerName of the Pod is right`,
    };
  }
  return {
    state: 'waiting',
    cause: 'waits-for-consumer',
    text: ', and the scheduler has not chosen a node for it yet.',
    cure: 'Usually nothing: it takes a moment. If it stays like this, check that its scheduler runs',
  };
}

function podFinding(pod: Pod, facts: ClaimFacts): Holding {
  const { name } = pod.metadata;
  if (isBlockedBy(pod, facts.claim)) return blocked(pod, facts.claim);
  const waits = waitsForScheduler(pod, facts);
  if (waits !== undefined) {
    const { state, cause, text, cure } = waits;
    return { state, cause, message: `Pod ${name} uses the claim${text}`, cure };
  }
  const node = pod.spec?.nodeName ?? '';
  return node === '' ? unschedulable(pod, refusalOf(pod) ?? '', facts) : placedBefore(pod, node, facts);
}

/** The claim has the name of that of an ephemeral volume, and is not it. */
function blocked({ metadata }: Pod, claim: PersistentVolumeClaim): Holding {
  const { name, namespace = '' } = claim.metadata;
  return {
    state: 'stuck',
    cause: 'pod-unschedulable',
    message: `Pod ${metadata.name} has an ephemeral volume for which a claim ${name} of its own is needed. This claim was not created for the Pod: it is in the way of the Pod, and no Pod uses it.`,
    cure: `Rename the Pod or its volume, or, if nobody needs this claim: kubectl delete pvc -n ${shellWord(namespace) ?? 'NAMESPACE'} ${name}`,
  };
}

/** The Pod has a node, and the scheduler did not choose one for the volume. */
function placedBefore({ metadata, spec, status }: Pod, node: string, { claim, nowMs }: ClaimFacts): Holding {
  const held = { state: 'stuck', cause: 'pod-unschedulable' } as const;
  const { name, namespace = '', managedFields = [] } = metadata;
  const recreate = `kubectl delete pod -n ${shellWord(namespace) ?? 'NAMESPACE'} ${name}`;
  // a scheduler sets it with a request that is not among the managed fields
  const known = managedFields.flatMap(({ fieldsV1 }) => fieldsV1 ?? []);
  const isOwn = known.some((fields) => fields['f:spec']?.['f:nodeName'] !== undefined);
  const { schedulerName = usualScheduler } = spec ?? {};
  const scheduledAt = status?.conditions?.find(({ type }) => type === 'PodScheduled')?.lastTransitionTime;
  const placedMs = Date.parse(scheduledAt ?? metadata.creationTimestamp ?? '');
  if (!isOwn && placedMs < Date.parse(claim.metadata.creationTimestamp ?? '')) {
    return {
      ...held,
      message: `Pod ${name} uses the claim and was put on node ${node} before the claim was created: the scheduler, which would choose the node for the volume, does not look at the Pod again.`,
      cure: `Delete the Pod, so that it is created again and scheduled with this claim: ${recreate}`,
    };
  }
  if (!isOwn && scheduledAt !== undefined && nowMs - placedMs < boundWithinMs) {
    return {
      state: 'waiting',
      cause: 'waits-for-consumer',
      message: `Pod ${name} uses the claim and was put on node ${node} a moment ago: the claim may have been bound since it was read.`,
      cure: 'Nothing yet: look again in a minute',
    };
  }
  if (!isOwn && (known.length > 0 || schedulerName !== usualScheduler)) {
    return {
      ...held,
      message: `Pod ${name} uses the claim and was put on node ${node} by ${schedulerName === usualScheduler ? 'a scheduler' : `the scheduler ${schedulerName}`} that chose no node for the volume (annotation ${selectedNodeKey} of the claim).`,
      cure: `Let ${usualScheduler} schedule the Pod, or one that has its plugin VolumeBinding: correct spec.schedulerName, and recreate the Pod: ${recreate}`,
    };
  }
  return {
    ...held,
    message: `Pod ${name} uses the claim and sets spec.nodeName to ${node}, so it bypasses the scheduler, which would choose the node for the volume.`,
    cure: 'Recreate the Pod with a nodeSelector (kubernetes.io/hostname) instead of spec.nodeName',
  };
}

function unschedulable(pod: Pod, refusal: string, facts: ClaimFacts): Holding {
  if (isOutdated(refusal, facts)) {
    return {
      state: 'waiting',
      cause: 'waits-for-consumer',
      message: `Pod ${pod.metadata.name} uses the claim, and the scheduler has not tried again since what it said is no longer so: ${refusal}`,
      cure: 'Nothing: it tries again in a moment, and within five minutes at most',
    };
  }
  const isRoom = refused.noRoom.test(refusal);
  const ofRoom = isRoom ? roomFinding(facts, pod, refusal) : undefined;
  if (ofRoom !== undefined) return ofRoom;
  const { name } = pod.metadata;
  const inTopology = refused.nothingToBind.test(refusal) ? topologyNodes(pod, facts) : undefined;
  const next = inTopology === undefined ? otherClaims(pod, refusal, facts) : [];
  return {
    state: 'stuck',
    cause: isRoom ? 'no-capacity' : 'pod-unschedulable',
    message: `Pod ${name} uses the claim and cannot be scheduled.${inTopology?.text ?? ''} The scheduler: ${refusal}`,
    cure: inTopology?.cure ?? (isRoom ? noRoomCure : schedulingCure(refusal, { pod, nodes: found(facts.nodes) })),
    ...(next.length > 0 && { next }),
  };
}

/** Whether the scheduler waited for a claim that has since come to what it waits for. */
export function isOutdated(refusal: string, { claim, siblings = [] }: ClaimFacts): boolean {
  if (refusal.includes('pod has unbound immediate PersistentVolumeClaims')) {
    const isMeant = claim.status?.phase === 'Bound' || siblings.length > 0;
    return isMeant && siblings.every(({ reading }) => !isAwaited(reading));
  }
  if (!/persistentvolumeclaim "[^"]+" (not found|is being deleted)/.test(refusal)) return false;
  const name = claimIn(refusal);
  const named = name === claim.metadata.name ? claim : found(siblings.find((each) => each.name === name)?.reading);
  return named !== undefined && named.metadata.deletionTimestamp === undefined;
}

/** The nodes on which the class allows volumes, and why the Pod is not there. */
function topologyNodes(
  pod: Pod,
  { storageClass, nodes }: ClaimFacts,
): { text: string; cure: string | undefined } | undefined {
  const ofClass = found(storageClass);
  const terms = (ofClass?.allowedTopologies ?? []).map(({ matchLabelExpressions = [] }) =>
    matchLabelExpressions.map((each) => ({ ...each, operator: 'In' })),
  );
  const allowed =
    terms.length === 0 ? [] : (found(nodes) ?? []).filter(({ metadata }) => fitsOne(terms, metadata.labels));
  if (ofClass === undefined || allowed.length === 0) return undefined;
  const barriers = allowed.map((node) => ({ node: node.metadata.name, barrier: barrierOf(node, pod) }));
  const names = barriers.map(({ node, barrier }) => (barrier === undefined ? node : `${node} (${barrier.text})`));
  const text = ` StorageClass ${ofClass.metadata.name} allows volumes only on nodes with ${terms.map((term) => termText(term)).join(', or ')}: ${nameList(names, maxNamed)}.`;
  if (!allowed.some((node) => isForNode(pod, node))) {
    return {
      text: `${text} The Pod may run on none of them, by its nodeSelector or affinity.`,
      cure: 'Let the Pod run there, or use a class that allows volumes where the Pod runs',
    };
  }
  return {
    text,
    cure: barriers.find(({ barrier }) => barrier !== undefined)?.barrier?.cure,
  };
}

/** The other claims of the Pod for which it may wait, the likeliest first. */
function otherClaims(pod: Pod, refusal: string, { claim, siblings = [] }: ClaimFacts): Link[] {
  const { name: own, namespace = '' } = claim.metadata;
  const named = claimIn(refusal);
  const names =
    named === undefined
      ? [
          ...siblings.filter(({ reading }) => isAwaited(reading)),
          ...siblings.filter(({ reading }) => !isAwaited(reading)),
        ].map(({ name }) => name)
      : [named];
  return names
    .filter((name) => name !== own)
    .map((name) => ({ namespace, name, way: `It waits for Pod ${pod.metadata.name}, which waits for claim ${name}` }));
}

const limitCure =
  'A limit is reached, as the message says, such as that of the account or of the number of volumes: have it raised, or delete volumes that nobody needs. A smaller request helps only where the limit is about size';

/** More is requested than is available. */
export const noCapacity = defineCause({
  name: 'no-capacity',
  failures: [
    {
      pattern: /^The selected node could not be removed from the claim /,
      cure: 'Permit the provisioner to update claims, so that another node can be chosen',
    },
    {
      pattern: /code = ResourceExhausted .*(?:quota|limit ?exceeded)/is,
      cure: limitCure,
      log: true,
    },
    {
      // the CSI specification gives this code its meaning: "Unable to provision in accessible_topology"
      pattern: /code = ResourceExhausted .*(topolog|zone|region|segment|accessib)/is,
      cure: 'The driver cannot create the volume where it is requested. Do what its message says (storage, quota), or request it elsewhere: other nodes for the Pod, or a class with other allowedTopologies',
    },
    {
      pattern: /code = ResourceExhausted .*(limit|exceed|maximum)/is,
      cure: limitCure,
      log: true,
    },
    {
      pattern: /code = ResourceExhausted .*(?:not enough|insufficient|too few) (?:\S+ ){0,2}(?:nodes|pools)\b/is,
      cure: 'Too few nodes or pools of the storage can take a replica each: see that all are online and which have room, or lower the number of replicas in the class (delete it and create it again)',
      log: true,
    },
    {
      pattern: /code = ResourceExhausted /,
      cure: 'Free storage, request less, or use a class with enough capacity; if the message names a pool or a volume group, check that the class names the right one',
    },
    {
      pattern: vagueError(stockWords),
      cure: 'The cloud has none of this left there, and no limit of yours is reached: have the Pod run in another zone, use a class with another type, or wait, as it is tried again',
      log: true,
    },
    noRoomError,
  ],
  waits: [
    {
      pattern: /^Waiting for a node with room /,
      state: 'stuck',
      cure: 'Free storage on a node, request less, or use a class with enough capacity',
    },
    {
      pattern: /^Waiting for the deletion of a volume: /,
      state: 'stuck',
      cure: 'Delete volumes that nobody needs, or raise the limit of the provisioner or its class',
    },
  ],
});
