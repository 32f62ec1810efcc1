/** What may be under way at the backend: the one owner of that knowledge. It keeps the journal and its own memory equal. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { FoundIntent, IntentJournal, JournalListener } from './intent-journal/intent-journal.ts';
import type { JournalMetrics, ReportReason } from './intent-journal/journal-metrics.ts';
import type { IntentPhase, IntentRecord } from './intent-journal/intent-record.ts';

/** One volume in the making, or being undone. */
export interface Intent {
  /** As it is in the journal; replaced as a whole. */
  record: IntentRecord;
  /** Its record was written: from then on the backend may be asked. */
  recorded: boolean;
  /** The backend may have storage for it, or be making it. */
  mayExist: boolean;
  /** Monotonic time of the last attempt after which the backend may still be at work. */
  unclearAtMs: number;
  /** The backend has said once, long enough after the last unclear attempt, that it has no room for it. */
  exhausted: boolean;
  /** The PersistentVolume may have been created, by whatever process. */
  saveAttempted: boolean;
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

export interface IntentsOptions {
  journal: IntentJournal;
  /** How long a call of an earlier process to the backend may still take, in milliseconds. */
  maxCallMs: number;
  clock: Clock;
  logger: Logger;
  metrics: JournalMetrics;
}

/**
 * How long a process whose record was taken over may go on before its watch shows that the claim is served or gone, in
 * milliseconds.
 */
const noticeMs = 10_000;

/** Pause until a volume whose storage is being revoked is looked at again, in milliseconds. */
const revokedPauseMs = 1000;

/** The volume's name is in use by the intent of another claim. */
export class NameInUseError extends Error {
  override readonly name = 'NameInUseError';
}

/** How much of a backend's text a record may hold, in characters. */
const maxProblemLength = 2000;

export class Intents {
  readonly #options: IntentsOptions;
  /** By claim UID. */
  readonly #open = new Map<string, Intent>();
  /** Claim UIDs by volume name; the first of them may work, the others wait. */
  readonly #byName = new Map<string, Set<string>>();
  readonly #phases: Record<IntentPhase, number> = { create: 0, unclear: 0, delete: 0, stuck: 0 };

  constructor(options: IntentsOptions) {
    this.#options = options;
    options.metrics.oldestCreatedAtMs(() => this.#oldestMs());
  }

  get(uid: string): Intent | undefined {
    return this.#open.get(uid);
  }

  list(): IterableIterator<Intent> {
    return this.#open.values();
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
        if (intent !== undefined) this.#forget(intent);
        changed(uid);
      },
      onDiscarded: (uid) => {
        const intent = this.#open.get(uid);
        if (intent === undefined) return;
        this.#forget(intent);
        discarded(intent);
        changed(uid);
      },
      onFenced: fenced,
    };
    await this.#options.journal.open(listener, signal);
  }

  /**
   * Records a new intent; resolves once the backend may be asked.
   *
   * @throws {NameInUseError} when the volume's name is in use, and what the journal throws.
   */
  async begin(record: IntentRecord, signal: AbortSignal): Promise<Intent> {
    const { uid } = record.claim;
    this.checkName(uid, record.volume.name);
    const intent = newIntent(record);
    this.#add(intent);
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
    const [first] = this.#byName.get(name) ?? [];
    if (first === undefined || first === uid) return;
    const other = this.#open.get(first)?.record.claim;
    throw new NameInUseError(
      `the volume name ${JSON.stringify(name)} is in use for claim ${other?.namespace ?? ''}/${other?.name ?? ''} with UID ${first}`,
    );
  }

  /** Another process has the record: takes it over. @throws {ForeignIntentError} when that must be waited for. */
  async takeOver(intent: Intent, signal: AbortSignal): Promise<void> {
    if (intent.owner !== 'foreign') return;
    await this.#options.journal.put(intent.record, signal);
    intent.owner = 'taken-over';
  }

  /** The claim is served or gone: a process that still works on a record that was taken over from it makes its last call. */
  awaitOthers(intent: Intent): void {
    const { clock, maxCallMs } = this.#options;
    if (intent.owner !== 'taken-over') return;
    const endMs = clock.monotonicMs() + noticeMs + maxCallMs;
    intent.deleteNotBeforeMs = Math.max(intent.deleteNotBeforeMs, endMs);
    intent.keptUntilMs = Math.max(intent.keptUntilMs, endMs);
  }

  /** The backend is about to be asked to make the storage. */
  reaching(intent: Intent): void {
    intent.mayExist = true;
  }

  /** The backend has made the storage, and its volume is about to be saved; if that fails, a later attempt finds it. */
  made(intent: Intent): void {
    intent.saveAttempted = true;
    intent.exhausted = false;
    intent.unclearAtMs = this.#options.clock.monotonicMs();
  }

