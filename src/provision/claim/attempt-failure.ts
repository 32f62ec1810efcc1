/** What follows from a failed attempt: for the claim, and for the record of its volume. */
import type { Logger } from '../../base/logger.ts';
import type { Lister } from '../../kube/cache/store.ts';
import type { Recorder } from '../../kube/events/event-recorder.ts';
import { objectKey } from '../../kube/kube-object.ts';
import { nodeName } from '../cache/cached-claim.ts';
import { uidIndex } from '../cache/informers.ts';
import { claimReference, claimUid, className } from '../claim-fields.ts';
import { causeAnnotation, failedReason, type MeaningOf } from '../event-reasons.ts';
import { begunOf, isBeingDeleted, type Problem } from '../intents/intent-state.ts';
import type { Intent } from '../intents/intent.ts';
import type { Intents } from '../intents/intents.ts';
import { type PersistentVolumeClaim, selectedNodeKey, type StorageClass } from '../objects.ts';
import { ProvisionError } from '../provisioner.ts';
import { DeletionRefusedError } from '../revoke/deletion-guard.ts';
import type { RevokeQueue } from '../revoke/revoke-queue.ts';
import { Failed, Stopped } from './attempt-steps.ts';
import type { InfeasibleClaims, Rescheduler } from './claim-states.ts';

interface FailureOptions {
  classes: Lister<StorageClass>;
  infeasibleClaims: InfeasibleClaims;
  rescheduler: Rescheduler;
  recorder: Recorder;
  /** Default: the log line has the error alone. */
  meaningOf?: MeaningOf | undefined;
  logger: Logger;
}

/**
 * Handles a failed attempt: the event on the claim, the pause of an infeasible one, and the selection of another node.
 */
export async function handleFailure(
  claim: PersistentVolumeClaim,
  failure: ProvisionError,
  options: FailureOptions,
  signal: AbortSignal,
): Promise<Failed | Stopped> {
  const { recorder, infeasibleClaims, rescheduler, classes, meaningOf, logger } = options;
  const reportFailure = (message: string): void =>
    recorder.event(claimReference(claim), 'Warning', failedReason, message, {
      logged: true,
      ...causeAnnotation(message, failure, meaningOf),
    });

  if (failure.infeasible) {
    reportFailure(`Volume provisioning failed with infeasible error. Retries will be delayed. ${failure.message}`);
    const classUid = classes.get(className(claim))?.metadata.uid;
    if (classUid !== undefined) infeasibleClaims.add(claimUid(claim), classUid);
    return new Failed(failure);
  }
  reportFailure(failure.message);
  const hasNode = claim.metadata.annotations?.[selectedNodeKey] !== undefined;
  if (failure.state === 'reschedule' && hasNode && (await rescheduler.removeNode(claim, signal))) {
    const { cause, cure } = meaningOf?.(failure.message, failure) ?? {};
    logger.info(
      { claim: objectKey(claim), ...(cause !== undefined && { cause, cure }), err: failure },
      'Another node is to be selected for the claim',
    );
    return new Stopped('node-removed', `another node is to be selected: ${failure.message}`);
  }
  return new Failed(failure);
}

