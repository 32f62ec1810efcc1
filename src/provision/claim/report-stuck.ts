import type { Recorder } from '../../kube/events/recorder.ts';
import { failedReason } from '../event-reasons.ts';
import type { Intent } from '../intents/intent.ts';
import type { Intents } from '../intents/intents.ts';

/** Marks an intent as stuck, since what became of it cannot be found out, and records an event on its claim. Safe to repeat. */
export function reportStuck(
  { intents, recorder }: { intents: Intents; recorder: Recorder },
  intent: Intent,
  problem: string,
): void {
  intents.stuck(intent, 'undecidable', problem);
  const message = `An earlier attempt may have left a volume, and what became of it cannot be found out: ${problem}`;
  recorder.event(intent.record.volume.claimRef, 'Warning', failedReason, message, { once: true });
}
