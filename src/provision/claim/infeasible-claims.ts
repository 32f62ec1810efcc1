import type { Clock } from '../../base/clock.ts';
import type { ClaimStates } from './claim-states.ts';

/** How long an infeasible claim is held back, in milliseconds; fixed, as in the Go sidecar. */
export const heldBackMs = 300_000;

/**
 * Claims whose provisioning can never succeed unchanged (the driver returned InvalidArgument): no new attempt for five
 * minutes, unless their class is recreated. The five minutes count from the first failure; repeats do not prolong them.
 */
export class InfeasibleClaims {
  readonly #clock: Clock;
  readonly #states: Pick<ClaimStates, 'of' | 'get' | 'all'>;

  constructor(options: { clock: Clock; states: Pick<ClaimStates, 'of' | 'get' | 'all'> }) {
    this.#clock = options.clock;
    this.#states = options.states;
  }

  add(claimUid: string, classUid: string): void {
    if (this.leftMs(claimUid) > 0) return;
    this.#states.of(claimUid).heldBack = { untilMs: this.#clock.monotonicMs() + heldBackMs, classUid };
  }

  /** To be called before an attempt; another class UID ends the wait at once. @returns whether the claim must wait. */
  mustWait(claimUid: string, classUid: string): boolean {
    const state = this.#states.get(claimUid);
    if (state?.heldBack === undefined) return false;
    if (state.heldBack.classUid === classUid && this.leftMs(claimUid) > 0) return true;
    state.heldBack = undefined;
    return false;
  }

  /** For how long the claim must wait unless its class is recreated, in milliseconds; 0: not at all. */
  leftMs(claimUid: string): number {
    const { untilMs = -Infinity } = this.#states.get(claimUid)?.heldBack ?? {};
    return Math.max(untilMs - this.#clock.monotonicMs(), 0);
  }

  clear(): void {
    for (const state of this.#states.all()) state.heldBack = undefined;
  }
}
