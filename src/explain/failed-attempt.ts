/** What holds a claim whose last attempt has failed. */
import { type Arrival, arrival } from './after-cure.ts';
import { attempts, type FailedAttempt, withClassAge } from './attempts.ts';
import { failureMeaning } from './causes/causes.ts';
import type { ClaimFacts } from './claim-facts-reader.ts';
import { cureText } from './cure-text.ts';
import { driverLogText } from './driver-log.ts';
import type { Holding } from './explanation.ts';
import { failuresText, type Recorded } from './provisioning-events.ts';
import { quotedError } from './quoted-error.ts';
import { durationText } from './time-text.ts';

/** Defaults of `--retry-interval-start` and `--retry-interval-max`, in milliseconds. */
const retryStartMs = 1000;
const retryMaxMs = 5 * 60_000;
/** By how much an attempt may be late before the provisioner seems not to work, in milliseconds. */
const maxDelayMs = 2 * 60_000;

/** A volume that takes longer than this, or an API server that is away for longer, needs somebody, in milliseconds. */
const passesWithinMs = 10 * 60_000;

/** What the failure says, and what happens next. */
export function failedHolding({ failed, next }: FailedAttempt, facts: ClaimFacts): Holding {
  const { nowMs } = facts;
  const history = attempts(facts);
  const { started } = history;
  const isRunning = started !== undefined && started.atMs > failed.atMs;
  const again = isRunning
    ? `another attempt has been running for ${durationText(nowMs - started.atMs)}`
    : (next ?? nextAttempt(failed, facts));
  const came = arrival(failed, facts);
  if (came !== undefined && next === undefined) return curedHolding(came, { failed, again, isRunning }, facts);
  const meaning = failureMeaning(failed.text, { facts, recorded: failed.cause });
  const { cause } = meaning;
  const goesOn = (cause === 'api-server' || meaning.late !== undefined) && nowMs - failed.sinceMs < passesWithinMs;
  return withClassAge(facts, history, {
    state: goesOn ? 'waiting' : 'stuck',
    cause,
    message: `Provisioning ${failuresText(failed, nowMs)}; ${again}. Last error: ${quotedError(failed.text)}`,
    cure: cureText(meaning, { isLate: !goesOn, log: driverLogText(facts.driverPod) }),
  });
}

/** What the attempt lacked is there now. */
function curedHolding(
  { text, sinceMs }: Arrival,
  { failed, again, isRunning }: { failed: Recorded; again: string; isRunning: boolean },
  facts: ClaimFacts,
): Holding {
  const { nowMs } = facts;
  const isOverdue = !isRunning && nowMs - Math.max(dueMs(failed, facts), sinceMs) > maxDelayMs;
  return {
    state: isOverdue ? 'stuck' : 'waiting',
    cause: 'in-progress',
    presumes: true,
    message: `${text}, for ${durationText(nowMs - sinceMs)}; ${again}. The last one, ${durationText(nowMs - failed.atMs)} ago, failed without it: ${quotedError(failed.text)}`,
    cure: isOverdue
      ? 'The provisioner should have tried again: see whether it runs, and its log'
      : 'Nothing: the provisioner tries again by itself',
  };
}

/** When the next attempt is due; the pause doubles with each failure. */
function dueMs(failed: Recorded, { nowMs, nextAttemptInMs }: ClaimFacts): number {
  const slow = failed.text.includes('infeasible error');
  const pauseMs = slow ? retryMaxMs : Math.min(retryMaxMs, retryStartMs * 2 ** Math.min(failed.count, 20));
  return nextAttemptInMs === undefined ? failed.atMs + pauseMs : nowMs + nextAttemptInMs;
}

function nextAttempt(failed: Recorded, facts: ClaimFacts): string {
  const { nowMs, nextAttemptOnce } = facts;
  if (nextAttemptOnce !== undefined) return `the next attempt comes once ${nextAttemptOnce}`;
  const leftMs = dueMs(failed, facts) - nowMs;
  return leftMs > 0 ? `the next attempt is due within ${durationText(leftMs + 1000)}` : 'the next attempt is due';
}