  /** An attempt ended without a clear result: the backend may still be at work. */
  unclear(intent: Intent): void {
    intent.exhausted = false;
    intent.unclearAtMs = this.#options.clock.monotonicMs();
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
    if (this.#isOpen(intent)) return;
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
        'A volume may be left at the backend and has to be looked at',
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

  /**
   * For how long the storage of a PersistentVolume of this name must stay, in milliseconds: while a call of an earlier process
   * may make it again, and while the revoker, which makes it to find it, looks whether it may go.
   */
  quietInMs(volumeName: string): number {
    const nowMs = this.#options.clock.monotonicMs();
    const waits = [...(this.#byName.get(volumeName) ?? [])].map((uid) => {
      const intent = this.#open.get(uid);
      if (intent === undefined || intent.record.phase === 'stuck') return 0;
      const isRevoked = intent.revoking && intent.owner !== 'foreign' && intent.deleteNotBeforeMs <= nowMs;
      return Math.max(intent.keptUntilMs - nowMs, isRevoked ? revokedPauseMs : 0);
    });
    return Math.max(0, ...waits);
  }

  /** Nothing is left to do for it: its volume is saved, or nothing was made. Safe to repeat. */
  close(intent: Intent): void {
    if (!this.#forget(intent)) return;
    this.#options.journal.remove(intent.record.claim.uid);
  }

  /** Like `close`, but the name stays in use until the journal is written. */
  async closeNow(intent: Intent, signal: AbortSignal): Promise<void> {
    if (!this.#isOpen(intent)) return;
    await this.#options.journal.removeNow(intent.record.claim.uid, signal);
    this.#forget(intent);
  }

  #find({ record, owner, reportOnly }: FoundIntent): void {
    const { clock, maxCallMs, logger, metrics } = this.#options;
    const { uid, namespace, name } = record.claim;
    const known = this.#open.get(uid);
    if (known?.owner === 'own' && known.recorded) return; // of another process that worked beside us
    if (known !== undefined) this.#forget(known);
    const nowMs = clock.monotonicMs();
    this.#add({
      ...newIntent(record),
      recorded: true,
      mayExist: true,
      unclearAtMs: nowMs,
      saveAttempted: true,
      deleteSent: record.handle !== undefined,
      deleteNotBeforeMs: nowMs + maxCallMs,
      keptUntilMs: known?.keptUntilMs ?? nowMs + maxCallMs,
      owner,
      reportOnly,
    });
    metrics.replayed();
    logger.info(
      { claim: `${namespace}/${name}`, uid, volume: record.volume.name, phase: record.phase, owner },
      'Found the record of a volume that another process was making',
    );
  }

  #add(intent: Intent): void {
    const { claim, volume, phase } = intent.record;
    this.#open.set(claim.uid, intent);
    const holders = this.#byName.get(volume.name);
    if (holders === undefined) this.#byName.set(volume.name, new Set([claim.uid]));
    else holders.add(claim.uid);
    this.#phases[phase] += 1;
    this.#count();
  }

  /** @returns whether it was open. */
  #forget(intent: Intent): boolean {
    const { claim, volume, phase } = intent.record;
    if (!this.#isOpen(intent)) return false;
    this.#open.delete(claim.uid);
    const holders = this.#byName.get(volume.name);
    holders?.delete(claim.uid);
    if (holders?.size === 0) this.#byName.delete(volume.name);
    this.#phases[phase] -= 1;
    this.#count();
    return true;
  }

  #isOpen(intent: Intent): boolean {
    return this.#open.get(intent.record.claim.uid) === intent;
  }

  #note(intent: Intent, record: IntentRecord): void {
    if (this.#change(intent, record)) this.#options.journal.note(record);
  }

  async #put(intent: Intent, record: IntentRecord, signal: AbortSignal): Promise<void> {
    if (this.#change(intent, record)) await this.#options.journal.put(record, signal);
  }

  /** @returns whether the intent is open. */
  #change(intent: Intent, record: IntentRecord): boolean {
    const isOpen = this.#isOpen(intent);
    if (isOpen) this.#phases[intent.record.phase] -= 1;
    intent.record = record;
    if (!isOpen) return false;
    this.#phases[record.phase] += 1;
    this.#count();
    return true;
  }

  #count(): void {
    this.#options.metrics.records(this.#phases);
  }

  #oldestMs(): number | undefined {
    let oldestMs = Infinity;
    for (const { record } of this.#open.values()) {
      const createdAtMs = Date.parse(record.createdAt);
      if (createdAtMs < oldestMs) oldestMs = createdAtMs;
    }
    return oldestMs === Infinity ? undefined : oldestMs;
  }
}

function newIntent(record: IntentRecord): Intent {
  return {
    record,
    recorded: false,
    mayExist: false,
    unclearAtMs: -Infinity,
    exhausted: false,
    saveAttempted: false,
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
