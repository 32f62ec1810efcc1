/** Knows what may be under way at the backend, which nothing else tracks. Keeps the journal and its own memory in step. */
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { orderOf } from '../../kube/kube-object.ts';
import type { VolumeLog } from '../cache/volume-log.ts';
import {
  DrainingError,
  ForeignIntentError,
  type FoundIntent,
  type IntentJournal,
  type IntentRecord,
  type JournalListener,
  noRecords,
  type StuckReason,
} from '../intent-journal/intent-journal.ts';
import type { JournalMetrics, OpenRecords } from '../intent-journal/journal-metrics.ts';
import type { BackendProgress, Planned } from '../recoverable.ts';
import { type Calls, callsEndMs, noCalls, type Time } from './earlier-requests.ts';
import { IntentIndex, RecentlyClosed, VolumeAbandonedError } from './intent-index.ts';
import {
  begunOf,
  callsOf,
  heldInMs,
  type IntentEvent,
  knownHandle,
  mayBeSaved,
  type Next,
  next,
  type Problem,
  problemOf,
} from './intent-state.ts';
import {
  foundIntent,
  type Intent,
  intentWait,
  isLeftAlone,
  logFields,
  newIntent,
  recordOf,
  waitReasons,
} from './intent.ts';
import { isSameRecord, RecordUpkeep } from './record-upkeep.ts';

interface IntentsOptions {
  /** `ClusterJournal`, or `noJournal`. */
  journal: IntentJournal;
  /** What happened to the PersistentVolumes. */
  volumeLog: Pick<VolumeLog, 'usedBy' | 'reached' | 'verdict' | 'extend'>;
  /** How long a call to the backend may take, in milliseconds. */
  maxCallMs: number;
  /** What the backend has read. Undefined: everything counts as read. */
  progress: BackendProgress | undefined;
  clock: Clock;
  logger: Logger;
  metrics: JournalMetrics;
}

/** Notified of what the journal finds, and of what becomes of intents without our doing. */
interface IntentListener {
  /** The intent of a claim was found, or is gone. */
  changed(uid: string): void;
  /** Another process has closed or adopted the record. */
  lost(intent: Intent): void;
  /** An operator has discarded it. */
  discarded(intent: Intent): void;
  /** New intents may be begun again. */
  drainEnded(): void;
  /** As `JournalListener.onFenced`. */
  fenced(error: Error): void;
  /** `checkName` may allow the name of a volume from now on. */
  nameFree(volumeName: string): void;
}

export class Intents {
  readonly #options: IntentsOptions;
  readonly #open = new IntentIndex();
  /** Those with calls that were given up, which the backend may not have read. */
  readonly #unread = new Set<Intent>();
  /** By the name of a volume whose record was closed: calls that may still create its storage. */
  readonly #callsOfClosed = new Map<string, Calls>();
  /** Why an intent was reported as stuck in this process: a backend's texts may differ from call to call. */
  readonly #reported = new WeakMap<Intent, StuckReason>();
  readonly #closed: RecentlyClosed;
  /** UIDs of claims, until they are settled, which may have had a PersistentVolume, of a closed intent or of the past before a restore. */
  readonly #mayHaveHadVolume = new Set<string>();
  /** What records say of the past, and of waits. */
  readonly upkeep: RecordUpkeep;

