/** The records that the revoker has to work on: of volumes that no claim wants, and of saved ones until no late call can be under way. */
import type { Clock } from '../../base/clock.ts';
import { ExponentialLimiter } from '../../kube/queue/rate-limiter.ts';
import { WorkQueue } from '../../kube/queue/work-queue.ts';
import { isUndone, heldInMs } from '../intents/intent-state.ts';
import type { Intent } from '../intents/intent.ts';
import type { Intents } from '../intents/intents.ts';

/** Pauses between attempts, in milliseconds; what is stuck is tried after the longest. */
export const revokePauses = { baseMs: 1000, maxMs: 300_000 } as const;

export class RevokeQueue {
  /** By UID of the claim. */
  readonly keys: WorkQueue;
  readonly #intents: Intents;
  readonly #clock: Clock;

  constructor({ intents, clock }: { intents: Intents; clock: Clock }) {
    this.keys = new WorkQueue({ limiter: new ExponentialLimiter(revokePauses), clock });
    this.#intents = intents;
    this.#clock = clock;
  }

  /** Has an intent revoked whose claim does not want its volume any more. Safe to repeat. */
  add(intent: Intent): void {
    if (intent.state.kind === 'foreign') return; // found again once the other process has been silent for long enough
    const { uid } = intent.record.claim;
    const isQueued = isUndone(intent.state) && this.keys.stateOf(uid).state !== 'absent'; // it keeps its pause
    this.#intents.on(intent, { type: 'unwanted' });
    if (isUndone(intent.state) && !isQueued) this.keys.add(uid);
  }

  /**
   * Closes the record of a volume that is saved: now, or later if a call that was given up, or one of another process, may still be under way.
   * Such a call could recreate storage that was deleted meanwhile, so until then nothing is deleted. As with `Intents.close`,
   * the write to its Lease is not awaited. Safe to repeat.
   *
   * @returns whether it was closed now.
   */
  closeNowOrAfterLateCalls(intent: Intent): boolean {
    const isDone = this.#intents.on(intent, { type: 'saved' });
    if (isDone) this.#intents.close(intent);
    else this.keys.addAfter(intent.record.claim.uid, heldInMs(intent.state, this.#clock.monotonicMs()));
    return isDone;
  }
}
