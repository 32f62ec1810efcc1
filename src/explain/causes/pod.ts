/** The Pod that uses the claim, and where it can be: the scheduler, the chosen node, topology and capacity. */
import { nameList } from '../../base/name-list.ts';
import { shellWord } from '../../base/shell-word.ts';
import { shortValue } from '../../base/short-value.ts';
import { requestedProvisioner, selectedNode } from '../../provision/claim-fields.ts';
import { type PersistentVolumeClaim, selectedNodeKey, type StorageClass } from '../../provision/objects.ts';
import { attempts, type FailedAttempt } from '../attempts.ts';
import { type ClaimFacts, provisionerOf, waitsForConsumer } from '../claim-facts-reader.ts';
import { isBlockedBy, type Pod } from '../cluster-objects.ts';
import { found } from '../cluster-reader.ts';
import type { Finding, Holding, Link } from '../explanation.ts';
import { barrierOf, fitsOne, isForNode, type Labels, maxNamed, termText } from '../node-labels.ts';
import { signOfLifeMs } from '../provisioner-facts.ts';
import { failuresText, type Recorded, recordedOf } from '../provisioning-events.ts';
import {
  claimIn,
  isAwaited,
  isForScheduler,
  refusalOf,
  refused,
  schedulingCure,
  silentForMs,
} from '../scheduler-words.ts';
import { durationText, lasting, quotedError } from '../texts.ts';
import { type Cause, defineCause } from './cause.ts';
import { noRoomError } from './driver-error.ts';
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
    cure: 'Nothing: the volume is provisioned once a Pod uses the claim',
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
  nowMs: number,
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
  const waits = waitsForScheduler(pod, facts.nowMs);
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
    cure: inTopology?.cure ?? (isRoom ? noRoomCure : schedulingCure(refusal, { pod, nodes: facts.nodes })),
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

