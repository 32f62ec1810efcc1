/** The Pod that a claim of a late-binding class waits for (Kubernetes page "Storage Classes", "Volume binding mode"). */
import { requestedProvisioner, selectedNode } from '../provision/claim/claim-facts.ts';
import { claimHistory, failedAttempt } from './attempt-step.ts';
import { type ClaimFacts, waitsForConsumer } from './claim-facts-reader.ts';
import { noProvisioner, staticOnly } from './class-steps.ts';
import type { Pod } from './cluster-objects.ts';
import { found } from './cluster-reader.ts';
import type { Finding, Holding } from './explanation.ts';
import { signOfLifeMs } from './provisioner-steps.ts';
import { durationText } from './time-text.ts';

/** A running scheduler has said something about a Pod after this time, in milliseconds. */
const scheduledWithinMs = 2 * 60_000;
const usualScheduler = 'default-scheduler';
/** What the scheduler says of a Pod whose claim lost its node because the provisioner could not create the volume there. */
const provisioningFailed = /provisioning failed for PVC|selectedNode annotation reset/;

/** Of a class whose claims wait for a Pod: whether there is one, and what the scheduler says. */
export function lookAtConsumer(facts: ClaimFacts): Finding | undefined {
  const { claim, storageClass, pods, nowMs } = facts;
  const ofClass = found(storageClass);
  if (storageClass?.kind === 'unreadable' && selectedNode(claim) === '' && requestedProvisioner(claim) === undefined) {
    return { state: 'unknown', detail: 'whether its class waits for a Pod is not visible', ends: true };
  }
  if (ofClass === undefined) return undefined;
  if (!waitsForConsumer(claim, ofClass)) {
    if (ofClass.provisioner !== noProvisioner) return undefined;
    return staticOnly(`The class has the provisioner ${noProvisioner}, which provisions no volumes.`);
  }
  if (pods?.kind === 'unreadable') return { state: 'unknown', detail: pods.why, ends: true };
  const using = (found(pods) ?? []).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  if (using.length === 0) {
    return {
      state: 'waiting',
      cause: 'waits-for-consumer',
      message: `StorageClass ${ofClass.metadata.name} waits for the first Pod that uses the claim, and there is none yet.`,
      cure: 'Nothing: the volume is provisioned once a Pod uses the claim',
    };
  }
  return failureElsewhere(facts, using) ?? mostHopeful(using.map((pod) => podFinding(pod, nowMs)));
}

/** One Pod that gets a node is enough: that another one is unschedulable does not matter then. */
function mostHopeful(findings: readonly Holding[]): Holding | undefined {
  return (
    findings.find(({ cause }) => cause === 'waits-for-consumer') ??
    findings.find(({ state }) => state === 'stuck') ??
    findings[0]
  );
}

/** The failure after which the provisioner gave up the chosen node, so that the scheduler chooses again. */
function failureElsewhere(facts: ClaimFacts, using: readonly Pod[]): Holding | undefined {
  const { nowMs } = facts;
  const { failed } = claimHistory(facts);
  if (failed === undefined || nowMs - failed.atMs > signOfLifeMs) return undefined;
  const isBeingScheduled = using.some((pod) => {
    if (!isForScheduler(pod)) return false;
    const refusal = refusalOf(pod);
    return refusal === undefined || provisioningFailed.test(refusal);
  });
  if (!isBeingScheduled) return undefined;
  return failedAttempt(failed, facts, 'the scheduler is to choose a node again');
}

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
      message: `Pod ${metadata.name} uses the claim, and no scheduler has said anything about it for ${durationText(ageMs)}. Its scheduler is ${schedulerName}.`,
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
      message: `Pod ${metadata.name} uses the claim, and the scheduler makes room for it on node ${nominated}: Pods of lower priority have to end first.`,
      cure: 'Nothing: it is scheduled once they have ended',
    };
  }
  const noRoom = refusal.includes('enough free storage');
  return {
    state: 'stuck',
    cause: noRoom ? 'no-capacity' : 'pod-unschedulable',
    message: `Pod ${metadata.name} uses the claim and cannot be scheduled. The scheduler: ${refusal}`,
    cure: noRoom
      ? 'Free storage on a node that fits the Pod, request less, or use another class'
      : 'Make a node fit the Pod; the volume is provisioned once a node is chosen',
  };
}
