import { orderOf } from '../../kube/client/resource-version.ts';
import type { FoundIntent } from '../intent-journal/intent-journal.ts';
import type { ReportReason } from '../intent-journal/journal-metrics.ts';
import { type IntentRecord, isLeftAlonePhase } from '../intent-journal/intent-record.ts';
import { holdMs, lateUntil, maxHoldMs } from './call-times.ts';

/** One volume that is being created, or revoked. */
export interface Intent {
  /** As it is in the journal; replaced as a whole. */
  record: IntentRecord;
  /** Its record was written: from then on the backend may be called. */
  recorded: boolean;
  /** The record was durable before the backend was called, and nobody but the leader writes the journal. */
  isDurable: boolean;
  /** The backend may have storage for it, or be creating it. */
  mayExist: boolean;
  /** The node that was selected when this process planned it, see `nodeName`; undefined: another process planned it. */
  plannedNode: string | undefined;
  /** A call of this process that creates the storage is under way. */
  underWay: boolean;
  /** Monotonic time of the last attempt after which the backend may still be at work. */
  unclearAtMs: number;
  /** The backend has reported once, long enough after the last unclear attempt, that it lacks the capacity for it. */
  exhausted: boolean;
  /** The PersistentVolume may have been created, by whatever process. */
  saveAttempted: boolean;
  /** This process has sent a request that creates it. */
  saveSent: boolean;
  /**
   * How many of these requests, with one for those of an earlier process, have had no response that rules out that they are
   * carried out. A success is not subtracted: the intent is `served` then, or closed.
   */
  unclearSaves: number;
  /** A request of ours that creates it may still be carried out until this monotonic time, though nobody waits for it. */
  mayBeSavedUntilMs: number;
  /**
   * No PersistentVolume has had its name from this version on, as far as the volumes' log says so; NaN: nothing can be proved.
   * Moves on while the log is clean.
   */
  since: number;
  /** As `since` was at first: a volume of whatever name that has had the storage from then on counts, too. */
  firstSince: number;
  /** A call that creates the storage may still be under way until this monotonic time, whoever has sent it. */
  lateUntilMs: number;
  /** Monotonic times, in milliseconds, at which this process gave up the first and the last of the calls that the backend may not have read. */
  unread: { firstMs: number; lastMs: number } | undefined;
  /** Monotonic time since which a proof is waited for. */
  pendingSinceMs: number | undefined;
  /** Monotonic time since which every attempt to revoke it has failed for good; undefined: the last one did not. */
  refusedSinceMs: number | undefined;
  /** Why it was reported as stuck in this process. */
  reportedAs: ReportReason | undefined;
  /** The storage, once the backend has named it in this process. */
  foundHandle: string | undefined;
  /** No request that could make other storage was sent since the backend has named `foundHandle`. */
  isHandleCurrent: boolean;
  /** A request to delete the storage may have been sent. */
  deleteSent: boolean;
  /**
   * Monotonic time at which the first such request since the storage was last requested may have been sent; undefined: none was. A call
   * that ended later may have recreated the storage.
   */
  firstDeleteAtMs: number | undefined;
  /** It is left to the revoker; the claim waits, but not for a second revoke. */
  revoking: boolean;
  /**
   * Nothing is deleted before this monotonic time, so that the calls of other processes, or of an attempt to revoke it, have ended: one
   * that completes after the deletion recreates the storage.
   */
  deleteNotBeforeMs: number;
  /**
   * Nor is the storage of a saved volume deleted before this monotonic time, so that calls that were given up, or are those of another
   * process, have ended. An adoption alone does not postpone it.
   */
  keptUntilMs: number;
  /** The PersistentVolume is there; the record is closed once `keptForMs` has passed. */
  served: boolean;
  /** Whether another process may still work on it. */
  owner: 'own' | 'foreign' | 'taken-over';
  /** Why nothing may ever be deleted because of it. */
  reportOnly: string | undefined;
}

/** For how long the API server may still carry out a request that was aborted, in milliseconds. */
export const lateSaveMs = 65_000;

/** Pause until a volume whose storage is being created or revoked is synced again, in milliseconds. */
const busyPauseMs = 1000;

