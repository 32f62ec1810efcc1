/** What holds a claim whose last attempt has failed. */
import type { KubeObject } from '../kube/kube-object.ts';
import { allowsSource } from '../provision/objects.ts';
import { attempts, type FailedAttempt, withClassAge } from './attempts.ts';
import { failureMeaning } from './causes/causes.ts';
import { missingAnnotations, webhookGone } from './causes/failure.ts';
import { snapshotProblem } from './causes/snapshot.ts';
import { sourceName } from './causes/source.ts';
import type { ClaimFacts } from './claim-facts-reader.ts';
import { found, type Reading } from './cluster-reader.ts';
import { driverLogText } from './driver-log.ts';
import type { Holding } from './explanation.ts';
import { failuresText, type Recorded } from './provisioning-events.ts';
import { cureText, durationText, lastChangeMs, quotedError } from './texts.ts';

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
  const mayPass = (cause === 'api-server' && !webhookGone.test(failed.text)) || meaning.late !== undefined;
  const goesOn = mayPass && nowMs - failed.sinceMs < passesWithinMs;
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

/** By how much the clocks of the provisioner's node and of the API server may differ, in milliseconds. */
const maxSkewMs = 5000;

export interface Arrival {
  /** As in `Secret ns/key exists`. */
  text: string;
  /** In milliseconds since the Unix epoch. */
  sinceMs: number;
}

/** @returns undefined where the error may still hold. */
export function arrival({ text, atMs }: Recorded, facts: ClaimFacts): Arrival | undefined {
  const came = arrived(text, facts);
  return came === undefined || came.sinceMs < atMs - maxSkewMs ? undefined : came;
}

function arrived(text: string, facts: ClaimFacts): Arrival | undefined {
  const { claim, secret, source, sourceClaim, snapshot, grants, attributesClass } = facts;
  if (/error getting secret .* not found/s.test(text)) {
    const { namespace = '', name = '' } = secret?.reference ?? {};
    return arrivalOf(secret?.reading, `Secret ${namespace}/${name} exists`);
  }
  if (/error resolving value .*invalid tokens: /s.test(text)) {
    const keys = missingAnnotations(text);
    const isThere = keys.length > 0 && keys.every((key) => claim.metadata.annotations?.[key] !== undefined);
    return isThere
      ? { text: `The claim has the annotation ${keys.join(', ')}`, sinceMs: lastChangeMs(claim) }
      : undefined;
  }
  if (/volumeattributesclass.* not found/s.test(text)) {
    return arrivalOf(attributesClass, `VolumeAttributesClass ${claim.spec.volumeAttributesClassName ?? ''} exists`);
  }
  if (source === undefined) return undefined;
  const name = sourceName(source);
  if (/^accessing .* isn't allowed$/.test(bare(text))) {
    const grant = found(grants)?.find((each) => allowsSource(each, claim.metadata.namespace ?? '', source));
    return grant && { text: `ReferenceGrant ${grant.metadata.name} allows ${name}`, sinceMs: lastChangeMs(grant) };
  }
  if (/error getting (PVC|snapshot) .* not (found|installed)/s.test(text)) {
    return arrivalOf<KubeObject>(sourceClaim ?? snapshot, `${name} exists`);
  }
  if (/is not Ready$|not bound( or invalid)?$|must have a status of Bound|error getting snapshotcontent /.test(text)) {
    const value = found<KubeObject>(sourceClaim ?? snapshot);
    const isReady = value !== undefined && (snapshot === undefined || snapshotProblem(facts) === undefined);
    return isReady ? { text: `${name} is ready`, sinceMs: lastChangeMs(value) } : undefined;
  }
  return undefined;
}

function bare(text: string): string {
  return text.replace(/^failed to provision volume with StorageClass "[^"]*": /, '');
}

function arrivalOf<T extends KubeObject>(reading: Reading<T> | undefined, text: string): Arrival | undefined {
  const made = found(reading)?.metadata.creationTimestamp;
  return typeof made !== 'string' ? undefined : { text, sinceMs: Date.parse(made) };
}
