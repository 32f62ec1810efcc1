import { ForeignIntentError } from './intent-journal/intent-journal.ts';
import { NameInUseError } from './open-intents.ts';
import { VolumeLeavingError } from './served-intent.ts';

/** What a claim waits for, as the text of an event; undefined for an error that is not somebody else's to end. */
export function waitingText(error: unknown): string | undefined {
  if (error instanceof NameInUseError) return `Waiting: ${error.message}`;
  if (error instanceof ForeignIntentError) return `Waiting for another process: ${error.message}`;
  return error instanceof VolumeLeavingError ? `Waiting for a deletion: ${error.message}` : undefined;
}
