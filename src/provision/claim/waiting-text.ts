import { DrainingError, ForeignIntentError, OtherProvisionerError } from '../intent-journal/intent-journal.ts';
import { NameInUseError } from '../intents/intent-index.ts';
import { VolumePendingDeletionError } from './served-intent.ts';

/** The text of an event that says for whom or what a claim waits; undefined for an error that is no such wait. */
export function waitingText(error: unknown): string | undefined {
  if (error instanceof NameInUseError) return `Waiting: ${error.message}`;
  if (error instanceof DrainingError) return `Waiting for the end of a drain: ${error.message}`;
  if (error instanceof OtherProvisionerError) return `Waiting for another provisioner: ${error.message}`;
  if (error instanceof ForeignIntentError) return `Waiting for another process: ${error.message}`;
  return error instanceof VolumePendingDeletionError ? `Waiting for a deletion: ${error.message}` : undefined;
}