/** Any other error of a provisioner: the attempt failed and nothing runs in the background. */
export function toProvisionError(error: unknown): ProvisionError {
  if (error instanceof ProvisionError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new ProvisionError(message, { state: 'finished', cause: error });
}

interface FailureParts {
  intents: Intents;
  revokeQueue: Pick<RevokeQueue, 'add'>;
  claims: Lister<PersistentVolumeClaim>;
  recorder: Recorder;
}

/**
 * To be called for a failure after a request may have reached the backend.
 *
 * @param couldExist - whether an earlier attempt may have created the storage.
 * @returns what the attempt fails with.
 */
export async function noteFailure(
  parts: FailureParts,
  intent: Intent,
  error: unknown,
  { couldExist, signal }: { couldExist: boolean; signal: AbortSignal },
): Promise<unknown> {
  const { intents } = parts;
  if (!(error instanceof ProvisionError) || error.state === 'in-background') {
    if (!intents.isOpen(intent) && !signal.aborted) await intents.reopen(intent, {}, signal);
  }
  if (error instanceof ProvisionError) return noteProvisionError(parts, intent, error, { couldExist, signal });
  // an error of `beforeDelete`, which comes after a clear result, leaves nothing that may still be under way
  const isClear = begunOf(intent.state)?.storage?.isCurrent === true && !isBeingDeleted(intent.state);
  if (!isClear) intents.unclear(intent);
  const problem = error instanceof DeletionRefusedError ? problemOf(error) : undefined;
  if (problem !== undefined) {
    await intents.onWritten(intent, { type: 'wanted' }, signal); // the volume does not match the request, and must be kept
    intents.on(intent, { type: 'stuck', ...problem });
  } else if (isBeingDeleted(intent.state)) parts.revokeQueue.add(intent);
  return error;
}

/** Why an operator has to decide about a volume that does not match the request; undefined: the next attempt deletes it. */
function problemOf({ refusal, message: text }: DeletionRefusedError): Problem | undefined {
  switch (refusal.kind) {
    case 'seen':
    case 'unproved':
      return { reason: 'unproved', text };
    case 'has-name':
    case 'has-storage':
      return { reason: 'undecidable', text };
    case 'stuck':
      return { reason: refusal.reason, text };
    default:
      return undefined;
  }
}

async function noteProvisionError(
  parts: FailureParts,
  intent: Intent,
  error: ProvisionError,
  { couldExist, signal }: { couldExist: boolean; signal: AbortSignal },
): Promise<ProvisionError> {
  const { intents, revokeQueue } = parts;
  const { state, afterUnclear, message } = error;
  if (state === 'no-change') {
    // nothing was sent: without an earlier request the next attempt makes a new plan
    if (intents.on(intent, { type: 'unsent', mayExist: couldExist })) intents.close(intent);
    else if (afterUnclear === 'undecidable') reportStuck(parts, intent, message);
  } else if (afterUnclear === 'absent') {
    // kept while a late call may recreate the storage: the next attempt fulfils the same plan
    if (await intents.onWritten(intent, { type: 'nothing-left', isWanted: true }, signal))
      await intents.closeNow(intent, signal);
  } else if (isBeingDeleted(intent.state)) {
    revokeQueue.add(intent); // the volume does not match the request, and must be deleted before another one is created
  } else if (state === 'in-background') {
    intents.unclear(intent);
  } else if (!couldExist || (afterUnclear === 'absent-if-repeated' && intents.on(intent, { type: 'no-room' }))) {
    intents.close(intent);
    // another node, which was not tried yet, may be selected by now: the next attempt is for that one
    if (state === 'reschedule' && !hasPlannedNode(parts, intent))
      return new ProvisionError(message, { state: 'finished', cause: error });
  } else {
    if (afterUnclear === 'undecidable') reportStuck(parts, intent, message);
    // an earlier attempt may have left a volume, so no other node may be selected
    if (state === 'reschedule') return new ProvisionError(message, { state: 'in-background', cause: error });
  }
  return error;
}

function hasPlannedNode({ claims }: FailureParts, { record, plannedNode }: Intent): boolean {
  const [cached] = claims.byIndex(uidIndex, record.claim.uid);
  return cached !== undefined && nodeName(cached) === plannedNode;
}

/** Marks an intent as stuck, since what became of it cannot be determined, and records an event on its claim. Safe to repeat. */
export function reportStuck(
  { intents, recorder }: { intents: Intents; recorder: Recorder },
  intent: Intent,
  problem: string,
): void {
  intents.on(intent, { type: 'stuck', reason: 'undecidable', text: problem });
  const message = `An earlier attempt may have left a volume, and what became of it cannot be found out: ${problem}`;
  recorder.event(intent.record.volume.claimRef, 'Warning', failedReason, message, { once: true });
}
