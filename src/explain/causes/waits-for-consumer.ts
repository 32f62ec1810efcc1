/** Its class waits for a Pod that uses the claim (Kubernetes page "Storage Classes", "Volume binding mode"). */
import { requestedProvisioner, selectedNode } from '../../provision/claim/claim-fields.ts';
import { attempts, type FailedAttempt } from '../attempts.ts';
import { type ClaimFacts, waitsForConsumer } from '../claim-facts-reader.ts';
import type { Pod } from '../cluster-objects.ts';
import { found } from '../cluster-reader.ts';
import type { Finding, Holding } from '../explanation.ts';
import type { Recorded } from '../provisioning-events.ts';
import { signOfLifeMs } from '../serving.ts';
import { defineCause } from './cause.ts';
import { isForScheduler, podFinding, refusalOf } from './pod-unschedulable.ts';

export const waitsForPod = defineCause({ name: 'waits-for-consumer' });

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
