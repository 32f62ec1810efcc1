/**
 * The states of a volume that is being created, or revoked, and all that leads from one to another: `next`. An intent begins in `recording`, or
 * in the state that `foundState` (`intent.ts`) makes of a record. Everything else does what they say, and reports back what has happened. Times are
 * monotonic, in milliseconds.
 *
 * There is one notion of time, `quietAtMs`: from then on no request that was sent for the volume can be under way. What no claim needs is
 * deleted then, once. Where its storage is not known, it is looked for by a call that creates it: when it is quiet, or at once if its source is
 * held for that, which may be repeated until the storage is known; a late call finds it then, too.
 */
import type { StuckReason } from '../intent-journal/intent-journal.ts';
import {
  callGivenUp,
  callOfOther,
  type Calls,
  callsEndMs,
  callsRead,
  heldUntilMs,
  noCalls,
  noSaves,
  saveEnded,
  type Saves,
  savesEndMs,
  type Time,
} from './earlier-requests.ts';

export type IntentState = Recording | Creating | Saved | Revoking | Deleting | Stuck | Foreign;

/**
 * Its record is being written, and the backend was not called.
 *
 * At the backend: nothing, but for a late call of an earlier attempt for the name. Durable: perhaps the record. Acts: the claim's worker,
 * which waits for the record. Ends: with the record; it is closed if that is refused.
 */
interface Recording {
  readonly kind: 'recording';
  /** Of an earlier attempt for the same name, whose record is closed. */
  readonly calls: Calls;
}

/** What is known of the requests that may have been sent. */
interface Begun {
  /** The backend may have storage for it, or be creating it. */
  readonly mayExist: boolean;
  /** An attempt has ended without a clear result, or the storage was looked for: a call that may create it was perhaps sent. */
  readonly isUnclear: boolean;
  readonly calls: Calls;
  readonly saves: Saves;
  /** As the backend has named it in this process, or as it was recorded. Current: nothing that could create another one was sent since. */
  readonly storage: { readonly handle: string; readonly isCurrent: boolean } | undefined;
  /** The backend has reported that it lacks the capacity, when no earlier call was under way. */
  readonly lacksRoom: boolean;
  /** It was begun by this process under a durable record, and nobody else writes the journal. */
  readonly isAlone: boolean;
  /** It was taken over from a process that may be alive. */
  readonly isShared: boolean;
  /** Why it was stuck before: the record says so until something else is known. */
  readonly problem: Problem | undefined;
}

/** Why it is left to an operator. */
export interface Problem {
  readonly reason: StuckReason;
  readonly text: string;
}

/**
 * Its claim wants it.
 *
 * At the backend, if `mayExist`: the storage, or a call that creates it. Its PersistentVolume may exist, if `saves.isSent`. Durable: the
 * record, in the phase `create` or `unclear`. Acts: the claim's worker, then the store. Ends: when it is saved, when it is certain that
 * nothing was created, or when the claim does not want it any more.
 */
interface Creating extends Begun {
  readonly kind: 'creating';
  /** This process waits for a response to a call. */
  readonly isCalling: boolean;
}

/**
 * Its PersistentVolume exists.
 *
 * At the backend: the storage, which late calls find. Durable: the record, as it was before. Acts: nobody; until `heldUntilMs` the storage is
 * not deleted. Ends: soon after that.
 */
interface Saved {
  readonly kind: 'saved';
  readonly calls: Calls;
}

/** What the revoker knows. */
interface Undone extends Begun {
  /** The revoker is at work on it, or an attempt that deletes what does not match the request. */
  readonly isWorking: boolean;
  /** Since when a proof is waited for. */
  readonly proofSinceMs: number | undefined;
  /** Since when each attempt was refused. */
  readonly refusedSinceMs: number | undefined;
}

/**
 * No claim wants it, and no deletion was recorded.
 *
 * At the backend: as while it was being created. Durable: the record as it was; in the phase `revoke` while it waits, if the claim is gone; in
 * `unclear` from the first look on. Acts: the revoker. It looks for the storage by a call that creates it, and deletes it when it is quiet. Unless
 * it is at work, a claim that wants the volume gets it back at once, as nothing was deleted. Ends: when the deletion is recorded, or with a
 * PersistentVolume that has the storage.
 */
