/** An open intent, its record, and what it waits for. */
import { orderOf } from '../../kube/kube-object.ts';
import type { FoundIntent, IntentPhase, IntentRecord } from '../intent-journal/intent-journal.ts';
import type { Planned } from '../recoverable.ts';
import {
  type Calls,
  callsEndMs,
  callsFound,
  heldUntilMs,
  noCalls,
  noSaves,
  savesEndMs,
  type Time,
} from './earlier-requests.ts';
import {
  anythingSent,
  begunOf,
  callsOf,
  creating,
  deleting,
  type IntentState,
  isUndone,
  maxProofMs,
  mayBeSaved,
  problemOf,
  quietAtMs,
  revoking,
} from './intent-state.ts';

/** One volume that is being created, or revoked. */
export interface Intent {
  /** As it is in the journal; replaced as a whole. */
  record: IntentRecord;
  state: IntentState;
  /** The node that was selected when this process planned it, see `nodeName`; undefined: another process planned it. */
  readonly plannedNode: string | undefined;
  /** What must not be recorded of the plan that this process has made; undefined: nothing, or another process planned it. */
  readonly planned: Planned | undefined;
  /** Why nothing may ever be deleted because of it. */
  readonly reportOnly: string | undefined;
  /**
   * No PersistentVolume has had its name from this version on, as far as the volumes' log says so; NaN: nothing can be proved. Moves on while
   * the log is clean.
   */
  since: number;
  /** As `since` was at first: a volume of whatever name that has had the storage from then on counts, too. */
  readonly firstSince: number;
}

export function newIntent(record: IntentRecord, calls: Calls = noCalls): Intent {
  const since = orderOf(record.since);
  return {
    record,
    state: { kind: 'recording', calls },
    plannedNode: undefined,
    planned: undefined,
    reportOnly: undefined,
    since,
    firstSince: since,
  };
}

/** One that another process has begun. @param known - the same one, if it was found before. */
export function foundIntent(
  { record, owner, reportOnly }: FoundIntent,
  known: IntentState | undefined,
  time: Time,
): Intent {
  const since = orderOf(record.since);
  const state = foundState(record, owner, { time, sinceMs: (known && callsOf(known).sinceMs) ?? time.nowMs });
  return { record, state, plannedNode: undefined, planned: undefined, reportOnly, since, firstSince: since };
}

/**
 * The state in which a record of another process is found. It is quiet once the wait that it says is over (`quietInMs`), or else 1.5 times the
 * time of a call after it was found: calls are waited for, saves only where it says so.
 *
 * - that of a process which may be alive: `foreign`, until that has closed it, or is silent: then it is found again.
 * - `create`, `unclear`: `creating`. Its claim waits for nothing; if that is gone, the storage is deleted when it is quiet.
 * - `revoke`: `revoking`, the same.
 * - `delete`: `deleting`. The deletion is sent again: at once, or if the claim is there 1.5 times the time of a call after it was found.
 * - `stuck`: `stuck`, over `deleting` if the record names what is being deleted, otherwise over `creating`: that is how it goes on.
 *
 * What may have been sent is assumed to have been: a call, and a save.
 */
function foundState(
  { phase, handle, reason = 'undecidable', problem: text = '', quietInMs }: IntentRecord,
  owner: FoundIntent['owner'],
  { time, sinceMs }: { time: Time; sinceMs: number },
): IntentState {
  const { nowMs } = time;
  const endMs = quietInMs === undefined ? undefined : nowMs + quietInMs;
  const calls = endMs === undefined ? callsFound(sinceMs, time) : { ...noCalls, sinceMs, endMs };
  const isUnclear = phase !== 'create';
  const problem = phase === 'stuck' ? { reason, text } : undefined;
  if (owner === 'foreign') return { kind: 'foreign', calls, isUnclear, problem };
  const saves = { ...noSaves, isSent: true, endMs: endMs ?? -Infinity };
  const storage = handle === undefined ? undefined : { handle, isCurrent: endMs !== undefined };
  const found = anythingSent(calls, { isUnclear, saves, storage });
  if (phase === 'revoke') return { ...revoking(found), isWaitRecorded: endMs !== undefined };
  const deletion = storage && {
    ...deleting(found, {
      storage: { ...storage, isCurrent: true },
      isLast: endMs !== undefined,
      isSent: true,
      notBeforeMs: heldUntilMs(callsFound(nowMs, time)),
    }),
  };
  if (problem === undefined) return phase === 'delete' && deletion !== undefined ? deletion : creating(found);
  const was = problem.reason === 'unproved' ? creating(found) : (deletion ?? creating(found));
  return { kind: 'stuck', problem, was };
}

