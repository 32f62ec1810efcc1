/** What may be under way at the backend: the one owner of that knowledge. It keeps the journal and its own memory equal. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { FoundIntent, IntentJournal, JournalListener } from './intent-journal/intent-journal.ts';
import type { JournalMetrics, ReportReason } from './intent-journal/journal-metrics.ts';
import type { IntentRecord } from './intent-journal/intent-record.ts';
import { ClosedNames } from './closed-names.ts';
import { awaitOthers, foundIntent, type Intent, newIntent, quietInMs } from './intent.ts';
import { OpenIntents } from './open-intents.ts';

export interface IntentsOptions {
  journal: IntentJournal;
  /** How long a call of an earlier process to the backend may still take, in milliseconds. */
  maxCallMs: number;
  clock: Clock;
  logger: Logger;
  metrics: JournalMetrics;
}

/** How much of a backend's text a record may hold, in characters. */
const maxProblemLength = 2000;

export class Intents {
  readonly #options: IntentsOptions;
  readonly #open: OpenIntents;
  readonly #closed: ClosedNames;

  constructor(options: IntentsOptions) {
    this.#options = options;
    this.#open = new OpenIntents(options.metrics);
    this.#closed = new ClosedNames(options.clock);
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
   * @param discarded - called with an intent that an operator has discarded.
   */
  async load(
    {
      changed,
      discarded,
      fenced,
    }: { changed: (uid: string) => void; discarded: (intent: Intent) => void; fenced: (error: Error) => void },
    signal: AbortSignal,
  ): Promise<void> {
    const listener: JournalListener = {
      onFound: (found) => {
        this.#find(found);
        changed(found.record.claim.uid);
      },
      onGone: (uid) => {
        const intent = this.#open.get(uid);
        if (intent !== undefined) this.#open.remove(intent);
        changed(uid);
      },
      onDiscarded: (uid) => {
        const intent = this.#open.get(uid);
        if (intent === undefined) return;
        this.#open.remove(intent);
        discarded(intent);
        changed(uid);
      },
      onFenced: fenced,
    };
    await this.#options.journal.open(listener, signal);
  }

  /**
   * Records a new intent; resolves once the backend may be asked. Before that no record of another claim has the name in the
   * journal any more: the next process could not tell which of them stands for the volume.
   *
   * @throws {NameInUseError} when the volume's name is in use, and what the journal throws.
   */
  async begin(record: IntentRecord, signal: AbortSignal): Promise<Intent> {
    const { uid } = record.claim;
    const { name } = record.volume;
    this.checkName(uid, name);
    const former = this.#closed.uidOf(name);
    if (former !== undefined && former !== uid && this.#open.get(former) === undefined) {
      await this.#options.journal.removeNow(former, signal);
      this.#closed.forget(name);
      this.checkName(uid, name);
    }
    const intent = newIntent(record);
    this.#open.add(intent);
    try {
      const protection = await this.#options.journal.put(record, signal);
      intent.recorded = true;
      if (protection === 'unprotected') this.#options.metrics.unprotected();
    } catch (error) {
      this.close(intent); // the write may have arrived all the same
      throw error;
    }
    return intent;
  }

  /** @throws {NameInUseError} when another claim's intent has the name, and came first. */
  checkName(uid: string, name: string): void {
    this.#open.checkName(uid, name);
  }

  /** Another process has the record: takes it over. @throws {ForeignIntentError} when that must be waited for. */
  async takeOver(intent: Intent, signal: AbortSignal): Promise<void> {
    if (intent.owner !== 'foreign') return;
    await this.#options.journal.put(intent.record, signal);
    intent.owner = 'taken-over';
  }

  /** The claim is served or gone: a process that still works on a record that was taken over from it makes its last call. */
  awaitOthers(intent: Intent): void {
    awaitOthers(intent, { nowMs: this.#nowMs, maxCallMs: this.#options.maxCallMs });
  }

  /** Asks the backend to make the storage. Until that ends, the storage of a saved volume of the name stays. @throws what `call` throws. */
  async ask<T>(intent: Intent, call: () => Promise<T>): Promise<T> {
    intent.mayExist = true;
    intent.underWay = true;
    try {
      return await call();
    } finally {
      intent.underWay = false;
    }
  }

  /** The backend has made the storage, and its volume is about to be saved; if that fails, a later attempt finds it. */
  made(intent: Intent): void {
    intent.saveAttempted = true;
    intent.exhausted = false;
    intent.unclearAtMs = this.#nowMs;
  }

  /** An attempt ended without a clear result: the backend may still be at work. */
  unclear(intent: Intent): void {
    intent.exhausted = false;
    intent.unclearAtMs = this.#nowMs;
    if (intent.record.phase === 'create') this.#note(intent, { ...intent.record, phase: 'unclear' });
  }

  /**
   * The backend says that it has no room.
   *
   * @returns whether that is certain: said twice, when every attempt with an unclear result must have ended.
   */
  noRoom(intent: Intent): boolean {
    const { clock, maxCallMs } = this.#options;
    if (clock.monotonicMs() - intent.unclearAtMs < maxCallMs) return false;
    if (intent.exhausted) return true;
    intent.exhausted = true;
    return false;
  }

  /** @throws when the record was closed meanwhile, discarded, or taken over by another process. */
  checkOpen(intent: Intent): void {
    if (this.#open.has(intent)) return;
    throw new Error(`the record of volume ${JSON.stringify(intent.record.volume.name)} is not open any more`);
  }

  /** The storage is going to be deleted. Resolves once that is recorded. @throws as `checkOpen`, and what the journal throws. */
  async toDelete(intent: Intent, handle: string, signal: AbortSignal): Promise<void> {
    this.checkOpen(intent);
    if (intent.record.phase === 'delete' && intent.record.handle === handle) return;
    await this.#put(intent, { ...intent.record, phase: 'delete', handle }, signal);
  }

  /** The storage is not going to be deleted after all. Resolves once that is recorded. */
  async leaveDelete(intent: Intent, signal: AbortSignal): Promise<void> {
    const { handle, problem: _problem, ...record } = intent.record;
    if (handle !== undefined) await this.#put(intent, { ...record, phase: 'unclear' }, signal);
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

  /** Nothing is left to do for it: its volume is saved, or nothing was made. Safe to repeat. */
  close(intent: Intent): void {
    if (!this.#open.remove(intent)) return;
    const { claim, volume } = intent.record;
    this.#options.journal.remove(claim.uid);
    this.#closed.add(volume.name, claim.uid);
  }

  /** Like `close`, but the name stays in use until the journal is written. */
  async closeNow(intent: Intent, signal: AbortSignal): Promise<void> {
    if (!this.#open.has(intent)) return;
    await this.#options.journal.removeNow(intent.record.claim.uid, signal);
    this.#open.remove(intent);
  }

  #find(found: FoundIntent): void {
    const { maxCallMs, logger, metrics } = this.#options;
    const { record, owner } = found;
    const { uid, namespace, name } = record.claim;
    const known = this.#open.get(uid);
    if (known?.owner === 'own' && known.recorded) return; // of another process that worked beside us
    if (known !== undefined) this.#open.remove(known);
    const keptUntilMs = known?.recorded === true ? known.keptUntilMs : this.#nowMs + maxCallMs;
    this.#open.add(foundIntent(found, { keptUntilMs, nowMs: this.#nowMs, maxCallMs }));
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