export interface Revoking extends Undone {
  readonly kind: 'revoking';
  /** It is recorded for how long it must still be waited, as no process sends anything that creates storage until then. */
  readonly isWaitRecorded: boolean;
}

/**
 * The deletion of its storage is recorded.
 *
 * At the backend: the storage; unless `isLast`, also what a late call recreates. Durable: the record, in the phase `delete`. Acts: the revoker.
 * Ends: when the storage is deleted, with the record if `isLast`; or as the claim wants it again, if nothing was sent.
 */
export interface Deleting extends Undone {
  readonly kind: 'deleting';
  readonly storage: NonNullable<Begun['storage']>;
  /** It was quiet when the deletion was first sent. */
  readonly isLast: boolean;
  readonly isSent: boolean;
  /** Under a claim that exists nothing is deleted before: a deletion by a process that has ended could hit storage that is created then. */
  readonly notBeforeMs: number;
}

/**
 * What is left cannot be determined, or may be kept on purpose.
 *
 * At the backend: as before. Durable: the record, in the phase `stuck`. Acts: an operator; its claim, if it wants the volume; the
 * revoker now and then, unless it is unproved. Ends: when it is discarded, or resolved by one of them.
 */
interface Stuck {
  readonly kind: 'stuck';
  readonly problem: Problem;
  /** The state in which that was found. */
  readonly was: Creating | Revoking | Deleting;
}

/**
 * Its record is that of another process, which may be alive.
 *
 * At the backend: anything. Acts: the other process; this one takes it over for a claim that wants it. Ends: when the other one has closed it, or
 * was silent for so long that it is found again as that of this process.
 */
interface Foreign {
  readonly kind: 'foreign';
  readonly calls: Calls;
  /** As in its record. */
  readonly isUnclear: boolean;
  readonly problem: Problem | undefined;
}

/** What has happened, or is about to happen, to an intent. */
export type IntentEvent =
  /** The record is written, or cannot be. */
  | { readonly type: 'recorded'; readonly isAlone: boolean }
  /** The backend is about to be called for the claim. `call-ended` follows, before what the call has shown. */
  | { readonly type: 'called' }
  | { readonly type: 'call-ended' }
  /** The backend was not called after all; `mayExist` is as it was before. */
  | { readonly type: 'unsent'; readonly mayExist: boolean }
  /** The backend has named the storage: the last request to it had a clear result. */
  | { readonly type: 'named'; readonly handle: string }
  /** The storage is created. */
  | { readonly type: 'made' }
  /** A call has ended without a clear result. `isBehind`: the backend may not have read it. */
  | { readonly type: 'unclear'; readonly isBehind: boolean }
  /** The backend lacks the capacity for it. */
  | { readonly type: 'no-room' }
  /** A request that creates the PersistentVolume is about to be sent. */
  | { readonly type: 'save-sent' }
  /** It has ended. `isClear`: it will not be carried out any more, if it was not. */
  | { readonly type: 'save-ended'; readonly isClear: boolean }
  | { readonly type: 'saved' }
  /** The claim is gone, or has another volume. */
  | { readonly type: 'unwanted' }
  | { readonly type: 'wanted' }
  | { readonly type: 'work-begun' }
  | { readonly type: 'work-ended' }
  /** The storage is about to be looked for by a call that may create it. */
  | { readonly type: 'looks' }
  /** It must be waited until it is quiet. */
  | { readonly type: 'waits'; readonly isClaimGone: boolean }
  /** The storage is about to be deleted: once that is recorded the request is sent. */
  | { readonly type: 'deletes'; readonly handle: string }
  /** The request that deletes the storage is about to be sent. */
  | { readonly type: 'delete-sent' }
  /** Nothing is left at the backend now; a call that is still under way may create it again. */
  | { readonly type: 'nothing-left'; readonly isWanted: boolean }
  /** The history of PersistentVolumes is still being read. */
  | { readonly type: 'proof-pending'; readonly text: string }
  /** The backend neither creates the volume nor says that there is none; `isUndecidable`: it never will. */
  | { readonly type: 'refused'; readonly text: string; readonly isUndecidable: boolean }
  | ({ readonly type: 'stuck' } & Problem)
  /** Its record was that of another process, which may be alive. */
  | { readonly type: 'taken-over' }
  /** Such a process has closed its record during a call of this one. */
  | { readonly type: 'reopened' }
  /** The backend has read what was given up before this time. */
  | { readonly type: 'read'; readonly untilMs: number };

