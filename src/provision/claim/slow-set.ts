import type { Clock } from '../../base/clock.ts';

/** How long an infeasible claim is held back, in milliseconds; fixed, as in the original. */
export const slowRetentionMs = 300_000;

/**
 * Claims whose provisioning can never succeed unchanged (the driver returned InvalidArgument): no new attempt for five
 * minutes, unless their class is recreated. The five minutes count from the first failure; repeats do not prolong them.
 */
export class SlowSet {
  readonly #clock: Clock;
  readonly #entries = new Map<string, { untilMs: number; classUid: string }>();

  constructor(options: { clock: Clock }) {
    this.#clock = options.clock;
  }

  add(claimUid: string, classUid: string): void {
    this.#sweep();
    if (this.#entries.has(claimUid)) return;
    this.#entries.set(claimUid, { untilMs: this.#clock.monotonicMs() + slowRetentionMs, classUid });
  }

  /** Whether the claim must wait still; another class UID ends the wait at once. */
  holdsBack(claimUid: string, classUid: string): boolean {
    const entry = this.#entries.get(claimUid);
    if (entry === undefined) return false;
    if (entry.classUid === classUid && entry.untilMs > this.#clock.monotonicMs()) return true;
    this.#entries.delete(claimUid);
    return false;
  }

  /** The claim is gone, or has a volume. */
  delete(claimUid: string): void {
    this.#entries.delete(claimUid);
  }

  clear(): void {
    this.#entries.clear();
  }

  /** Entries come in the order of time, so the expired ones are first. */
  #sweep(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [claimUid, { untilMs }] of this.#entries) {
      if (untilMs > nowMs) return;
      this.#entries.delete(claimUid);
    }
  }
}
