import type {
  FoundIntent,
  IntentJournal,
  IntentRecord,
  JournalListener,
  Protection,
} from '../../../src/provision/intent-journal/intent-journal.ts';

/** Records as the cluster would hold them: they are plain data, and outlive the controller. */
export class MemoryJournal implements IntentJournal {
  readonly records = new Map<string, IntentRecord>();
  /** As an operator sets it. */
  isDraining = false;
  /** What was asked of it, in order: `put create`, `put delete`, `remove`. */
  readonly writes: string[] = [];
  /** Called before each write arrives; a rejection refuses it. */
  onPut: (record: IntentRecord) => Promise<void> = () => Promise.resolve();
  /** The records that were put, as long as somebody else keeps them. */
  readonly given: WeakRef<IntentRecord>[] = [];
  listener!: JournalListener;
  flushed = false;
  readonly #left: FoundIntent[] = [];

  /** What an earlier process has left, handed over when the journal is opened. */
  leave(found: FoundIntent): void {
    this.#left.push(found);
    this.records.set(found.record.claim.uid, found.record);
  }

  /** An operator discards a record. */
  discard(uid: string): void {
    this.records.delete(uid);
    this.listener.onDiscarded(uid);
  }

  open(listener: JournalListener): Promise<void> {
    this.listener = listener;
    for (const found of this.#left) listener.onFound(found);
    return Promise.resolve();
  }

  run(): Promise<void> {
    return Promise.resolve();
  }

  async put(record: IntentRecord): Promise<Protection> {
    this.given.push(new WeakRef(record));
    await this.onPut(record);
    this.writes.push(`put ${record.phase}`);
    this.#keep(record);
    return 'durable';
  }

  note(record: IntentRecord): void {
    this.#keep(record);
  }

  renewSince(uid: string, since: string): void {
    const record = this.records.get(uid);
    if (record !== undefined) this.#keep({ ...record, since });
  }

  remove(uid: string): void {
    this.writes.push('remove');
    this.records.delete(uid);
  }

  removeNow(uid: string): Promise<void> {
    this.remove(uid);
    return Promise.resolve();
  }

  flush(): Promise<void> {
    this.flushed = true;
    return Promise.resolve();
  }

  #keep(record: IntentRecord): void {
    this.records.set(record.claim.uid, JSON.parse(JSON.stringify(record)) as IntentRecord);
  }
}