/**
 * How the record follows the state: `note` in passing; `ensure` before anything else happens; `put` likewise, also where it does not change, as
 * the write shows whether another process has adopted the record.
 */
type Write = 'none' | 'note' | 'ensure' | 'put';

export interface Next {
  readonly state: IntentState;
  readonly write: Write;
  /** Nothing is left to do for it: its record is to be closed. */
  readonly isDone: boolean;
}

/** @returns undefined for an event that the state does not expect. */
type Transition<T extends IntentEvent['type']> = (
  state: IntentState,
  event: Extract<IntentEvent, { type: T }>,
  time: Time,
) => Next | undefined;

/** A proof that could not be read for so long is given up. */
export const maxProofMs = 15 * 60_000;
/** A backend that has only refused for so long is left to an operator. */
const refusedMs = 30 * 60_000;

/** How much of a backend's text a record may hold, in characters. */
const maxProblemLength = 2000;

const nothingSent = {
  mayExist: false,
  isUnclear: false,
  calls: noCalls,
  saves: noSaves,
  storage: undefined,
  lacksRoom: false,
  isAlone: false,
  isShared: false,
  problem: undefined,
} as const satisfies Begun;

/** What may have been sent by another process: anything. */
export function anythingSent(calls: Calls, changes: Partial<Begun> = {}): Begun {
  return { ...nothingSent, mayExist: true, calls, saves: { ...noSaves, isSent: true }, ...changes };
}

function to(state: IntentState, write: Write = 'none'): Next {
  return { state, write, isDone: false };
}

function done(state: IntentState): Next {
  return { state, write: 'none', isDone: true };
}

function begun(state: Begun): Begun {
  const { mayExist, isUnclear, calls, saves, storage, lacksRoom, isAlone, isShared, problem } = state;
  return { mayExist, isUnclear, calls, saves, storage, lacksRoom, isAlone, isShared, problem };
}

export function creating(state: Begun): Creating {
  return { ...begun(state), kind: 'creating', isCalling: false };
}

const notWorking = { isWorking: false, proofSinceMs: undefined, refusedSinceMs: undefined };

export function revoking(state: Begun): Revoking {
  return { ...begun(state), kind: 'revoking', ...notWorking, isWaitRecorded: false };
}

export function deleting(
  state: Begun,
  more: Pick<Deleting, 'storage' | 'isLast' | 'isSent' | 'notBeforeMs'>,
): Deleting {
  return { ...begun(state), kind: 'deleting', ...notWorking, ...more };
}

function notCurrent(storage: Begun['storage']): Begun['storage'] {
  return storage && { ...storage, isCurrent: false };
}

function isBegun(state: IntentState): state is Creating | Revoking | Deleting {
  return state.kind === 'creating' || isUndone(state);
}

export function isUndone(state: IntentState): state is Revoking | Deleting {
  return state.kind === 'revoking' || state.kind === 'deleting';
}

/** The state with which one that is stuck goes on. */
function unstuck(state: IntentState): IntentState {
  return state.kind === 'stuck' ? { ...state.was, problem: state.problem } : state;
}

function idle<S extends Creating | Revoking | Deleting>(state: S): S {
  return state.kind === 'creating' ? { ...state, isCalling: false } : { ...state, isWorking: false };
}

/** Changes what is known of requests, also for one that is stuck. */
function withBegun(state: IntentState, change: (of: Begun) => Partial<Begun>): Next | undefined {
  if (state.kind === 'stuck') return to({ ...state, was: { ...state.was, ...change(state.was) } as Stuck['was'] });
  return isBegun(state) ? to({ ...state, ...change(state) } as IntentState) : undefined;
}

