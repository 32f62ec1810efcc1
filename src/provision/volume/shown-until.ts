import type { PersistentVolume } from '../objects.ts';

/**
 * How old what the cache shows of a released volume may be without a doubt, in milliseconds. The API server gives the time of the release
 * in whole seconds; its event, and what precedes the deletion, take some more milliseconds.
 */
export const promptMs = 2000;

/**
 * Until when changes of volumes have reached the cache, by the time at which the API server has changed the phase of one: all volumes
 * come over one watch, in order. While many are released, one that waits for its turn need not be read again therefore.
 */
export class ShownUntil {
  #wallMs = -Infinity;

  /** An event has shown a volume. */
  note({ status }: PersistentVolume, nowMs: number): void {
    const changedMs = Date.parse(status?.lastPhaseTransitionTime ?? '');
    if (changedMs > this.#wallMs) this.#wallMs = Math.min(changedMs, nowMs); // clocks differ
  }

  /**
   * Whether a change that was made some time ago would be in the cache. Where it does not say when a volume was released, as of an API
   * server before Kubernetes 1.29, nothing is in doubt.
   */
  isRecent({ status }: PersistentVolume, nowMs: number): boolean {
    const releasedMs = Date.parse(status?.lastPhaseTransitionTime ?? '');
    return Number.isNaN(releasedMs) || nowMs - Math.max(releasedMs, this.#wallMs) <= promptMs;
  }
}
