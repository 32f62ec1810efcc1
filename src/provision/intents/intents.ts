/** Knows what may be under way at the backend, which nothing else tracks. Keeps the journal and its own memory in step. */
import { inSlices } from '../../base/event-loop.ts';
import type { Logger } from '../../base/logger.ts';
import { orderOf } from '../../kube/client/resource-version.ts';
import {
  DrainingError,
  ForeignIntentError,
  type FoundIntent,
  type IntentJournal,
  type JournalListener,
} from '../intent-journal/intent-journal.ts';
import type { JournalMetrics, ReportReason } from '../intent-journal/journal-metrics.ts';
import type { IntentRecord } from '../intent-journal/intent-record.ts';
import { RecentlyClosed } from './recently-closed.ts';
import { holdMs } from './call-times.ts';
import {
  foundIntent,
  type Intent,
  isLeftAlone,
  lateSaveMs,
  mayBeSavedLate,
  needsNoSecondRevoke,
  newIntent,
  quietInMs,
  type WaitReason,
  waitReason,
  waitReasons,
} from './intent.ts';
import { IntentIndex } from './intent-index.ts';
import { LateCalls, type LateCallsOptions } from './late-calls.ts';
import { VolumeAbandonedError } from '../volume/volume-abandoned-error.ts';
import type { VolumeLog } from '../revoke/volume-log.ts';

export interface IntentsOptions extends LateCallsOptions {
  /** `ClusterJournal`, or `noJournal`. */
  journal: IntentJournal;
  /** What happened to the PersistentVolumes. */
  volumeLog: Pick<VolumeLog, 'reached' | 'verdict' | 'extend'>;
  logger: Logger;
  metrics: JournalMetrics;
  /** As of `IntentIndex`. */
  onNameFree?: ((volumeName: string) => void) | undefined;
}

/** How much of a backend's text a record may hold, in characters. */
const maxProblemLength = 2000;
/** How often it is checked which records need a newer version since which they had no PersistentVolume, in milliseconds. */
const renewEveryMs = 5000;
/** The first time this soon after a start, in milliseconds: a process that restarts again and again may not run longer. */
const firstRenewMs = 1000;
/** A version is renewed once the log of the volumes had gone past it so many checks ago. */
const renewAfterChecks = 4;

export class Intents {
  /** Calls that may still create storage although nobody waits for them. */
  readonly lateCalls: LateCalls;
  readonly #options: IntentsOptions;
  readonly #open: IntentIndex;
  readonly #closed: RecentlyClosed;
  /** UIDs of claims, until they are settled, which may have had a PersistentVolume, of a closed intent or of the past before a restore. */
  readonly #mayHaveHadVolume = new Set<string>();

  constructor(options: IntentsOptions) {
    this.#options = options;
    this.#open = new IntentIndex(options.metrics, options.onNameFree);
    options.metrics.waiting(() => this.#waiting());
    this.#closed = new RecentlyClosed(options.clock);
    this.lateCalls = new LateCalls(options);
  }

  get(uid: string): Intent | undefined {
    return this.#open.get(uid);
  }

  list(): IterableIterator<Intent> {
    return this.#open.list();
  }

  /**
   * Takes what the journal finds, from now on.
   *
   * @param changed - called with the claim's UID for each intent that was found, or went without our doing.
   * @param lost - called with an intent whose record another process has closed or adopted.
   * @param discarded - called with an intent that an operator has discarded.
   * @param drainEnded - called when new intents may be begun again.
   */
  async load(
    {
      changed,
      lost,
      discarded,
      drainEnded,
      fenced,
    }: {
      changed: (uid: string) => void;
      lost: (intent: Intent) => void;
      discarded: (intent: Intent) => void;
      drainEnded: () => void;
      fenced: (error: Error) => void;
    },
    signal: AbortSignal,
  ): Promise<void> {
    const listener: JournalListener = {
      onFound: (found) => {
        this.#find(found);
        changed(found.record.claim.uid);
      },
      onGone: (uid) => {
        const intent = this.#open.get(uid);
        if (intent !== undefined) {
          this.#open.remove(intent);
          this.#mayHaveHadVolume.add(uid); // by the other process, for all that is known
          lost(intent);
        }
        changed(uid);
      },
      onDiscarded: (uid) => {
        const intent = this.#open.get(uid);
        if (intent === undefined) return;
        this.#open.remove(intent);
        this.#mayHaveHadVolume.add(uid);
        discarded(intent);
        changed(uid);
      },
      onDrainEnded: drainEnded,
      onRewound: () => this.lostHistory(),
      onFenced: fenced,
    };
    await this.#options.journal.open(listener, signal);
  }

  #waiting(): Map<WaitReason, number> {
    const counts = new Map<WaitReason, number>(waitReasons.map((reason) => [reason, 0]));
    const nowMs = this.#nowMs;
    for (const intent of this.#open.list()) {
      const reason = waitReason(intent, nowMs);
      if (reason !== undefined) counts.set(reason, (counts.get(reason) ?? 0) + 1);
    }
    return counts;
  }

