import { DrainingError, ForeignIntentError, OtherProvisionerError } from '../intent-journal/intent-journal.ts';
import { NameInUseError } from '../intents/intent-index.ts';
import { Failed, Waiting } from './attempt-steps.ts';
import { VolumePendingDeletionError } from './served-intent.ts';

/** For what an attempt waits that has found that something else has to end first; nothing has failed. See `claimWakes`. */
export type AttemptWait = 'name-in-use' | 'draining' | 'other-record' | 'foreign-record' | 'volume-leaving';

const beginnings: Record<AttemptWait, string> = {
  'name-in-use': 'Waiting',
  draining: 'Waiting for the end of a drain',
  'other-record': 'Waiting for another provisioner',
  'foreign-record': 'Waiting for another process',
  'volume-leaving': 'Waiting for a deletion',
};

/** What an attempt ends with that was given up with this error. */
export function endOf(error: unknown): Waiting | Failed {
  return attemptWait(error) === undefined ? new Failed(error) : new Waiting(error as Error);
}

/** Undefined for an error that is no such wait. */
export function attemptWait(error: unknown): AttemptWait | undefined {
  if (error instanceof NameInUseError) return 'name-in-use';
  if (error instanceof DrainingError) return 'draining';
  if (error instanceof OtherProvisionerError) return 'other-record';
  if (error instanceof ForeignIntentError) return 'foreign-record';
  return error instanceof VolumePendingDeletionError ? 'volume-leaving' : undefined;
}

/** The text of an event that says for whom or what a claim waits; undefined for an error that is no such wait. */
export function waitingText(error: unknown): string | undefined {
  const wait = attemptWait(error);
  return wait && `${beginnings[wait]}: ${(error as Error).message}`;
}
