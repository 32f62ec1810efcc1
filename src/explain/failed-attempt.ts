/** What holds a claim whose last attempt has failed. */
import { attempts, type FailedAttempt, withClassAge } from './attempts.ts';
import { failureMeaning } from './causes/causes.ts';
import type { ClaimFacts } from './claim-facts-reader.ts';
import type { Holding } from './explanation.ts';
import { failuresText, type Recorded } from './provisioning-events.ts';
import { durationText } from './time-text.ts';

/** Defaults of `--retry-interval-start` and `--retry-interval-max`, in milliseconds. */
const retryStartMs = 1000;
const retryMaxMs = 5 * 60_000;

/** After these codes the driver may still be at work (CSI specification, "Error Scheme"). */
const unfinished = /code = (DeadlineExceeded|Aborted) /;
/** A volume that takes longer than this, or an API server that is away for longer, needs somebody, in milliseconds. */
const unfinishedMs = 10 * 60_000;

/** What the failure says, and what happens next. */
export function failedHolding({ failed, next }: FailedAttempt, facts: ClaimFacts): Holding {
  const { nowMs } = facts;
  const history = attempts(facts);
  const { started } = history;
  const { cause, cure } = failureMeaning(failed.text, { facts, recorded: failed.cause });
  const isRunning = started !== undefined && started.atMs > failed.atMs;
  const again = isRunning
    ? `another attempt has been running for ${durationText(nowMs - started.atMs)}`
    : (next ?? nextAttempt(failed, facts));
  const goesOn = (cause === 'api-server' || unfinished.test(failed.text)) && nowMs - failed.sinceMs < unfinishedMs;
  return withClassAge(facts, history, {
    state: goesOn ? 'waiting' : 'stuck',
    cause,
    message: `Provisioning ${failuresText(failed, nowMs)}; ${again}. Last error: ${failed.text}`,
    cure,
  });
}

/** The pause doubles with each failure. */
function nextAttempt(failed: Recorded, { nowMs, nextAttemptInMs, nextAttemptOnce }: ClaimFacts): string {
  if (nextAttemptOnce !== undefined) return `the next attempt comes once ${nextAttemptOnce}`;
  const slow = failed.text.includes('infeasible error');
  const pauseMs = slow ? retryMaxMs : Math.min(retryMaxMs, retryStartMs * 2 ** Math.min(failed.count, 20));
  const leftMs = nextAttemptInMs ?? failed.atMs + pauseMs - nowMs;
  return leftMs > 0 ? `the next attempt is due within ${durationText(leftMs + 1000)}` : 'the next attempt is due';
}