/** Nothing is done for it: an operator, or a claim that wants it again, decides. */
export function isLeftAlone({ record: { phase } }: Intent): boolean {
  return isLeftAlonePhase(phase);
}

/** Monotonic time from which on an intent may be revoked, in milliseconds. */
export function revocableAtMs({ record, deleteNotBeforeMs, mayBeSavedUntilMs, lateUntilMs }: Intent): number {
  return Math.max(deleteNotBeforeMs, mayBeSavedUntilMs, record.phase === 'revoked' ? lateUntilMs : -Infinity);
}

/** Whether the API server may still create its PersistentVolume after the process has ended. */
export function mayBeSavedLate(intent: Intent, nowMs: number): boolean {
  const { unclearSaves, served, revoking, mayBeSavedUntilMs } = intent;
  if (unclearSaves === 0 || served || isLeftAlone(intent)) return false;
  return !revoking || mayBeSavedUntilMs > nowMs; // nothing is sent any more for what is being revoked
}

/**
 * Whether no call that creates the storage could be under way any more when its deletion was first sent, or can be now if none was
 * sent. A call that ends after the deletion may have recreated the storage.
 */
export function needsNoSecondRevoke({ lateUntilMs, firstDeleteAtMs }: Intent, nowMs: number): boolean {
  return lateUntilMs <= (firstDeleteAtMs ?? nowMs);
}

/** The revoker may be at work on it: a claim that wants the volume waits. It does not wait until a second revoke is due. */
export function isBeingRevoked(intent: Intent, nowMs: number): boolean {
  return intent.revoking && (intent.record.phase !== 'revoked' || revocableAtMs(intent) <= nowMs);
}

/**
 * Nobody can have created its PersistentVolume: this process has begun it under a durable record, which another one would have had to
 * take over, and has never sent the PersistentVolume. False where an earlier intent for the claim may have had one, and after a
 * restore of the API server.
 */
export function isNeverSaved({ owner, isDurable, saveAttempted, since }: Intent): boolean {
  return owner === 'own' && isDurable && !saveAttempted && !Number.isNaN(since);
}

/**
 * The storage, where it need not be looked for before it is deleted: it is recorded, or the last request of this process has named it. Where
 * another process may have worked on the record since then, it may have deleted that storage, and a late call may have made other storage.
 */
export function knownHandle({ record, owner, foundHandle, isHandleCurrent }: Intent): string | undefined {
  return record.handle ?? (owner === 'own' && isHandleCurrent ? foundHandle : undefined);
}

export function newIntent(record: IntentRecord): Intent {
  return {
    record,
    recorded: false,
    isDurable: false,
    mayExist: false,
    plannedNode: undefined,
    underWay: false,
    unclearAtMs: -Infinity,
    exhausted: false,
    saveAttempted: false,
    saveSent: false,
    unclearSaves: 0,
    mayBeSavedUntilMs: -Infinity,
    since: orderOf(record.since),
    firstSince: orderOf(record.since),
    lateUntilMs: -Infinity,
    unread: undefined,
    pendingSinceMs: undefined,
    refusedSinceMs: undefined,
    reportedAs: undefined,
    foundHandle: undefined,
    isHandleCurrent: false,
    deleteSent: false,
    firstDeleteAtMs: undefined,
    revoking: false,
    deleteNotBeforeMs: -Infinity,
    keptUntilMs: -Infinity,
    served: false,
    owner: 'own',
    reportOnly: undefined,
  };
}

/** One that another process has begun. */
export function foundIntent(
  { record, owner, reportOnly }: FoundIntent,
  { keptUntilMs, nowMs, maxCallMs }: { keptUntilMs: number; nowMs: number; maxCallMs: number },
): Intent {
  const { phase, handle, noLateCalls = false } = record;
  const deleteSent = handle !== undefined && phase !== 'unproved';
  return {
    ...newIntent(record),
    recorded: true,
    mayExist: true,
    plannedNode: undefined,
    unclearAtMs: nowMs,
    saveAttempted: true,
    saveSent: true,
    unclearSaves: record.lateSave === true ? 1 : 0,
    mayBeSavedUntilMs: record.lateSave === true ? nowMs + lateSaveMs : -Infinity,
    deleteSent,
    firstDeleteAtMs: deleteSent && !noLateCalls ? -Infinity : undefined, // by the other process, nobody knows when
    deleteNotBeforeMs: nowMs + holdMs(maxCallMs),
    lateUntilMs: deleteSent && noLateCalls ? -Infinity : lateUntil(nowMs, maxCallMs),
    keptUntilMs,
    owner,
    reportOnly,
  };
}