/** More is requested than is available. */
export const noCapacity = defineCause({
  name: 'no-capacity',
  failures: [
    {
      pattern: /^The selected node could not be removed from the claim /,
      cure: 'Permit the provisioner to update claims, so that another node can be chosen',
    },
    {
      // the CSI specification gives this code its meaning: "Unable to provision in accessible_topology"
      pattern: /code = ResourceExhausted .*(topolog|zone|region|segment|accessib)/is,
      cure: 'The driver cannot create the volume where it is requested. Do what its message says (storage, quota), or request it elsewhere: other nodes for the Pod, or a class with other allowedTopologies',
    },
    {
      pattern: /code = ResourceExhausted .*(limit|quota|exceed|maximum)/is,
      cure: 'A limit is reached, as the message says, such as that of the account or of the number of volumes: have it raised, or delete volumes that nobody needs. A smaller request helps only where the limit is about size',
      log: true,
    },
    {
      pattern: /code = ResourceExhausted /,
      cure: 'Free storage, request less, or use a class with enough capacity; if the message names a pool or a volume group, check that the class names the right one',
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

/** The node that was chosen for the claim does not exist. */
export const selectedNodeGone = defineCause({
  name: 'selected-node-gone',
  failures: [
    {
      pattern: /^failed to get selected (CSINode|Node) /,
      cure: 'Usually the scheduler chooses another node at once. If it chooses this one again, check that the driver runs there',
    },
  ],
});

export function checkNode(facts: ClaimFacts): Finding | undefined {
  const { claim, node, events, nowMs } = facts;
  const name = selectedNode(claim);
  if (name === '' || node === undefined) return undefined;
  if (node.kind === 'unreadable')
    return { state: 'unknown', detail: `node ${shortValue(name)} was chosen; ${node.why}` };
  if (node.kind === 'found') return { state: 'ok', detail: `${shortValue(name)} was chosen and exists` };
  const gone = `Node ${shortValue(name)}, which was chosen for the claim, does not exist`;
  if (events?.kind === 'unreadable') return { state: 'unknown', detail: `${gone}; ${events.why}` };
  const { lastMs } = attempts(facts);
  // only drivers with topology need the node, and the provisioner's events say whether it is missed
  if (lastMs !== undefined && nowMs - lastMs < signOfLifeMs) return { state: 'ok', detail: gone };
  return {
    state: 'stuck',
    cause: 'selected-node-gone',
    message: `${gone}.`,
    cure: 'Check that the provisioner runs: it provisions the volume all the same, or asks the scheduler for another node. If neither happens, recreate the claim and its Pod',
  };
}

/** The provisioner found no topology: whether the driver is registered where it looked. */
export function checkRegistered(facts: ClaimFacts): Finding | undefined {
  const { claim, storageClass, csiNodes, nowMs } = facts;
  const { failed, started } = attempts(facts);
  if (failed === undefined || !isTopologyError(failed.text) || csiNodes === undefined) return undefined;
  if (started !== undefined && started.atMs > failed.atMs) return undefined;
  if (csiNodes.kind === 'unreadable') return undefined; // the error itself says what to look at
  const node = selectedNode(claim);
  const driver = provisionerOf(claim, found(storageClass));
  const all = found(csiNodes) ?? [];
  const own = all.flatMap(({ spec }) => spec?.drivers?.find(({ name }) => name === driver) ?? []);
  if (own.some(({ topologyKeys }) => (topologyKeys ?? []).length > 0)) return undefined;
  const where =
    node === ''
      ? 'is registered on no node'
      : `is not registered on node ${shortValue(node)}, which was chosen for the claim`;
  const others = all.flatMap(({ spec }) => spec?.drivers?.map(({ name }) => name) ?? []);
  const instead =
    node === '' ? '' : `: its CSINode ${others.length === 0 ? 'lists no driver' : `lists ${named(others)}`}`;
  const error = `Provisioning ${failuresText(failed, nowMs)}. Last error: ${quotedError(failed.text)}`;
  if (own.length > 0) {
    return {
      ...{ state: 'stuck', cause: 'no-topology' },
      message: `Driver ${shortValue(driver)} is registered ${node === '' ? '' : `on node ${shortValue(node)} `}without topology keys. ${error}`,
      cure: "Have the driver's node plugin report a topology (NodeGetInfo): see its log, and whether the node has the labels that it reads. A driver without topology needs --feature-gates=Topology=false",
    };
  }
  const start = "Let the driver's node plugin, usually a DaemonSet, run";
  return {
    ...{ state: 'stuck', cause: 'no-topology' },
    message: `Driver ${shortValue(driver)} ${where}${instead}. ${error}`,
    cure:
      node === ''
        ? `${start}, see its log, and check on which nodes it has registered: kubectl get csinodes`
        : `${start} on that node (see its nodeSelector and tolerations), or give the Pod a nodeSelector for nodes that have the driver; these list it: kubectl get csinodes`,
  };
}

function isTopologyError(text: string): boolean {
  return text.includes('error generating accessibility requirements: ');
}

const topologyCure =
  "Check that the driver's node plugin runs on the nodes, that CSINode objects name its topology keys, and that the class's allowedTopologies fit them";

/** No node with the driver matches the class's `allowedTopologies`, or none reports a topology. */
export const noTopology = defineCause({
  name: 'no-topology',
  failures: [{ pattern: /^error generating accessibility requirements: /, cure: topologyCure }],
  waits: [{ pattern: /^Waiting for a node that StorageClass /, state: 'stuck', cure: topologyCure }],
});

type Requirement = NonNullable<NonNullable<StorageClass['allowedTopologies']>[number]['matchLabelExpressions']>[number];

/**
 * Compares `allowedTopologies` of the class with the nodes on which the driver is registered. A node that was selected has been
 * compared by the scheduler.
 */
export function checkAllowedTopologies(facts: ClaimFacts): Finding | undefined {
  const { claim, storageClass, nodes, csiNodes } = facts;
  const ofClass = found(storageClass);
  const terms = ofClass?.allowedTopologies ?? [];
  if (terms.length === 0 || selectedNode(claim) !== '' || attempts(facts).succeeded !== undefined) return undefined;
  if (csiNodes?.kind === 'unreadable') return { state: 'unknown', detail: csiNodes.why };
  if (nodes?.kind === 'unreadable') return { state: 'unknown', detail: nodes.why };
  const driver = provisionerOf(claim, ofClass);
  const registered = (found(csiNodes) ?? []).flatMap(({ metadata, spec }) => {
    const own = spec?.drivers?.find(({ name }) => name === driver);
    return own === undefined ? [] : [{ node: metadata.name, keys: own.topologyKeys ?? [] }];
  });
  const labelsOf = new Map((found(nodes) ?? []).map(({ metadata }) => [metadata.name, metadata.labels ?? {}]));
  const nodeLabels = registered.flatMap(({ node }): Labels[] => {
    const labels = labelsOf.get(node);
    return labels === undefined ? [] : [labels];
  });
  if (nodeLabels.length === 0) return undefined; // no node plugin, or no driver: another check reports that
  const keys = new Set(registered.flatMap((each) => each.keys));
  const misfits = terms.map(({ matchLabelExpressions }) => misfit(matchLabelExpressions ?? [], nodeLabels, keys));
  if (misfits.includes(undefined)) return undefined;
  return {
    state: 'stuck',
    cause: 'no-topology',
    message: `StorageClass ${ofClass?.metadata.name ?? ''} allows volumes where no node of the driver is: ${misfits.join('; ')}.`,
    cure: 'Correct allowedTopologies: delete the class and create it again, and recreate the claim. Or add nodes there',
  };
}

/** Why no node matches a term; undefined: one does. */
function misfit(
  term: readonly Requirement[],
  nodeLabels: readonly Labels[],
  keys: ReadonlySet<string>,
): string | undefined {
  if (nodeLabels.some((labels) => term.every((each) => fits(each, labels)))) return undefined;
  const alone = term.find((each) => !nodeLabels.some((labels) => fits(each, labels)));
  if (alone === undefined) return `no node has all of ${term.map(requirementText).join(', ')}`;
  const { key } = alone;
  const present = [...new Set(nodeLabels.flatMap((labels) => labels[key] ?? []))].sort();
  if (present.length === 0) {
    return `no node has the label ${shortValue(key)}, and the driver reports ${keys.size === 0 ? 'no topology' : named([...keys].sort())}`;
  }
  return `${requirementText(alone)} is on no node; nodes have ${named(present)}`;
}

function fits({ key, values }: Requirement, labels: Labels): boolean {
  const value = labels[key];
  return value !== undefined && values.includes(value);
}

function requirementText({ key, values }: Requirement): string {
  return `${shortValue(key)} ${values.map((value) => shortValue(value)).join(' or ')}`;
}

function named(names: readonly string[]): string {
  return nameList(
    names.map((name) => shortValue(name)),
    maxNamed,
  );
}