/** The record of an intent in this state. */
export function recordOf({ record }: Pick<Intent, 'record'>, state: IntentState, nowMs: number): IntentRecord {
  const { claim, volume, plan, since, nameTaken, createdAt } = record;
  const begun = begunOf(state);
  const problem = problemOf(state);
  const phase = phaseOf(state);
  const was = state.kind === 'stuck' ? state.was : state;
  const isNamed = was.kind === 'deleting' || phase === 'revoke' || problem?.reason === 'unproved';
  const handle = isNamed ? begun?.storage?.handle : undefined;
  return {
    claim,
    volume,
    plan,
    phase,
    ...(since !== undefined && { since }),
    ...(handle !== undefined && { handle }),
    ...((was.kind === 'deleting' || phase === 'revoke') && quietOf(was, nowMs)),
    ...(problem !== undefined && { reason: problem.reason, problem: problem.text }),
    ...(nameTaken !== undefined && { nameTaken }),
    createdAt,
  };
}

/** Only where no process sends anything that may create storage until the record is written again. */
function quietOf(state: IntentState, nowMs: number): Pick<IntentRecord, 'quietInMs'> {
  if (state.kind === 'deleting') return state.isLast && !state.isShared ? { quietInMs: 0 } : {};
  return state.kind === 'revoking' ? { quietInMs: Math.max(0, Math.ceil(quietAtMs(state) - nowMs)) } : {};
}

function phaseOf(state: IntentState): IntentPhase {
  if (problemOf(state) !== undefined) return 'stuck';
  if (state.kind === 'deleting') return 'delete';
  if (state.kind === 'revoking' && state.isWaitRecorded) return 'revoke';
  return begunOf(state)?.isUnclear === true ? 'unclear' : 'create';
}

/** Which volume a line of the log is about. */
export function logFields({ claim, volume }: IntentRecord): { claim: string; uid: string; volume: string } {
  return { claim: `${claim.namespace}/${claim.name}`, uid: claim.uid, volume: volume.name };
}

/** Nothing is done for it: an operator, or a claim that wants it again, decides. */
export function isLeftAlone({ record }: Intent): boolean {
  return record.phase === 'stuck';
}

/**
 * Nobody can have created its PersistentVolume: this process has begun it under a durable record, which another one would have had to
 * take over, and has never sent the PersistentVolume. False where an earlier intent for the claim may have had one, and after a
 * restore of the API server.
 */
export function isNeverSaved({ state, since }: Intent): boolean {
  return begunOf(state)?.isAlone === true && !mayBeSaved(state) && !Number.isNaN(since);
}

/**
 * What an intent waits for.
 *
 * - `earlier-call`: a call that was given up, or is that of another process, may still create the storage.
 * - `other-process`: its record is that of another process, which may be alive.
 * - `late-save`: the API server may still carry out a request that creates its PersistentVolume.
 * - `proof`: what happened to PersistentVolumes is still being read.
 */
export type WaitReason = (typeof waitReasons)[number];

export const waitReasons = ['earlier-call', 'other-process', 'late-save', 'proof'] as const;

/** A wait of an intent that is to be revoked, or closed. */
interface IntentWait {
  readonly reason: WaitReason;
  /** When it ends, in monotonic milliseconds, at the latest for a proof; undefined: nobody knows. */
  readonly untilMs: number | undefined;
}

/** Why nothing is done now about an intent that is to be revoked, or closed; undefined: it does not wait. */
export function intentWait({ state }: Intent, nowMs: number): IntentWait | undefined {
  const until = (reason: WaitReason, untilMs: number): IntentWait | undefined =>
    untilMs > nowMs ? { reason, untilMs: untilMs === Infinity ? undefined : untilMs } : undefined;
  if (state.kind === 'saved') return until('earlier-call', heldUntilMs(state.calls));
  if (state.kind === 'foreign') return { reason: 'other-process', untilMs: undefined };
  if (!isUndone(state)) return undefined;
  const wait =
    state.kind === 'deleting'
      ? until('earlier-call', state.notBeforeMs)
      : (until('earlier-call', callsEndMs(state.calls)) ?? until('late-save', savesEndMs(state.saves)));
  if (wait !== undefined) return wait;
  return state.proofSinceMs === undefined ? undefined : { reason: 'proof', untilMs: state.proofSinceMs + maxProofMs };
}