  /** The versions of which the history of the PersistentVolumes is needed. */
  neededVersions(): number[] {
    return this.#versions(({ since }) => since);
  }

  /** The versions from which on the history of storage is needed. */
  neededStorageVersions(): number[] {
    return this.#versions(({ firstSince }) => firstSince);
  }

  /** Those that are known, of the intents about which something is to be done. */
  #versions(of: (intent: Intent) => number): number[] {
    const versions: number[] = [];
    for (const intent of this.#open.list()) {
      if (!isLeftAlone(intent) && !Number.isNaN(of(intent))) versions.push(of(intent));
    }
    return versions;
  }

  /**
   * Keeps the versions of long attempts recent: the API server keeps little more than a minute of history, and the next
   * process can read no more. Works until the signal aborts.
   */
  async renewVersions(signal: AbortSignal): Promise<void> {
    const { clock, volumeLog } = this.#options;
    const reached: number[] = []; // at the last checks, the oldest first
    for (let pauseMs = firstRenewMs; ; pauseMs = renewEveryMs) {
      try {
        await clock.sleep(pauseMs, { signal });
      } catch {
        return;
      }
      const [oldest = volumeLog.reached] = reached;
      reached.push(volumeLog.reached);
      if (reached.length > renewAfterChecks) reached.shift();
      const due = [...this.#open.list()].filter(({ since }) => since < oldest);
      await inSlices(due, (intent) => this.#renewVersion(intent));
    }
  }

  #renewVersion(intent: Intent): void {
    const { volumeLog, journal } = this.#options;
    const { since, served, owner, record } = intent;
    if (!this.#open.has(intent) || isLeftAlone(intent) || served || owner === 'foreign') return;
    if (volumeLog.verdict(record.volume.name, since).kind !== 'never') return;
    intent.since = volumeLog.reached;
    intent.record = { ...record, since: String(intent.since) };
    journal.renewSince(record.claim.uid, String(intent.since));
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

  /** The history until now is lost: nothing about the intents that are open now can be proved any more. */
  lostHistory(): void {
    for (const intent of this.#open.list()) {
      intent.since = NaN;
      const { since, ...record } = intent.record;
      if (since !== undefined) this.#note(intent, record);
    }
  }

  /**
   * Opens a new intent and has the journal write its record; resolves once that is durable, or cannot be written: then the backend may be
   * called. Before that, the journal has no record of another claim with this name any more: the next process could not tell which of
   * them stands for the volume.
   *
   * @throws {NameInUseError} when the volume's name is in use, {ForeignIntentError} when an intent for the claim was
   * found meanwhile, {DrainingError} while no new volume is begun, and what the journal throws.
   */
  async openAndRecord(record: IntentRecord, signal: AbortSignal): Promise<Intent> {
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
    const intent = newIntent(this.#withKnownVersion(record));
    this.lateCalls.begun(intent);
    this.#open.add(intent);
    this.#options.volumeLog.extend(intent.since); // planning took long: the log may have dropped what came first
    try {
      // resolves once the record is written to its Lease, or cannot be
      const protection = await this.#options.journal.put(intent.record, signal);
      intent.recorded = true;
      intent.isDurable = protection === 'durable' && this.#options.journal.permit === undefined;
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

  /** Another process has the record: takes it over. @throws {ForeignIntentError} when that must be waited for. */
  async takeOver(intent: Intent, signal: AbortSignal): Promise<void> {
    if (intent.owner !== 'foreign') return;
    await this.#options.journal.put(intent.record, signal);
    this.lateCalls.takenOver(intent);
  }

  /**
   * Runs `call`, which requests the storage from the backend, and sets `mayExist`. While it runs, the storage of a saved volume of this name
   * is not deleted. @throws what `call` throws.
   */
  async withCallUnderWay<T>(intent: Intent, call: () => Promise<T>): Promise<T> {
    intent.mayExist = true;
    intent.underWay = true;
    intent.isHandleCurrent = false;
    try {
      return await call();
    } finally {
      intent.underWay = false;
    }
  }

  /** The backend has named the storage: the last request to it had a clear result. */
  named(intent: Intent, handle: string): void {
    intent.foundHandle = handle;
    intent.isHandleCurrent = true;
  }

  /** The backend has created the storage: a clear result, which leaves nothing that may still be under way. */
  made(intent: Intent): void {
    intent.exhausted = false;
    intent.unclearAtMs = this.#nowMs;
  }

  /** Its volume is about to be saved; if that fails, a later attempt finds the storage. */
  willBeSaved(intent: Intent): void {
    intent.saveAttempted = true;
    intent.mayBeSavedUntilMs = this.#nowMs + lateSaveMs;
  }

  /** A request that creates its PersistentVolume is about to be sent. */
  sendsSave(intent: Intent): void {
    intent.saveSent = true;
    intent.unclearSaves++;
    if (intent.mayBeSavedUntilMs > -Infinity) intent.mayBeSavedUntilMs = this.#nowMs + lateSaveMs;
  }

  /** Its volume will not be saved any more; whether it was saved may be unknown. */
  abandoned(intent: Intent): void {
    const { saveAttempted, unclearSaves, mayBeSavedUntilMs } = intent;
    if (!saveAttempted) return;
    // one without a window was found again meanwhile: what was sent before is not known
    const isUnclear = unclearSaves > 0 || mayBeSavedUntilMs === -Infinity;
    intent.mayBeSavedUntilMs = isUnclear ? this.#nowMs + lateSaveMs : -Infinity;
  }

  /**
   * To be called when the process ends: records which PersistentVolumes the API server may still create, so that the next process waits. Safe
   * to repeat.
   *
   * @returns whether there are any.
   */
  noteLateSaves(): boolean {
    let found = false;
    for (const intent of this.#open.list()) {
      if (intent.owner === 'foreign' || !mayBeSavedLate(intent, this.#nowMs)) continue;
      found = true;
      if (intent.record.lateSave !== true) this.#note(intent, { ...intent.record, lateSave: true });
    }
    return found;
  }

  /** A call that creates the storage ended without a clear result: the backend may still be at work. */
  unclear(intent: Intent): void {
    intent.isHandleCurrent = false;
    this.lateCalls.unclear(intent);
    if (intent.record.phase === 'create') this.#note(intent, { ...intent.record, phase: 'unclear' });
  }

  /**
   * The backend reports that it lacks the capacity.
   *
   * @returns whether that is certain: reported twice, after every attempt with an unclear result must have ended.
   */
  noRoom(intent: Intent): boolean {
    if (this.#nowMs < Math.max(intent.unclearAtMs + this.#options.maxCallMs, intent.lateUntilMs)) return false;
    if (intent.exhausted) return true;
    intent.exhausted = true;
    return false;
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
    if (!this.#open.has(intent) || intent.owner === 'foreign')
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
    const { lateSave: _lateSave, noLateCalls: _noLateCalls, ...record } = intent.record; // the late save was waited for
    // another process that may still work on it may send a call later
    const isRead = intent.unread === undefined;
    const noLateCalls = intent.owner === 'own' && isRead && needsNoSecondRevoke(intent, this.#nowMs);
    await this.#put(intent, { ...record, phase: 'delete', handle, ...(noLateCalls && { noLateCalls }) }, signal);
    this.checkOpen(intent);
  }

  /** Nothing is left of it. It is revoked a second time at `lateUntilMs`: until then a late call may create it. */
  async revoked(intent: Intent, signal: AbortSignal): Promise<void> {
    const { handle: _handle, problem: _problem, noLateCalls: _noLateCalls, ...record } = intent.record;
    intent.deleteSent = false;
    intent.firstDeleteAtMs = undefined;
    intent.isHandleCurrent = false;
    await this.#put(intent, { ...record, phase: 'revoked' }, signal);
  }

  /**
   * Its storage did not match the request, and was deleted: the record is closed, or kept while a late call may recreate the storage. Then
   * the next attempt fulfils the same plan, or the volume is revoked a second time if the claim is deleted.
   */
  async unfitDeleted(intent: Intent, signal: AbortSignal): Promise<void> {
    if (needsNoSecondRevoke(intent, this.#nowMs)) await this.closeNow(intent, signal);
    else await this.revoked(intent, signal);
  }

  /** It is revoked a second time, by a call that may recreate it. Resolves once that is recorded. */
  async revokesAgain(intent: Intent, signal: AbortSignal): Promise<void> {
    await this.#put(intent, { ...intent.record, phase: 'unclear' }, signal);
  }

  /** The call of the second revoke has created nothing, or was not sent. */
  foundNothing(intent: Intent): void {
    if (intent.record.phase === 'unclear') this.#note(intent, { ...intent.record, phase: 'revoked' });
  }

  /** The storage is not going to be deleted after all. Resolves once that is recorded. */
  async leaveDelete(intent: Intent, signal: AbortSignal): Promise<void> {
    const { handle, problem: _problem, noLateCalls: _noLateCalls, ...record } = intent.record;
    const isLeft = handle !== undefined || record.phase === 'revoked' || record.phase === 'unproved';
    if (isLeft) await this.#put(intent, { ...record, phase: 'unclear' }, signal);
  }

  /** It cannot be proved that its storage has had no PersistentVolume. Logged and counted once. Safe to repeat. */
  unproved(intent: Intent, why: string): void {
    intent.deleteSent = false;
    if (intent.record.phase === 'unproved') return;
    const { logger, metrics } = this.#options;
    const { claim, volume, handle = intent.foundHandle } = intent.record;
    const problem = why.slice(0, maxProblemLength);
    logger.error(
      { claim: `${claim.namespace}/${claim.name}`, uid: claim.uid, volume: volume.name, handle, problem },
      'A volume may be kept on purpose, or be left behind: an operator has to decide',
    );
    metrics.reported('unproved');
    this.#note(intent, { ...intent.record, phase: 'unproved', problem, ...(handle !== undefined && { handle }) });
  }

  /** Nobody but an operator can resolve it. Logged once for each reason: a backend's texts may differ from call to call. */
  stuck(intent: Intent, reason: ReportReason, text: string): void {
    const { logger, metrics } = this.#options;
    const { claim, volume, phase, problem: known } = intent.record;
    const problem = text.slice(0, maxProblemLength);
    const isKnown = intent.reportedAs === reason || known === problem;
    intent.reportedAs = reason;
    if (!isKnown) {
      logger.error(
        { claim: `${claim.namespace}/${claim.name}`, uid: claim.uid, volume: volume.name, problem },
        'A volume may be left at the backend and needs an operator',
      );
      metrics.reported(reason);
    }
    if (!isKnown || phase !== 'stuck') this.#note(intent, { ...intent.record, phase: 'stuck', problem });
  }

  /** Whether a PersistentVolume of the name has other storage. Safe to repeat. */
  setNameTaken(intent: Intent, isTaken: boolean): void {
    const { nameTaken = false, ...record } = intent.record;
    if (nameTaken !== isTaken) this.#note(intent, isTaken ? { ...record, nameTaken: true } : record);
  }

  /** For how long the storage of a PersistentVolume of this name must stay, in milliseconds. */
  quietInMs(volumeName: string): number {
    const nowMs = this.#nowMs;
    return Math.max(0, ...this.#open.named(volumeName).map((intent) => quietInMs(intent, nowMs)));
  }

  /**
   * Storage was returned for an intent that is not open any more: another process has adopted its record meanwhile, and closed
   * it. Unless that process still has one, it is recorded again, with what was known before.
   *
   * @throws what the journal throws, such as for a process that has lost its lease: then it is only logged.
   */
  async reopen(intent: Intent, storage: object, signal: AbortSignal): Promise<void> {
    const { logger, metrics } = this.#options;
    const { claim, volume } = intent.record;
    if (this.#open.get(claim.uid) !== undefined) return;
    const fields = { claim: `${claim.namespace}/${claim.name}`, uid: claim.uid, volume: volume.name, storage };
    const { handle: _handle, problem: _problem, noLateCalls: _noLateCalls, ...record } = intent.record;
    intent.record = { ...record, phase: 'unclear' };
    this.lateCalls.takenOver(intent); // so the handle does not count as known: that process may have deleted the storage
    try {
      this.#open.add(intent);
      await this.#options.journal.put(intent.record, signal);
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

  #wasClosed(intent: Intent): void {
    if (intent.saveAttempted) this.#mayHaveHadVolume.add(intent.record.claim.uid);
    this.lateCalls.closed(intent);
  }

  #find(found: FoundIntent): void {
    const { maxCallMs, logger, metrics, volumeLog } = this.#options;
    const { record, owner } = found;
    const { uid, namespace, name } = record.claim;
    const known = this.#open.get(uid);
    if (known?.owner === 'own' && known.recorded) return; // of another process that worked beside us
    if (known !== undefined) this.#open.remove(known);
    const keptUntilMs = known?.recorded === true ? known.keptUntilMs : this.#nowMs + holdMs(maxCallMs);
    const intent = foundIntent(found, { keptUntilMs, nowMs: this.#nowMs, maxCallMs });
    if (known !== undefined) this.lateCalls.replaced(known, intent);
    this.#open.add(intent);
    if (!isLeftAlone(intent)) volumeLog.extend(intent.since);
    metrics.replayed();
    logger.info(
      { claim: `${namespace}/${name}`, uid, volume: record.volume.name, phase: record.phase, owner },
      'Found the record of a volume that another process was creating',
    );
  }

  #note(intent: Intent, record: IntentRecord): void {
    if (this.#open.change(intent, record)) this.#options.journal.note(record);
  }

  async #put(intent: Intent, record: IntentRecord, signal: AbortSignal): Promise<void> {
    if (this.#open.change(intent, record)) await this.#options.journal.put(record, signal);
  }

  get #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }
}