  constructor(options: IntentsOptions) {
    this.#options = options;
    const { journal, volumeLog, clock } = options;
    this.#closed = new RecentlyClosed(clock);
    this.upkeep = new RecordUpkeep({ open: this.#open, journal, volumeLog, clock });
    options.metrics.open(() => this.#counts());
    options.progress?.onProgress((untilMs) => this.#onRead(untilMs));
  }

  get(uid: string): Intent | undefined {
    return this.#open.get(uid);
  }

  list(): IterableIterator<Intent> {
    return this.#open.list();
  }

  /** Takes what the journal finds, from now on. */
  async load(listener: IntentListener, signal: AbortSignal): Promise<void> {
    this.#open.onNameFree = (name) => listener.nameFree(name);
    const journalListener: JournalListener = {
      onFound: (found) => {
        this.#find(found);
        listener.changed(found.record.claim.uid);
      },
      onGone: (uid) => {
        const intent = this.#removed(uid);
        if (intent !== undefined) listener.lost(intent);
        listener.changed(uid);
      },
      onDiscarded: (uid) => {
        const intent = this.#removed(uid);
        if (intent === undefined) return;
        listener.discarded(intent);
        listener.changed(uid);
      },
      onDrainEnded: () => listener.drainEnded(),
      onRewound: () => this.upkeep.lostHistory(),
      onFenced: (error) => listener.fenced(error),
    };
    await this.#options.journal.open(journalListener, signal);
  }

  /** Another process, or an operator, has closed the record of a claim, which may have had a PersistentVolume meanwhile. */
  #removed(uid: string): Intent | undefined {
    const intent = this.#open.get(uid);
    if (intent === undefined) return undefined;
    this.#open.remove(intent);
    this.#mayHaveHadVolume.add(uid);
    return intent;
  }

  #counts(): OpenRecords {
    const byPhase = noRecords();
    const waiting = new Map<string, number>(waitReasons.map((reason) => [reason, 0]));
    let oldestMs = Infinity;
    const nowMs = this.#nowMs;
    for (const intent of this.#open.list()) {
      byPhase[intent.record.phase] += 1;
      const reason = intentWait(intent, nowMs)?.reason;
      if (reason !== undefined) waiting.set(reason, (waiting.get(reason) ?? 0) + 1);
      const createdAtMs = Date.parse(intent.record.createdAt);
      if (createdAtMs < oldestMs) oldestMs = createdAtMs;
    }
    return { byPhase, waiting, oldestMs };
  }

  /** The claim may have had a PersistentVolume that is gone. */
  hadVolume(uid: string): void {
    this.#mayHaveHadVolume.add(uid);
  }

  /** Whether the claim may have had a PersistentVolume before its next attempt. */
  mayHaveHadVolume(uid: string): boolean {
    return this.#mayHaveHadVolume.has(uid);
  }

  /** Nothing is done for the claim any more. Safe to repeat. */
  forget(uid: string): void {
    this.#mayHaveHadVolume.delete(uid);
  }

  /**
   * Opens a new intent and has the journal write its record; resolves once that is durable, or cannot be written: then the backend may be
   * called. Before that, the journal has no record of another claim with this name any more: the next process could not tell which of
   * them stands for the volume.
   *
   * @throws {NameInUseError} when the volume's name is in use, {ForeignIntentError} when an intent for the claim was
   * found meanwhile, {DrainingError} while no new volume is begun, and what the journal throws.
   */
  async openAndRecord(
    record: IntentRecord,
    { plannedNode, planned, signal }: { plannedNode?: string; planned?: Planned | undefined; signal: AbortSignal },
  ): Promise<Intent> {
    const { uid } = record.claim;
    const { name } = record.volume;
    this.checkDrain();
    this.checkName(uid, name);
    const former = this.#closed.uidOf(name);
    if (former !== undefined && former !== uid && this.#open.get(former) === undefined) {
      await this.#options.journal.removeNow(former, signal);
      this.#closed.forget(name);
      this.checkName(uid, name);
    }
    // found during planning: what the other process may have requested must not be requested from another plan
    if (this.#open.get(uid) !== undefined)
      throw new ForeignIntentError(`another process has begun a volume for the claim ${uid} meanwhile`);
    const begun = newIntent(this.#withKnownVersion(record), this.#callsOfClosed.get(name));
    const intent: Intent = { ...begun, plannedNode, planned };
    this.#open.add(intent);
    this.#options.volumeLog.extend(intent.since); // planning took long: the log may have dropped what came first
    try {
      // resolves once the record is written to its Lease, or cannot be
      const protection = await this.#options.journal.put(intent.record, signal);
      const isAlone = protection === 'durable' && this.#options.journal.permit === undefined;
      this.on(intent, { type: 'recorded', isAlone });
      this.checkDrain();
      if (protection === 'unprotected') this.#options.metrics.unprotected();
    } catch (error) {
      this.close(intent); // the write may have arrived all the same
      throw error;
    }
    return intent;
  }

  /** Without the version since which it has no PersistentVolume where that is still to come: etcd was restored during the planning. */
  #withKnownVersion(record: IntentRecord): IntentRecord {
    const { since, ...undated } = record;
    return orderOf(since) > this.#options.volumeLog.reached ? undated : record;
  }

  /** @throws {DrainingError} while no new intent may be begun. */
  checkDrain(): void {
    if (this.#options.journal.isDraining) throw new DrainingError();
  }

  /** @throws {NameInUseError} when another claim's intent has the name, and came first. */
  checkName(uid: string, name: string): void {
    this.#open.checkName(uid, name);
  }

  /**
   * Something has happened to an intent: it is in the next state, and the record follows in passing, where it changes. That it is stuck is
   * reported once for each reason.
   *
   * @returns whether nothing is left to do for it: then it is to be closed.
   */
  on(intent: Intent, event: IntentEvent): boolean {
    const result = this.#next(intent, event);
    if (result === undefined) return false;
    const known = problemOf(intent.state);
    intent.state = result.state;
    this.#followUnread(intent);
    if (result.write !== 'none') this.upkeep.note(intent, this.#recordOf(intent));
    this.#report(intent, known);
    return result.isDone;
  }

  /**
   * As `on`, and resolves once the record is written: what the event announces may be done then.
   *
   * @throws what the journal throws, such as where another process has adopted the record meanwhile.
   */
  async onWritten(intent: Intent, event: IntentEvent, signal: AbortSignal): Promise<boolean> {
    const result = this.#next(intent, event);
    if (result === undefined) return false;
    intent.state = result.state;
    const record = this.#recordOf(intent);
    const isWritten = result.write === 'put' || (result.write !== 'none' && !isSameRecord(record, intent.record));
    if (isWritten && this.#open.change(intent, record)) await this.#options.journal.put(record, signal);
    return result.isDone;
  }

  #next(intent: Intent, event: IntentEvent): Next | undefined {
    const result = next(intent.state, event, this.#time);
    if (result === undefined) {
      this.#options.logger.error(
        { ...logFields(intent.record), state: intent.state.kind, event: event.type },
        'An event that the state of a volume does not expect: a defect of this program, please report it',
      );
    }
    return result;
  }

  /** Another process has the record: takes it over. @throws {ForeignIntentError} when that must be waited for. */
  async takeOver(intent: Intent, signal: AbortSignal): Promise<void> {
    if (intent.state.kind !== 'foreign') return;
    const result = this.#next(intent, { type: 'taken-over' });
    if (result === undefined) return;
    const record = recordOf(intent, result.state, this.#nowMs);
    await this.#options.journal.put(record, signal);
    this.#open.change(intent, record);
    intent.state = result.state;
  }

  /**
   * Runs `call`, which requests the storage from the backend. While it runs, the storage of a saved volume of this name is not deleted.
   *
   * @throws what `call` throws.
   */
  async withCallUnderWay<T>(intent: Intent, call: () => Promise<T>): Promise<T> {
    this.on(intent, { type: 'called' });
    try {
      return await call();
    } finally {
      this.on(intent, { type: 'call-ended' });
    }
  }

  /** A call that creates the storage ended without a clear result: the backend may still be at work. */
  unclear(intent: Intent): void {
    const event = { type: 'unclear', isBehind: this.#options.progress?.isBehind === true } as const;
    this.on(intent, event);
    const present = this.#open.get(intent.record.claim.uid);
    const isReplaced = present !== undefined && present !== intent && begunOf(present.state) !== undefined;
    if (isReplaced && present.state.kind !== 'stuck') this.on(present, event); // found again during the call
  }

  isOpen(intent: Intent): boolean {
    return this.#open.has(intent);
  }

  /** @throws when the record was closed meanwhile, discarded, or adopted by another process. */
  checkOpen(intent: Intent): void {
    if (this.#open.has(intent)) return;
    throw new Error(`the record of volume ${JSON.stringify(intent.record.volume.name)} is not open any more`);
  }

  /** To be called after a pause. @throws {VolumeAbandonedError} when another process has the record, or nobody has it any more. */
  checkOwned(intent: Intent): void {
    if (!this.#open.has(intent) || intent.state.kind === 'foreign')
      throw new VolumeAbandonedError(intent.record.volume.name, 'another process has adopted its record');
  }

  /**
   * The storage is going to be deleted. Resolves once that is recorded, also where it was before: a process that has adopted the
   * record meanwhile makes the write fail, or the record close.
   *
   * @throws as `checkOpen`, and what the journal throws.
   */
  async toDelete(intent: Intent, handle: string, signal: AbortSignal): Promise<void> {
    this.checkOpen(intent);
    await this.onWritten(intent, { type: 'deletes', handle }, signal);
    this.checkOpen(intent);
  }

  /** Logs and counts that an operator has to decide, unless that is known. @param known - why an operator had to before. */
  #report(intent: Intent, known: Problem | undefined): void {
    if (intent.state.kind !== 'stuck') return;
    const { logger, metrics } = this.#options;
    const { reason, text } = intent.state.problem;
    const isKnown = this.#reported.get(intent) === reason || known?.text === text;
    this.#reported.set(intent, reason);
    if (isKnown) return;
    const handle = knownHandle(intent.state);
    const fields = { ...logFields(intent.record), problem: text };
    if (reason === 'unproved') {
      logger.error(
        { ...fields, handle },
        'A volume may be kept on purpose, or be left behind: an operator has to decide',
      );
    } else logger.error(fields, 'A volume may be left at the backend and needs an operator');
    metrics.reported(reason);
  }

  /** Whether a PersistentVolume of the name has other storage. Safe to repeat. */
  setNameTaken(intent: Intent, isTaken: boolean): void {
    const { nameTaken = false, ...record } = intent.record;
    if (nameTaken !== isTaken) this.upkeep.note(intent, isTaken ? { ...record, nameTaken: true } : record);
  }

  /** For how long the storage of a PersistentVolume of this name must stay, in milliseconds. */
  heldInMs(volumeName: string): number {
    const nowMs = this.#nowMs;
    return Math.max(0, ...this.#open.named(volumeName).map(({ state }) => heldInMs(state, nowMs)));
  }

  /** For how long a late call may recreate the storage of a saved volume whose record is closed, in milliseconds; 0: none can. */
  lateCallsMs(volumeName: string): number {
    return Math.max(0, callsEndMs(this.#callsOfClosed.get(volumeName) ?? noCalls) - this.#nowMs);
  }

  /**
   * Storage was returned for an intent that is not open any more: another process has adopted its record meanwhile, and closed
   * it. Unless that process still has one, it is recorded again, with what was known before.
   *
   * @throws what the journal throws, such as for a process that has lost its lease: then it is only logged.
   */
  async reopen(intent: Intent, storage: object, signal: AbortSignal): Promise<void> {
    const { logger, metrics } = this.#options;
    if (this.#open.get(intent.record.claim.uid) !== undefined) return;
    const fields = { ...logFields(intent.record), storage };
    try {
      this.#open.add(intent);
      await this.onWritten(intent, { type: 'reopened' }, signal);
      logger.warn(
        fields,
        'The record of a volume was closed by another process while it was created: it is recorded again',
      );
    } catch (error) {
      this.#open.remove(intent);
      if (error instanceof ForeignIntentError) throw error; // it has a record again, of another process
      metrics.reported('lost');
      logger.error(
        { ...fields, err: error },
        'A volume may be left behind: its record was closed while it was created',
      );
      throw error;
    }
  }

  /**
   * Closes a record for which nothing is left to do: its volume is saved, or nothing was created. It is removed from memory at once, and from
   * its Lease with a later write that is not awaited. Safe to repeat.
   */
  close(intent: Intent): void {
    if (!this.#open.remove(intent)) return;
    this.#wasClosed(intent);
    const { claim, volume } = intent.record;
    this.#options.journal.remove(claim.uid);
    this.#closed.add(volume.name, claim.uid);
  }

  /** Like `close`, but the name stays in use until the journal is written. */
  async closeNow(intent: Intent, signal: AbortSignal): Promise<void> {
    if (!this.#open.has(intent)) return;
    await this.#options.journal.removeNow(intent.record.claim.uid, signal);
    this.#open.remove(intent);
    this.#wasClosed(intent);
  }

  /** What may still run is expected by the next intent for the same name. */
  #wasClosed({ record, state }: Intent): void {
    if (mayBeSaved(state)) this.#mayHaveHadVolume.add(record.claim.uid);
    const nowMs = this.#nowMs;
    for (const [name, calls] of this.#callsOfClosed) {
      if (callsEndMs(calls) > nowMs) break; // those behind it end later, as a rule: thousands may close at the same time
      this.#callsOfClosed.delete(name);
    }
    const calls = callsOf(state);
    if (callsEndMs(calls) > nowMs) this.#callsOfClosed.set(record.volume.name, { ...calls, unread: undefined });
  }

  #find(found: FoundIntent): void {
    const { logger, metrics, volumeLog } = this.#options;
    const { record, owner } = found;
    const known = this.#open.get(record.claim.uid);
    const isOwn = known !== undefined && known.state.kind !== 'foreign' && known.state.kind !== 'recording';
    // ours stands: what was found is of another process that worked beside us
    if (isOwn && begunOf(known.state)?.isShared !== true) return;
    if (known !== undefined) this.#open.remove(known);
    const intent = foundIntent(found, known?.state.kind === 'recording' ? undefined : known?.state, this.#time);
    this.#open.add(intent);
    if (!isLeftAlone(intent)) volumeLog.extend(intent.since);
    metrics.replayed();
    logger.info(
      { ...logFields(record), phase: record.phase, owner },
      'Found the record of a volume that another process was creating',
    );
  }

  #followUnread(intent: Intent): void {
    if (callsOf(intent.state).unread === undefined) this.#unread.delete(intent);
    else this.#unread.add(intent);
  }

  #onRead(untilMs: number): void {
    for (const intent of this.#unread) this.on(intent, { type: 'read', untilMs });
  }

  #recordOf(intent: Intent): IntentRecord {
    return recordOf(intent, intent.state, this.#nowMs);
  }

  get #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  get #time(): Time {
    return { nowMs: this.#nowMs, maxCallMs: this.#options.maxCallMs };
  }
}
