import type { Clock } from '../../base/clock.ts';

/** How long an infeasible claim is held back, in milliseconds; fixed, as in the Go sidecar. */
export const heldBackMs = 300_000;

/**
 * Claims whose provisioning can never succeed unchanged (the driver returned InvalidArgument): no new attempt for five
 * minutes, unless their class is recreated. The five minutes count from the first failure; repeats do not prolong them.
 */
export class InfeasibleClaims {
  readonly #clock: Clock;
  readonly #entries = new Map<string, { untilMs: number; classUid: string }>();

  constructor(options: { clock: Clock }) {
    this.#clock = options.clock;
  }

  add(claimUid: string, classUid: string): void {
    this.#sweep();
    if (this.#entries.has(claimUid)) return;
    const untilMs = this.#clock.monotonicMs() + heldBackMs;
    this.#entries.set(claimUid, { untilMs, classUid });
  }

  /** To be called before an attempt; another class UID ends the wait at once. @returns whether the claim must wait. */
  mustWait(claimUid: string, classUid: string): boolean {
    const entry = this.#entries.get(claimUid);
    if (entry === undefined) return false;
    if (entry.classUid === classUid && this.leftMs(claimUid) > 0) return true;
    this.#entries.delete(claimUid);
    return false;
  }

  /** For how long the claim must wait unless its class is recreated, in milliseconds; 0: not at all. */
  leftMs(claimUid: string): number {
    return Math.max((this.#entries.get(claimUid)?.untilMs ?? -Infinity) - this.#clock.monotonicMs(), 0);
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
