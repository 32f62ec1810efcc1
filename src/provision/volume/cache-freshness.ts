import type { PersistentVolume } from '../objects.ts';

/**
 * How far the cache may be behind before a released volume is read live, in milliseconds. lastPhaseTransitionTime has
 * whole seconds.
 */
export const maxStalenessMs = 2000;

/**
 * How far the cache of volumes has come, by the latest lastPhaseTransitionTime seen: all volumes arrive over one watch, in
 * order. So while many are released, those that wait in the queue need no live read.
 */
export class CacheFreshness {
  #wallMs = -Infinity;

  /** A watch event of a volume has arrived. */
  note({ status }: PersistentVolume, nowMs: number): void {
    const changedMs = Date.parse(status?.lastPhaseTransitionTime ?? '');
    if (changedMs > this.#wallMs) this.#wallMs = Math.min(changedMs, nowMs); // clocks differ
  }

  /** Whether the cache has caught up for this volume. Always true without lastPhaseTransitionTime (before Kubernetes 1.29). */
  isFresh({ status }: PersistentVolume, nowMs: number): boolean {
    const releasedMs = Date.parse(status?.lastPhaseTransitionTime ?? '');
    return Number.isNaN(releasedMs) || nowMs - Math.max(releasedMs, this.#wallMs) <= maxStalenessMs;
  }
}
