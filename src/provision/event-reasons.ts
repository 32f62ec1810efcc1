/** What events say: their reasons, parts of texts that more than one file has, and what failures and waits mean. */
import type { Recorder } from '../kube/events/event-recorder.ts';

/** Event reasons, and parts of texts, that more than one file has. */

export const succeededReason = 'ProvisioningSucceeded';
export const failedReason = 'ProvisioningFailed';
export const waitingReason = 'ProvisioningWaiting';
/** On a claim whose selected node cannot use its volume. */
export const misplacedReason = 'VolumeMisplaced';
export const deletionWaitingReason = 'VolumeDeletionWaiting';
/** The volume is in use, such as attached to a node: its deletion is tried again. */
export const deletionPostponedReason = 'VolumeDelete';
/** The end of the text about a volume that is attached to a node. */
export const untilDetachedText = ', waiting for detach';
/** Between the names of the two volumes. */
export const sharedStorageText = 'has the same storage as persistentvolume';
/** Between the name of a volume and what its deletion waits for: a moment, in RFC 3339, or the end of a call. */
export const deletedAfterText = 'is deleted after';
export const deletedOnceText = 'is deleted once a call has ended';

/** Annotation of an event about a failed attempt: its cause, in the words of `why`, which sees nothing but the text otherwise. */
export const causeKey = 'csi-provisioner/cause';

/** On the Lease, and on the Pod of a standby whose identity another process has. */
export const electionWaitingReason = 'LeaderElectionWaiting';

/** On the Pod of a leader that cannot work yet; the text says why. */
export const notReadyReason = 'ProvisionerNotReady';

interface TextMeaning {
  /** Such as `class-not-found`. */
  cause: string;
  /** What to do, without a full stop. */
  cure: string;
}

/**
 * @param text - of a failed attempt, or of an event that says what a claim waits for.
 * @param error - with which the attempt failed.
 */
export type MeaningOf = (text: string, error?: unknown) => TextMeaning | undefined;

/** The annotation of an event about a failed attempt. */
export function causeAnnotation(
  text: string,
  error: unknown,
  meaningOf: MeaningOf | undefined,
): { annotations?: Record<string, string> } {
  const cause = meaningOf?.(text, error)?.cause;
  return cause === undefined ? {} : { annotations: { [causeKey]: cause } };
}

/** Adds to events of waiting claims what to do, and to those of failures the cause: else an aggregate keeps that of an earlier one. */
export function withCures(recorder: Recorder, meaningOf: MeaningOf): Recorder {
  return {
    event(...given) {
      const [about, type, reason, message, options] = given;
      const cure = reason === waitingReason ? meaningOf(message)?.cure : undefined;
      const cause =
        reason === failedReason && options?.annotations === undefined
          ? causeAnnotation(message, undefined, meaningOf)
          : undefined;
      if (cure !== undefined) recorder.event(about, type, waitingReason, `${message}. ${cure}`, options);
      else if (cause !== undefined) recorder.event(about, type, failedReason, message, { ...options, ...cause });
      else recorder.event(...given);
    },
  };
}

/** Fields of the log line about a failed attempt. */
export function meaningFields(error: unknown, meaningOf: MeaningOf): TextMeaning | object {
  const message = error instanceof Error ? error.message : String(error);
  return meaningOf(message, error) ?? {};
}