/** Leaves it to an operator. Of what may be kept on purpose no deletion is completed. A backend may word the same problem differently each time. */
function leave(state: IntentState, found: Problem): Next | undefined {
  const was = unstuck(state);
  if (!isBegun(was)) return undefined;
  const { reason } = found;
  const problem =
    was.problem?.reason === reason ? was.problem : { reason, text: found.text.slice(0, maxProblemLength) };
  return to({ kind: 'stuck', problem, was: problem.reason === 'unproved' ? creating(was) : idle(was) }, 'note');
}

/** What each event leads to. */
export const transitions: { readonly [T in IntentEvent['type']]: Transition<T> } = {
  recorded: (state, { isAlone }) =>
    state.kind === 'recording' ? to(creating({ ...nothingSent, calls: state.calls, isAlone })) : undefined,

  called: (given) => {
    const state = unstuck(given);
    if (state.kind !== 'creating') return undefined;
    return to({ ...state, isCalling: true, mayExist: true, storage: notCurrent(state.storage) });
  },

  'call-ended': (state) => (state.kind === 'creating' || state.kind === 'deleting' ? to(idle(state)) : undefined),

  unsent: (state, { mayExist }) => {
    if (state.kind !== 'creating') return undefined;
    return mayExist ? to(state) : done({ ...state, mayExist });
  },

  named: (state, { handle }) => {
    if (!isBegun(state)) return undefined;
    const failing = state.kind === 'revoking' && { refusedSinceMs: undefined };
    return to({ ...state, storage: { handle, isCurrent: true }, ...failing });
  },

  made: (state) => (state.kind === 'creating' ? to({ ...state, lacksRoom: false }) : undefined),

  unclear: (state, { isBehind }, time) => {
    if (state.kind === 'deleting') return to(state); // before it was recorded, each call that creates had a clear result
    if (state.kind !== 'creating' && state.kind !== 'revoking') return undefined;
    const calls = callGivenUp(state.calls, isBehind, time);
    const unclear = { isUnclear: true, lacksRoom: false, storage: notCurrent(state.storage), calls };
    const failing = state.kind === 'revoking' && { proofSinceMs: undefined, refusedSinceMs: undefined };
    return to({ ...state, ...unclear, ...failing }, 'note');
  },

  // a driver that has the volume returns it, however full its backend is
  'no-room': (state, _, { nowMs }) => {
    if (state.kind !== 'creating' && state.kind !== 'revoking') return undefined;
    if (state.storage !== undefined || nowMs < callsEndMs(state.calls)) return to(state);
    return state.lacksRoom ? done(state) : to({ ...state, lacksRoom: true });
  },

  'save-sent': (state) => withBegun(state, ({ saves }) => ({ saves: { ...saves, isSent: true, isSending: true } })),

  'save-ended': (state, { isClear }, time) =>
    withBegun(state, ({ saves }) => ({ saves: saveEnded(saves, isClear, time) })),

  saved: (state, _, time) => {
    if (state.kind === 'recording') return undefined;
    const known = callsOf(state);
    const calls = begunOf(state)?.isShared === true ? callOfOther(known, time) : known;
    const saved: Saved = { kind: 'saved', calls };
    return heldUntilMs(calls) > time.nowMs ? to(saved) : done(saved);
  },

  unwanted: (given, _, time) => {
    if (isUndone(given)) return to(given);
    if (given.kind === 'stuck' && given.problem.reason === 'unproved') return to(given);
    const state = unstuck(given);
    if (state.kind === 'deleting') return to(state);
    if (state.kind !== 'creating' && state.kind !== 'revoking') return undefined;
    if (state.problem?.reason === 'unproved') return to({ kind: 'stuck', problem: state.problem, was: idle(state) });
    return to(revoking({ ...state, calls: state.isShared ? callOfOther(state.calls, time) : state.calls }));
  },

  wanted: (state) => {
    if (state.kind === 'foreign' || isBeingDeleted(state)) return to(state);
    if (state.kind === 'stuck') return to({ ...state, was: creating(state.was) }, 'ensure');
    return isBegun(state) ? to(creating(state), 'ensure') : undefined;
  },

  'work-begun': (state) => (isUndone(state) ? to({ ...state, isWorking: true }) : undefined),

  'work-ended': (state) => to(isUndone(state) ? idle(state) : state),

  // what is recorded of a wait holds until it is taken back, whoever reads it
  looks: (state) =>
    state.kind === 'revoking' ? to({ ...state, isUnclear: true, isWaitRecorded: false }, 'ensure') : undefined,

  // a claim that exists may be provisioned by a process that keeps no records: for it nothing is recorded
  waits: (state, { isClaimGone }) => {
    if (state.kind !== 'revoking') return undefined;
    const isWaitRecorded = isClaimGone && !state.isShared && callsEndMs(state.calls) < Infinity;
    const problem = state.storage?.isCurrent === true ? undefined : state.problem;
    return to({ ...state, proofSinceMs: undefined, problem, isWaitRecorded }, 'ensure');
  },

  deletes: (state, { handle }, { nowMs }) => {
    if (!isBegun(state)) return undefined;
    const storage = { handle, isCurrent: true };
    if (state.kind === 'deleting' && state.isSent) return to({ ...state, storage, problem: undefined }, 'put');
    const { notBeforeMs = -Infinity } = state.kind === 'deleting' ? state : {};
    const isWorking = state.kind === 'creating' ? state.isCalling : state.isWorking;
    const more = { storage, isLast: quietAtMs(state) <= nowMs, isSent: false, notBeforeMs };
    return to({ ...deleting({ ...state, problem: undefined }, more), isWorking }, 'put');
  },

  'delete-sent': (state) => (state.kind === 'deleting' ? to({ ...state, isSent: true }) : undefined),

  'nothing-left': (state, { isWanted }, { nowMs }) => {
    if (!isBegun(state)) return undefined;
    if (state.kind === 'deleting' ? state.isLast : quietAtMs(state) <= nowMs) return done(state);
    const nothing = { ...state, storage: undefined, isUnclear: true, problem: undefined };
    return to(isWanted ? creating(nothing) : revoking(nothing), 'ensure');
  },

  'proof-pending': (state, { text }, { nowMs }) => {
    if (!isUndone(state)) return undefined;
    const { proofSinceMs = nowMs } = state;
    if (nowMs - proofSinceMs >= maxProofMs) return leave(state, { reason: 'unproved', text });
    return to({ ...state, proofSinceMs });
  },

  // what is being deleted is known to exist, and needs no decision
  refused: (state, { text, isUndecidable }, { nowMs }) => {
    if (!isUndone(state)) return undefined;
    const { refusedSinceMs = nowMs } = state;
    const isLong = state.kind === 'revoking' && nowMs - refusedSinceMs >= refusedMs;
    if (isUndecidable || isLong) return leave(state, { reason: 'undecidable', text });
    return to({ ...state, refusedSinceMs });
  },

  stuck: (state, { reason, text }) => {
    const isKnown = reason === 'unproved' && problemOf(state)?.reason === 'unproved';
    return isKnown ? to(state) : leave(state, { reason, text });
  },

  'taken-over': (state, _, time) => {
    if (state.kind !== 'foreign') return undefined;
    const { calls, isUnclear, problem } = state;
    return to(creating(anythingSent(callOfOther(calls, time), { isShared: true, isUnclear, problem })), 'put');
  },

  reopened: (state, _, time) => {
    const { calls, storage } = isBegun(state) ? state : { calls: noCalls, storage: undefined };
    const known = { storage: notCurrent(storage), isShared: true, isUnclear: true };
    return to(creating(anythingSent(callOfOther(calls, time), known)), 'put');
  },

  read: (state, { untilMs }, time) => {
    if (state.kind === 'stuck') return withBegun(state, ({ calls }) => ({ calls: callsRead(calls, untilMs, time) }));
    return to({ ...state, calls: callsRead(state.calls, untilMs, time) });
  },
};