/**
 * For how long a call that was given up, or one of another process, may recreate the storage of a saved volume, in milliseconds; 0 or
 * less: none can. While the backend may not have read such a call, for a minute at most, a short pause after which to check again.
 */
export function keptForMs(intent: Intent, nowMs: number): number {
  return Math.max(intent.keptUntilMs - nowMs, Math.min(busyPauseMs, unreadUntilMs(intent) - nowMs));
}

/** Until when calls that the backend may not have read are waited for at the latest, in monotonic milliseconds; -Infinity: there are none. */
function unreadUntilMs({ unread }: Intent): number {
  return unread === undefined ? -Infinity : unread.firstMs + maxHoldMs;
}

/**
 * For how long the storage of the intent's PersistentVolume must stay, in milliseconds: while a call that was given up, or is that of
 * another process, may recreate it; while a call of our own is under way, where another process has saved the volume; and while
 * the revoker, which creates the storage to find it, checks whether it may go.
 */
export function quietInMs(intent: Intent, nowMs: number): number {
  const keptMs = keptForMs(intent, nowMs);
  if (intent.underWay) return Math.max(keptMs, busyPauseMs);
  if (isLeftAlone(intent)) return 0;
  const { revoking, owner, deleteNotBeforeMs, record } = intent;
  const isRevoked = revoking && owner !== 'foreign' && deleteNotBeforeMs <= nowMs && record.phase !== 'revoked';
  return Math.max(keptMs, isRevoked ? busyPauseMs : 0);
}

/**
 * What an intent waits for.
 *
 * - `earlier-call`: a call of another process, or one of our own that had no clear result, may still create the storage.
 * - `other-process`: its record is that of another process, which may be alive.
 * - `late-save`: the API server may still carry out a request that creates its PersistentVolume.
 * - `proof`: what happened to PersistentVolumes is still being read.
 * - `second-revoke`: nothing is left of it, and it is revoked a second time once no late call can create it.
 */
export type WaitReason = (typeof waitReasons)[number];

export const waitReasons = ['earlier-call', 'other-process', 'late-save', 'proof', 'second-revoke'] as const;

/** A wait of an intent that is to be revoked, or closed. */
export interface IntentWait {
  readonly reason: WaitReason;
  /**
   * When it ends, in monotonic milliseconds, at the latest for a proof and for a call that the backend may not have read; undefined: once
   * the other process is done.
   */
  readonly untilMs: number | undefined;
}

/** A proof that could not be read for so long is given up, in milliseconds. */
export const maxProofMs = 15 * 60_000;

/** Why nothing is done now about an intent that is to be revoked, or closed; undefined: it does not wait. */
export function waitReason(intent: Intent, nowMs: number): WaitReason | undefined {
  return intentWait(intent, nowMs)?.reason;
}

/** The same, with the end of the wait. */
export function intentWait(intent: Intent, nowMs: number): IntentWait | undefined {
  const { record, revoking, served, owner, keptUntilMs, deleteNotBeforeMs, mayBeSavedUntilMs, lateUntilMs } = intent;
  const until = (reason: WaitReason, untilMs: number): IntentWait | undefined =>
    untilMs > nowMs ? { reason, untilMs } : undefined;
  if (served) return until('earlier-call', Math.max(keptUntilMs, unreadUntilMs(intent)));
  if (!revoking || isLeftAlone(intent)) return undefined;
  if (owner === 'foreign') return { reason: 'other-process', untilMs: undefined };
  if (deleteNotBeforeMs > nowMs) return { reason: 'earlier-call', untilMs: deleteNotBeforeMs };
  if (record.phase === 'revoked') return until('second-revoke', lateUntilMs);
  if (mayBeSavedUntilMs > nowMs) return { reason: 'late-save', untilMs: mayBeSavedUntilMs };
  return intent.pendingSinceMs === undefined
    ? undefined
    : { reason: 'proof', untilMs: intent.pendingSinceMs + maxProofMs };
}
