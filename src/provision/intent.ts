import type { FoundIntent } from './intent-journal/intent-journal.ts';
import type { ReportReason } from './intent-journal/journal-metrics.ts';
import type { IntentRecord } from './intent-journal/intent-record.ts';

/** One volume in the making, or being undone. */
export interface Intent {
  /** As it is in the journal; replaced as a whole. */
  record: IntentRecord;
  /** Its record was written: from then on the backend may be asked. */
  recorded: boolean;
  /** The backend may have storage for it, or be making it. */
  mayExist: boolean;
  /** A call of this process that makes the storage is under way. */
  underWay: boolean;
  /** Monotonic time of the last attempt after which the backend may still be at work. */
  unclearAtMs: number;
  /** The backend has said once, long enough after the last unclear attempt, that it has no room for it. */
  exhausted: boolean;
  /** The PersistentVolume may have been created, by whatever process. */
  saveAttempted: boolean;
  /** Monotonic time since which every attempt to undo it has failed for good; undefined: the last one did not. */
  refusedSinceMs: number | undefined;
  /** Why it was reported as stuck in this process. */
  reportedAs: ReportReason | undefined;
  /** The backend may have been told to delete the storage. */
  deleteSent: boolean;
  /** The revoker works on it; the claim waits. */
  revoking: boolean;
  /**
   * Nothing is deleted before this monotonic time: calls of other processes must have ended. One that came later than the
   * deletion would make the storage again.
   */
  deleteNotBeforeMs: number;
  /** Nor is the storage of a saved volume before this monotonic time. An adoption does not put it off. */
  keptUntilMs: number;
  /** The PersistentVolume is there; the record is closed at `keptUntilMs`. */
  served: boolean;
  /** Another process may still work on it. */
  owner: 'own' | 'foreign' | 'taken-over';
  /** Why nothing may ever be deleted because of it. */
  reportOnly: string | undefined;
}

/**
 * How long a process whose record was taken over may go on before its watch shows that the claim is served or gone, in
 * milliseconds.
 */
const noticeMs = 10_000;

/** Pause until a volume whose storage is being made or revoked is looked at again, in milliseconds. */
const busyPauseMs = 1000;

export function newIntent(record: IntentRecord): Intent {
  return {
    record,
    recorded: false,
    mayExist: false,
    underWay: false,
    unclearAtMs: -Infinity,
    exhausted: false,
    saveAttempted: false,
    refusedSinceMs: undefined,
    reportedAs: undefined,
    deleteSent: false,
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
  return {
    ...newIntent(record),
    recorded: true,
    mayExist: true,
    unclearAtMs: nowMs,
    saveAttempted: true,
    deleteSent: record.handle !== undefined,
    deleteNotBeforeMs: nowMs + maxCallMs,
    keptUntilMs,
    owner,
    reportOnly,
  };
}

/** The claim is served or gone: a process that still works on a record that was taken over from it makes its last call. */
export function awaitOthers(intent: Intent, { nowMs, maxCallMs }: { nowMs: number; maxCallMs: number }): void {
  if (intent.owner !== 'taken-over') return;
  const endMs = nowMs + noticeMs + maxCallMs;
  intent.deleteNotBeforeMs = Math.max(intent.deleteNotBeforeMs, endMs);
  intent.keptUntilMs = Math.max(intent.keptUntilMs, endMs);
}

/**
 * For how long the storage of the intent's PersistentVolume must stay, in milliseconds: while a call of an earlier process may
 * make it again, or one of our own where a process beside this one has saved the volume, and while the revoker, which makes it to
 * find it, looks whether it may go.
 */
export function quietInMs(intent: Intent, nowMs: number): number {
  if (intent.underWay) return Math.max(intent.keptUntilMs - nowMs, busyPauseMs);
  if (intent.record.phase === 'stuck') return 0;
  const isRevoked = intent.revoking && intent.owner !== 'foreign' && intent.deleteNotBeforeMs <= nowMs;
  return Math.max(intent.keptUntilMs - nowMs, isRevoked ? busyPauseMs : 0);
}