/** The state that follows. @returns undefined for an event that the state does not expect. */
export function next(state: IntentState, event: IntentEvent, time: Time): Next | undefined {
  return (transitions[event.type] as Transition<IntentEvent['type']>)(state, event, time);
}

/** From when on no request that was sent for it can be under way. */
export function quietAtMs({ calls, saves }: Begun): number {
  return Math.max(callsEndMs(calls), savesEndMs(saves));
}

/** From when on its storage may be deleted, if it is proved that it may be. @param isClaimThere - and may wait for another volume. */
export function deletableAtMs(state: IntentState, isClaimThere: boolean): number {
  switch (state.kind) {
    case 'creating': // it does not match the request: its claim waits for no late call
      return savesEndMs(state.saves);
    case 'revoking':
      return quietAtMs(state);
    case 'deleting':
      return isClaimThere ? state.notBeforeMs : -Infinity;
    default:
      return Infinity;
  }
}

/** The storage, where it need not be looked for before it is deleted. */
export function handleToDelete({ kind, storage, isShared }: Revoking | Deleting): string | undefined {
  return kind === 'deleting' || (storage?.isCurrent === true && !isShared) ? storage?.handle : undefined;
}

/**
 * From when on the revoker may act.
 *
 * @param options.isClaimThere - and may wait for another volume.
 * @param options.isHeld - something is held until the storage is known, which must not wait until it is quiet.
 */
