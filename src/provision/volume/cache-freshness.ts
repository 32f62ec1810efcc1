import type { Clock } from '../../base/clock.ts';
import { type Moment, momentOf, passedMs } from '../../base/permit.ts';
import type { PersistentVolume } from '../objects.ts';

/**
 * How far the cache may be behind before a released volume is read live, in milliseconds. lastPhaseTransitionTime has
 * whole seconds.
 */
export const maxStalenessMs = 2000;

/** By how much the API server's clock may seem to be ahead before the lateness of events can no longer be judged, in milliseconds. */
const maxAheadMs = 1000;

/**
 * How far the cache of volumes has come, by the latest lastPhaseTransitionTime seen: all volumes arrive over one watch, in
 * order. So while many are released, those that wait in the queue need no live read. Where the API server's clock is ahead, each
 * is read live.
 */
export class CacheFreshness {
  readonly #clock: Pick<Clock, 'monotonicMs' | 'wallMs'>;
  /** Changes until then are in the cache. */
  #reachedAt: Moment | undefined;
  /** Whether the API server's clock is ahead by an unknown amount, so that a late event does not look late. */
  #isAhead = false;

  constructor(clock: Pick<Clock, 'monotonicMs' | 'wallMs'>) {
    this.#clock = clock;
  }

  /** A watch event of a volume has arrived. */
  note({ status }: PersistentVolume): void {
    if (status?.lastPhaseTransitionTime === undefined) return;
    const now = momentOf(this.#clock);
    const sinceMs = now.wallMs - Date.parse(status.lastPhaseTransitionTime);
    if (sinceMs < -maxAheadMs) this.#isAhead = true;
    const ageMs = Math.max(sinceMs, 0);
    const at = { monotonicMs: now.monotonicMs - ageMs, wallMs: now.wallMs - ageMs };
    if (at.monotonicMs > (this.#reachedAt?.monotonicMs ?? -Infinity)) this.#reachedAt = at;
  }

  /** Whether the cache has caught up for this volume. Always true without lastPhaseTransitionTime (before Kubernetes 1.29). */
  isFresh({ status }: PersistentVolume): boolean {
    if (status?.lastPhaseTransitionTime === undefined) return true;
    return (
      !this.#isAhead &&
      this.#reachedAt !== undefined &&
      passedMs(this.#reachedAt, momentOf(this.#clock)) <= maxStalenessMs
    );
  }
}
