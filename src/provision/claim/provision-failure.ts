import type { Logger } from '../../base/logger.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import { objectKey } from '../../kube/kube-object.ts';
import type { Recorder } from '../../kube/events/recorder.ts';
import { claimReference, claimUid, className } from '../claim-fields.ts';
import { causeAnnotation, failedReason, type MeaningOf } from '../event-reasons.ts';
import type { InfeasibleClaims } from './infeasible-claims.ts';
import { type PersistentVolumeClaim, selectedNodeKey, type StorageClass } from '../objects.ts';
import { ProvisionError } from '../provisioner.ts';
import type { Rescheduler } from './rescheduler.ts';
import { Failed, Stopped } from './attempt-steps.ts';

export interface FailureOptions {
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
