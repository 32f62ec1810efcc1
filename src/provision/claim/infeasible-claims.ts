import type { Clock } from '../../base/clock.ts';
import { shortValue } from '../../base/short-value.ts';

/** How long an infeasible claim is held back, in milliseconds; fixed, as in the Go sidecar. */
export const heldBackMs = 300_000;

/** Max length of the error that is repeated in log lines, in characters. */
const maxProblemLength = 1000;

/** The claim is not tried again yet. */
export class HeldBackError extends Error {
  override readonly name = 'HeldBackError';
  /** The error of the attempt that failed for good. */
  readonly problem: string;

  constructor(claimUid: string, problem: string) {
    super(
      `skipping volume provisioning for pvc ${claimUid}, because provisioning previously failed with infeasible error: ${problem}`,
    );
    this.problem = problem;
  }
}

/**
 * Claims whose provisioning can never succeed unchanged (the driver returned InvalidArgument): no new attempt for five
 * minutes, unless their class is recreated. The five minutes count from the first failure; repeats do not prolong them.
 */
export class InfeasibleClaims {
  readonly #clock: Clock;
  readonly #entries = new Map<string, { untilMs: number; classUid: string; problem: string }>();

  constructor(options: { clock: Clock }) {
    this.#clock = options.clock;
  }

  /** @param problem - why it is infeasible. */
  add(claimUid: string, classUid: string, problem: string): void {
    this.#sweep();
    if (this.#entries.has(claimUid)) return;
    const untilMs = this.#clock.monotonicMs() + heldBackMs;
    this.#entries.set(claimUid, { untilMs, classUid, problem: shortValue(problem, maxProblemLength) });
  }

  /** To be called before an attempt; another class UID ends the wait at once. @throws {HeldBackError} while the claim must wait. */
  checkNotHeldBack(claimUid: string, classUid: string): void {
    const entry = this.#entries.get(claimUid);
    if (entry === undefined) return;
    if (entry.classUid === classUid && entry.untilMs > this.#clock.monotonicMs())
      throw new HeldBackError(claimUid, entry.problem);
    this.#entries.delete(claimUid);
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
