/** How long calls to the backend that nobody waits for any more may still run. */

/**
 * Max time for which a deletion waits until no call can recreate the storage, in milliseconds: by then the calls of a dead process
 * have lost their connection, and what a slower call recreates is found by the second revoke, or by audit.
 */
export const maxHoldMs = 60_000;

/** A call that nobody waits for any more ends within this multiple of the time that a call may take. */
const lateFactor = 1.5;

/**
 * How long nothing is deleted after a take-over, in milliseconds. Where every call has ended by then, the storage is deleted once: a
 * second revoke, which can find storage by its name only by creating it, is not needed.
 */
export function holdMs(maxCallMs: number): number {
  return Math.min(lateFactor * maxCallMs, maxHoldMs);
}

/** When a call that has just ended without a clear result can no longer run at the backend, in monotonic milliseconds. */
export function lateUntil(nowMs: number, maxCallMs: number): number {
  return nowMs + lateFactor * maxCallMs;
}
