/** Until when a request that nobody waits for any more may still be carried out: one that was given up, or is that of another process. */

/** The present, and how long a call to the backend may take, in milliseconds. */
export interface Time {
  readonly nowMs: number;
  readonly maxCallMs: number;
}

/** Calls that create storage. */
export interface Calls {
  /** Monotonic time at which the last of them was given up, or found. */
  readonly sinceMs: number;
  /** From this monotonic time on none is under way, but for those that the backend may not have read. */
  readonly endMs: number;
  /** Those that the backend may not have read: when the first and the last of them were given up. */
  readonly unread: { readonly firstMs: number; readonly lastMs: number } | undefined;
}

/** Requests that create the PersistentVolume. */
export interface Saves {
  /** One may have been sent, by whatever process. */
  readonly isSent: boolean;
  /** This process waits for the response to one. */
  readonly isSending: boolean;
  /** From this monotonic time on none is under way, but for that one. */
  readonly endMs: number;
}

export const noCalls: Calls = { sinceMs: -Infinity, endMs: -Infinity, unread: undefined };
export const noSaves: Saves = { isSent: false, isSending: false, endMs: -Infinity };

/**
 * The storage of a PersistentVolume, which people see, waits no longer than this for late calls, in milliseconds: by then the calls of a dead
 * process have lost their connection, and what a slower call recreates is found by audit.
 */
const maxHoldMs = 60_000;
/** A call that nobody waits for any more ends within this multiple of the time that a call may take. */
const lateFactor = 1.5;
/** For how long the API server may still carry out a request that was aborted, in milliseconds. */
const lateSaveMs = 65_000;
/** How long another process may go on before it notices that its record was adopted, and the claim is served or gone, in milliseconds. */
const noticeMs = 10_000;
/** A backend that takes longer to read what it was sent has stalled, in milliseconds; a quarter of the time of a call, if that is less. */
const promptMs = 1000;

/** From when on no call is under way, in monotonic milliseconds; Infinity while that is not known. */
export function callsEndMs({ endMs, unread }: Calls): number {
  return unread === undefined ? endMs : Infinity;
}

/** From when on no request that creates the PersistentVolume is under way, in monotonic milliseconds. */
export function savesEndMs({ isSending, endMs }: Saves): number {
  return isSending ? Infinity : endMs;
}

/** Until when the storage of a PersistentVolume is kept for late calls, in monotonic milliseconds: for a minute at most after the last one. */
export function heldUntilMs({ sinceMs, endMs, unread }: Calls): number {
  return Math.max(Math.min(endMs, sinceMs + maxHoldMs), unread === undefined ? -Infinity : unread.firstMs + maxHoldMs);
}

/**
 * Calls of the process that has written a record which is this process's now. It has ended, or its permit has, seconds before another process
 * could lead: what it has sent was sent before this.
 *
 * @param sinceMs - when they were found first.
 */
export function callsFound(sinceMs: number, { nowMs, maxCallMs }: Time): Calls {
  return { sinceMs, endMs: nowMs + lateFactor * maxCallMs, unread: undefined };
}

/** A call was given up. @param isBehind - the backend may not have read it. */
export function callGivenUp({ endMs, unread }: Calls, isBehind: boolean, { nowMs, maxCallMs }: Time): Calls {
  const firstMs = unread?.firstMs ?? nowMs;
  return {
    sinceMs: nowMs,
    endMs: Math.max(endMs, nowMs + lateFactor * maxCallMs),
    unread: isBehind ? { firstMs, lastMs: nowMs } : unread,
  };
}

/** The former owner of the record, which may be alive, may begin a last call until it notices. */
export function callOfOther({ endMs, unread }: Calls, { nowMs, maxCallMs }: Time): Calls {
  return { sinceMs: nowMs, endMs: Math.max(endMs, nowMs + noticeMs + lateFactor * maxCallMs), unread };
}

/**
 * The backend has read what was given up before `untilMs`. If that took long, it has stalled, and may have begun the calls only when it
 * resumed: then they may take as long as a call that is sent now and given up.
 */
export function callsRead(calls: Calls, untilMs: number, { nowMs, maxCallMs }: Time): Calls {
  const { endMs, unread } = calls;
  if (unread === undefined || unread.lastMs >= untilMs) return calls;
  if (nowMs - unread.firstMs <= Math.min(promptMs, maxCallMs / 4)) return { ...calls, unread: undefined };
  return { sinceMs: nowMs, endMs: Math.max(endMs, nowMs + (1 + lateFactor) * maxCallMs), unread: undefined };
}

/** A request that creates the PersistentVolume has ended. @param isClear - it will not be carried out any more, if it was not. */
export function saveEnded(saves: Saves, isClear: boolean, { nowMs }: Time): Saves {
  return { isSent: true, isSending: false, endMs: isClear ? saves.endMs : nowMs + lateSaveMs };
}