export function revocableAtMs(
  state: Revoking | Deleting,
  { isClaimThere, isHeld }: { isClaimThere: boolean; isHeld: boolean },
): number {
  const looksEarly = isHeld && !state.isShared && handleToDelete(state) === undefined;
  return looksEarly ? -Infinity : deletableAtMs(state, isClaimThere);
}

/** What may have been sent; undefined where that is not known, or does not matter any more. */
export function begunOf(state: IntentState): Begun | undefined {
  if (state.kind === 'stuck') return state.was;
  return isBegun(state) ? state : undefined;
}

/** The calls that create storage. */
export function callsOf(state: IntentState): Calls {
  return state.kind === 'stuck' ? state.was.calls : state.calls;
}

/** Why it is, or was, left to an operator. */
export function problemOf(state: IntentState): Problem | undefined {
  return state.kind === 'stuck' ? state.problem : begunOf(state)?.problem;
}

/** The storage as far as it is known. */
export function knownHandle(state: IntentState): string | undefined {
  return begunOf(state)?.storage?.handle;
}

/** Whether the backend may have storage for it. */
export function mayExist(state: IntentState): boolean {
  return state.kind !== 'recording' && begunOf(state)?.mayExist !== false;
}

/** Whether its PersistentVolume may have been created, by whatever process. */
export function mayBeSaved(state: IntentState): boolean {
  return state.kind !== 'recording' && begunOf(state)?.saves.isSent !== false;
}

/** Whether a deletion was sent, which must be completed before anything else is created for the claim. */
export function isBeingDeleted(state: IntentState): boolean {
  if (state.kind === 'stuck') return isBeingDeleted(state.was);
  return state.kind === 'deleting' && state.isSent;
}

/** Whether nothing can be done for its claim now. */
export function isBusy(state: IntentState): boolean {
  return state.kind === 'recording' || state.kind === 'saved' || (isUndone(state) && state.isWorking);
}

/** Whether what it is created from must stay. */
export function needsSource(state: IntentState): boolean {
  if (state.kind === 'saved' || (state.kind === 'stuck' && state.problem.reason === 'unproved')) return false;
  return state.kind !== 'revoking' || state.storage?.isCurrent !== true;
}

/** Pause until a volume whose storage is being created or deleted is synced again. */
const busyPauseMs = 1000;

/**
 * For how long the storage of its PersistentVolume must stay: while a late call may recreate it; while a call of our own is under way, where
 * another process has saved the volume; and while the revoker checks whether it may go.
 */
export function heldInMs(state: IntentState, nowMs: number): number {
  const calls = callsOf(state);
  const heldMs = Math.max(0, heldUntilMs(calls) - nowMs);
  const leftMs = calls.unread === undefined ? heldMs : Math.min(heldMs, busyPauseMs);
  const isCalled = state.kind === 'creating' && state.isCalling;
  const isChecked = isUndone(state) && (state.isWorking || deletableAtMs(state, false) <= nowMs);
  return isCalled || isChecked ? Math.max(leftMs, busyPauseMs) : leftMs;
}
