/** The Pod that uses the claim, and where it can be: the scheduler, the chosen node, topology and capacity. */
import { nameList } from '../../base/name-list.ts';
import { shortValue } from '../../base/short-value.ts';
import { requestedProvisioner, selectedNode } from '../../provision/claim/claim-fields.ts';
import type { StorageClass } from '../../provision/objects.ts';
import { attempts, type FailedAttempt } from '../attempts.ts';
import { type ClaimFacts, provisionerOf, waitsForConsumer } from '../claim-facts-reader.ts';
import type { Pod } from '../cluster-objects.ts';
import { found } from '../cluster-reader.ts';
import type { Finding, Holding } from '../explanation.ts';
import type { Recorded } from '../provisioning-events.ts';
import { signOfLifeMs } from '../serving.ts';
import { durationText } from '../time-text.ts';
import { defineCause } from './cause.ts';

/** What the scheduler says of a Pod whose claim lost its node because the provisioner could not create the volume there. */
const provisioningFailed = /provisioning failed for PVC|selectedNode annotation reset/;

/** What follows a failure on a selected node. */
const chosenAgain = 'the scheduler is to choose a node again';

/** Without the class or the Pods nothing later means anything. */
export function checkConsumerReadable({ claim, storageClass, pods }: ClaimFacts): Finding | undefined {
  if (storageClass?.kind === 'unreadable' && selectedNode(claim) === '' && requestedProvisioner(claim) === undefined) {
    return { state: 'unknown', detail: 'whether its class waits for a Pod is not visible', ends: true };
  }
  if (!waitsForConsumer(claim, found(storageClass)) || pods?.kind !== 'unreadable') return undefined;
  return { state: 'unknown', detail: pods.why, ends: true };
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
  if (!waitsForConsumer(facts.claim, found(facts.storageClass))) return undefined;
  const using = consumersOf(facts);
  return failureElsewhere(facts, using) ?? mostHopeful(using.map((pod) => podFinding(pod, facts.nowMs)));
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

/** A running scheduler has said something about a Pod after this time, in milliseconds. */
const scheduledWithinMs = 2 * 60_000;
const usualScheduler = 'default-scheduler';

function isForScheduler({ spec }: Pod): boolean {
  return (spec?.schedulingGates ?? []).length === 0 && (spec?.nodeName ?? '') === '';
}

/** Why the scheduler cannot place a Pod; undefined where it has not said so. */
function refusalOf({ status }: Pod): string | undefined {
  const condition = status?.conditions?.find(({ type }) => type === 'PodScheduled');
  return condition?.status === 'False' ? (condition.message ?? condition.reason ?? '') : undefined;
}

function podFinding(pod: Pod, nowMs: number): Holding {
  const { name } = pod.metadata;
  const gates = pod.spec?.schedulingGates ?? [];
  if (gates.length > 0) {
    return {
      state: 'waiting',
      cause: 'pod-unschedulable',
      message: `Pod ${name} uses the claim and is held by scheduling gates: ${gates.map((gate) => gate.name).join(', ')}.`,
      cure: 'Wait for the controllers that set the gates to remove them',
    };
  }
  const node = pod.spec?.nodeName ?? '';
  if (node !== '') {
    return {
      state: 'stuck',
      cause: 'pod-unschedulable',
      message: `Pod ${name} uses the claim and sets spec.nodeName to ${node}, so it bypasses the scheduler, which would choose the node for the volume.`,
      cure: 'Recreate the Pod with a nodeSelector (kubernetes.io/hostname) instead of spec.nodeName',
    };
  }
  const refusal = refusalOf(pod);
  return refusal === undefined ? unseen(pod, nowMs) : unschedulable(pod, refusal);
}

/** The scheduler has said nothing about the Pod. */
function unseen({ metadata, spec }: Pod, nowMs: number): Holding {
  const { schedulerName = usualScheduler } = spec ?? {};
  const ageMs = nowMs - Date.parse(metadata.creationTimestamp ?? '');
  if (ageMs > scheduledWithinMs) {
    return {
      state: 'stuck',
      cause: 'pod-unschedulable',
      message: `Pod ${metadata.name} uses the claim, and no scheduler has reported anything about it for ${durationText(ageMs)}. Its scheduler is ${schedulerName}.`,
      cure: `Check that ${schedulerName} runs, and that spec.schedulerName of the Pod is right`,
    };
  }
  return {
    state: 'waiting',
    cause: 'waits-for-consumer',
    message: `Pod ${metadata.name} uses the claim, and the scheduler has not chosen a node for it yet.`,
    cure: 'Usually nothing: it takes a moment. If it stays like this, check that its scheduler runs',
  };
}

function unschedulable({ metadata, status }: Pod, refusal: string): Holding {
  const nominated = status?.nominatedNodeName ?? '';
  if (nominated !== '') {
    return {
      state: 'waiting',
      cause: 'waits-for-consumer',
      message: `Pod ${metadata.name} uses the claim, and the scheduler is making room for it on node ${nominated}: Pods of lower priority have to end first.`,
      cure: 'Nothing: it is scheduled once they have ended',
    };
  }
  const noRoom = refusal.includes('enough free storage');
  return {
    state: 'stuck',
    cause: noRoom ? 'no-capacity' : 'pod-unschedulable',
    message: `Pod ${metadata.name} uses the claim and cannot be scheduled. The scheduler: ${refusal}`,
    cure: noRoom
      ? noRoomCure
      : 'Make a node fit the Pod, as the message says; the volume is provisioned once a node is chosen',
  };
}

/** Where the scheduler refuses a Pod for lack of storage. */
const noRoomCure = 'Free storage on a node that fits the Pod, request less, or use another class';

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
      pattern: /code = ResourceExhausted /,
      cure: 'Free storage, request less, or use a class with enough capacity',
    },
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

const topologyCure =
  "Check that the driver's node plugin runs on the nodes, that CSINode objects name its topology keys, and that the class's allowedTopologies fit them";

/** No node with the driver matches the class's `allowedTopologies`, or none reports a topology. */
export const noTopology = defineCause({
  name: 'no-topology',
  failures: [{ pattern: /^error generating accessibility requirements: /, cure: topologyCure }],
  waits: [{ pattern: /^Waiting for a node that StorageClass /, state: 'stuck', cure: topologyCure }],
});

/** Names in a message: more are counted. */
const maxNamed = 8;

type Labels = Readonly<Record<string, string>>;
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
