/** What the events say about the attempts of the provisioner and its driver. */
import { shortValue } from '../base/short-value.ts';
import { isInTree } from './provisioner-facts.ts';
import { type ClaimFacts, provisionerOf } from './claim-facts-reader.ts';
import { found } from './cluster-reader.ts';
import type { Finding, Holding } from './explanation.ts';
import { failureCause, waitingCause } from './failure-causes.ts';
import { failuresText, provisioningHistory, type History, type Recorded } from './provisioning-events.ts';
import { leaseRightsCure, signOfLifeMs } from './provisioner-steps.ts';
import { durationText, lastChangeMs } from './time-text.ts';

/** Defaults of `--retry-interval-start` and `--retry-interval-max`, in milliseconds. */
const retryStartMs = 1000;
const retryMaxMs = 5 * 60_000;
/** A working provisioner has started on a claim by then, in milliseconds. */
const beginsWithinMs = 2 * 60_000;

/** After these codes the driver may still be at work (CSI specification, "Error Scheme"). */
const unfinished = /code = (DeadlineExceeded|Aborted) /;
/** A volume that takes longer than this needs somebody, in milliseconds. */
const unfinishedMs = 10 * 60_000;
/** By how much the clocks of the provisioner's node and of the API server may differ, in milliseconds. */
const maxSkewMs = 60_000;

export function lookAtAttempt(facts: ClaimFacts): Finding {
  const { events, claim, nowMs } = facts;
  if (events?.kind === 'unreadable') return { state: 'unknown', detail: events.why };
  const history = claimHistory(facts);
  const { started, failed, waiting, succeeded } = history;
  // a volume that was deleted before it was bound is followed by another attempt
  if (succeeded !== undefined && succeeded.atMs >= Math.max(failed?.atMs ?? 0, started?.atMs ?? 0)) {
    return {
      state: 'waiting',
      cause: 'volume-made',
      message: `The provisioner created the volume ${durationText(nowMs - succeeded.atMs)} ago, and kube-controller-manager has not bound it yet. (${succeeded.text})`,
      cure: 'Usually nothing: it takes a moment. If it stays like this, check that kube-controller-manager runs',
    };
  }
  const isNewest = waiting !== undefined && waiting.atMs >= Math.max(failed?.atMs ?? 0, started?.atMs ?? 0);
  const wait = isNewest ? waitingCause(waiting.text) : undefined;
  if (isNewest && wait !== undefined) {
    const { state, cause, cure } = wait;
    return {
      state,
      cause,
      cure,
      message: `The provisioner ${durationText(nowMs - waiting.atMs)} ago: ${waiting.text}.`,
    };
  }
  if (failed !== undefined) return failedAttempt(failed, facts);
  if (started !== undefined) {
    return withClassAge(facts, history, {
      state: 'waiting',
      cause: 'in-progress',
      presumes: nowMs - started.atMs > signOfLifeMs,
      message: `The driver has been creating the volume for ${durationText(nowMs - started.sinceMs)}, and no attempt has failed.`,
      cure: 'Nothing. If it takes longer than the driver usually needs, see the log of its controller',
    });
  }
  return notBegun(facts, nowMs - lastChangeMs(claim));
}

/** The attempts to make the claim's volume, as far as they were read. */
export function claimHistory({ claim, storageClass, events }: ClaimFacts): History {
  return provisioningHistory(found(events) ?? [], provisionerOf(claim, found(storageClass)));
}

/**
 * What a failure says.
 *
 * @param next - what happens then, unless another attempt is running already. Default: the usual next attempt.
 */
export function failedAttempt(failed: Recorded, facts: ClaimFacts, next?: string): Holding {
  const { nowMs } = facts;
  const history = claimHistory(facts);
  const { started } = history;
  const { cause, cure } = failureCause(failed.text);
  const isRunning = started !== undefined && started.atMs > failed.atMs;
  const again = isRunning
    ? `another attempt has been running for ${durationText(nowMs - started.atMs)}`
    : (next ?? nextAttempt(failed, nowMs));
  const goesOn = unfinished.test(failed.text) && nowMs - failed.sinceMs < unfinishedMs;
  return withClassAge(facts, history, {
    state: goesOn ? 'waiting' : 'stuck',
    cause,
    message: `Provisioning ${failuresText(failed, nowMs)}; ${again}. Last error: ${failed.text}`,
    cure: goesOn ? 'Usually nothing: the driver may still be creating the volume, and is called again' : cure,
  });
}

/** What was begun with an earlier class of the name goes on with its parameters: see "A class that was recreated meanwhile" in docs/troubleshooting.md. */
function withClassAge(facts: ClaimFacts, { started, failed }: History, holding: Holding): Holding {
  const { name, creationTimestamp } = found(facts.storageClass)?.metadata ?? { name: '' };
  const firstMs = Math.min(started?.sinceMs ?? Infinity, failed?.sinceMs ?? Infinity);
  const isRecreated = firstMs > 0 && Date.parse(creationTimestamp ?? '') > firstMs + maxSkewMs;
  if (!isRecreated) return holding;
  return {
    ...holding,
    cure: `${holding.cure ?? ''}. StorageClass ${name} was recreated after the first attempt: if the volume is still requested with the earlier parameters, recreate the claim`,
  };
}

/** The pause doubles with each failure. */
function nextAttempt(failed: Recorded, nowMs: number): string {
  const slow = failed.text.includes('infeasible error');
  const pauseMs = slow ? retryMaxMs : Math.min(retryMaxMs, retryStartMs * 2 ** Math.min(failed.count, 20));
  const leftMs = failed.atMs + pauseMs - nowMs;
  return leftMs > 0 ? `the next attempt is due within ${durationText(leftMs + 1000)}` : 'the next attempt is due';
}

function notBegun({ claim, provisioner, storageClass }: ClaimFacts, ageMs: number): Finding {
  const name = provisionerOf(claim, found(storageClass));
  const leads = (found(provisioner?.leases) ?? []).length > 0;
  const seemsAway = ageMs > signOfLifeMs && !leads && !isInTree(name) && provisioner?.leases.kind === 'found';
  if (seemsAway) {
    return {
      state: 'stuck',
      cause: 'no-leader',
      presumes: true,
      message: `The provisioner ${shortValue(name)} seems to have no leader, or not to be running: it has no Lease, and has recorded no event about the claim, which was handed to it ${durationText(ageMs)} ago.`,
      cure: `Check that the Pods of the provisioner run (with --node-deployment: the one on the claim's node), and see what they log. ${leaseRightsCure()}`,
    };
  }
  return {
    state: 'waiting',
    cause: 'in-progress',
    presumes: true,
    message: `The claim was handed to provisioner ${shortValue(name)}, which has not started on it${ageMs > beginsWithinMs ? ` for ${durationText(ageMs)}` : ' yet'}.`,
    cure:
      ageMs > beginsWithinMs
        ? 'See the log of the provisioner: it may be busy, or lack the right to record events'
        : 'Nothing yet',
  };
}
