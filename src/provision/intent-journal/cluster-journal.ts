/**
 * The journal in Leases of the cluster. A record's way: the `RecordIntake` gives it to the `WriteQueue`, which
 * places it in a `Shard` with others; the `ShardWriter` writes that. `RecordChanges` follows what other processes write, and
 * `JournalUpkeep` does the periodic work.
 */
import { randomUUID } from 'node:crypto';
import type { IntentJournal, JournalListener, Protection } from './intent-journal.ts';
import type { IntentRecord } from './intent-record.ts';
import type { ClusterJournalOptions } from './journal-options.ts';
import { JournalProtection } from './journal-protection.ts';
import { isDenied } from './journal-rights.ts';
import { JournalUpkeep } from './journal-upkeep.ts';
import { untilRead } from './load-journal.ts';
import { ShardReader } from './read-shards.ts';
import { foreignIntent, RecordChanges } from './record-changes.ts';
import { RecordIntake } from './record-intake.ts';
import { inParallel } from './settled.ts';
import type { Shard } from './shard.ts';
import { parseShard, type ShardContents } from './shard-contents.ts';
import { ShardSet } from './shard-set.ts';
import { type ShardObject, ShardStorage } from './shard-storage.ts';
import { ShardWriter } from './shard-writer.ts';
import { WriteQueue } from './write-queue.ts';
import { WriterPermit } from './writer-permit.ts';

/** Records in Leases `<lock name>-journal-<n>`, written in groups. */
export function clusterJournal(options: ClusterJournalOptions): IntentJournal {
  return new ClusterJournal(options);
}

class ClusterJournal implements IntentJournal {
  readonly permit: WriterPermit | undefined;
  readonly #options: ClusterJournalOptions;
  readonly #shards = new ShardSet();
  readonly #protection: JournalProtection;
  readonly #changes: RecordChanges;
  readonly #reader: ShardReader;
  readonly #queue: WriteQueue;
  readonly #intake: RecordIntake;
  readonly #upkeep: JournalUpkeep;
  #listener: JournalListener | undefined;
  /** Ends every request, once the run has ended or the start was abandoned. */
  readonly #ending = new AbortController();
  #isOpen = false;
  #endedBy: Error | undefined;

  constructor(options: ClusterJournalOptions) {
    const me = options.writer ?? randomUUID();
    const { clock, client, metrics, isKnownProvisioner } = options;
    const ending = this.#ending.signal;
    const [shards, storage] = [this.#shards, new ShardStorage({ ...options, signal: ending })];
    const parse = (object: ShardObject): ShardContents | undefined =>
      parseShard(object, { wallMs: clock.wallMs(), isKnownProvisioner });
    this.#options = options;
    this.#protection = new JournalProtection(options);
    this.#changes = new RecordChanges({
      journal: options,
      storage,
      shards,
      me,
      isSuperseded: (uid) => this.#queue.unplaced.has(uid),
      onOvertaken: (uid) => this.#queue.dropWaiting(uid, foreignIntent(uid)),
      onFenced: (writer) => this.#fence(writer),
    });
    const onChanged = this.#changes.onChanged.bind(this.#changes);
    this.#reader = new ShardReader({ journal: options, storage, shards, parse, onChanged });
    const writer = new ShardWriter({
      storage,
      clock,
      writer: me,
      ended: AbortSignal.any([client.fenced, ending]),
      rootFields: (shard) => this.#upkeep.rootFields(shard),
      parse,
      onChanged,
      confirm: (shard) => this.#confirm(shard, me),
      isDenied: () => isDenied(options, ending),
      onWritten: (shard, { seconds, bytes, sentAt }) => {
        this.permit?.wrote(shard, sentAt);
        metrics?.written(seconds, bytes);
        metrics?.size(shards.all().reduce((sum, shard) => sum + (shard.object === undefined ? 0 : shard.bytes), 0));
      },
    });
    this.#queue = new WriteQueue({
      journal: options,
      shards,
      write: (shard) => writer.write(shard),
      onStored: (shard, write) => this.#changes.onStored(shard, write),
      onRefused: (error) => this.#refuse(error),
      onEnded: (error) => this.#end(error),
    });
    const parts = { journal: options, me, shards };
    if (!options.exclusive) {
      const isRefused = (): boolean => this.#protection.isRefused;
      this.permit = new WriterPermit({ ...parts, clock, isRefused, wake: () => this.#wake() });
    }
    this.#intake = new RecordIntake({
      ...parts,
      queue: this.#queue,
      protection: this.#protection,
      endedBy: () => this.#endedBy,
    });
    this.#upkeep = new JournalUpkeep({ ...parts, reader: this.#reader, changes: this.#changes });
  }

  async open(listener: JournalListener, signal: AbortSignal): Promise<void> {
    this.#listener = listener;
    using _ending = this.#endsWith(signal);
    await this.#load(signal);
  }

  get isDraining(): boolean {
    return this.#shards.isDraining;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, renewMs = 10_000, pollMs = 10_000 } = this.#options;
    using _ending = this.#endsWith(signal);
    for (;;) {
      try {
        await clock.sleep(Math.min(renewMs, pollMs), { signal });
      } catch {
        return;
      }
      if (this.#protection.isRetryDue) await this.#retry(signal);
      else if (this.#isOpen && !this.#protection.isRefused && this.#endedBy === undefined) {
        await this.#upkeep.maintain();
        this.#queue.wake();
      }
    }
  }

  put(record: IntentRecord, signal: AbortSignal): Promise<Protection> {
    return this.#intake.put(record, signal);
  }

  note(record: IntentRecord): void {
    this.#intake.note(record);
  }

  remove(uid: string): void {
    this.#intake.remove(uid);
  }

  removeNow(uid: string, signal: AbortSignal): Promise<void> {
    return this.#intake.removeNow(uid, signal);
  }

  async flush(signal: AbortSignal): Promise<void> {
    await this.#queue.drain(signal);
  }

  /** Until disposed: once the signal aborts, nothing is sent any more, for good. */
  #endsWith(signal: AbortSignal): Disposable {
    const end = (): void => this.#ending.abort(signal.reason);
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    return { [Symbol.dispose]: () => signal.removeEventListener('abort', end) };
  }

  /** Reads everything, and writes what is taken over; then it is open. Also resolves when that is refused. */
  async #load(signal: AbortSignal): Promise<void> {
    if (!(await this.#read(() => this.#reader.readAll(), signal))) return;
    this.#shards.root.touch(this.#options.clock.monotonicMs(), { urgent: true });
    // the first one before all others: from then on a former leader that begins to use a shard notices that it is one no more
    if (!(await this.#writeAll([this.#shards.root]))) return;
    if (this.#options.exclusive) {
      if (!(await this.#read(() => this.#reader.readAbsent(), signal))) return;
      this.#shards.dropExcess(this.#options.clock.monotonicMs());
    }
    if (!(await this.#writeAll(this.#shards.all().filter((shard) => shard.isDirty)))) return;
    this.#isOpen = true;
    this.#upkeep.wasRead();
    this.#protection.restore();
    if (this.#listener !== undefined) await this.#changes.listen(this.#listener);
    this.#intake.settleKnown();
    this.#queue.start();
  }

  /** @returns whether it was read, or is refused. */
  async #read(read: () => Promise<void>, signal: AbortSignal): Promise<boolean> {
    const { clock, logger } = this.#options;
    const denied = (): Promise<boolean> => isDenied(this.#options, this.#ending.signal);
    const refusal = await untilRead(read, { isDenied: denied, clock, logger, signal });
    if (refusal !== undefined) this.#refuse(refusal);
    return refusal === undefined;
  }

  /** @returns whether all were written, or one is refused. @throws when nothing may be written any more. */
  async #writeAll(shards: readonly Shard[]): Promise<boolean> {
    const refusals: Error[] = [];
    await inParallel(shards, async (shard) => {
      if (refusals.length === 0) refusals.push(...(await this.#queue.write(shard)));
    });
    if (this.#endedBy !== undefined) throw this.#endedBy;
    return refusals.length === 0;
  }

  /** @throws when another process has written the first shard: this one does not hold the journal any more. */
  async #confirm(shard: Shard, me: string): Promise<void> {
    const { root } = this.#shards;
    if (!this.#options.exclusive || shard === root) return;
    const holder = await this.#reader.holderOf(root);
    if (holder !== undefined && holder !== me) throw this.#fence(holder);
  }

  /** Takes the journal up again, if that is possible now. */
  async #retry(signal: AbortSignal): Promise<void> {
    try {
      if (!this.#isOpen) {
        await this.#load(signal);
        return;
      }
      this.#shards.root.touch(this.#options.clock.monotonicMs(), { urgent: true });
      this.#queue.start();
      await this.#queue.drain(signal);
      if (this.#queue.isRunning && !signal.aborted) this.#protection.restore();
    } catch {
      // aborted, or ended: whoever waits for a record is rejected already
    }
  }

  #wake(): void {
    if (this.#endedBy !== undefined) throw this.#endedBy;
    this.#queue.wake();
  }

  #refuse(error: Error): void {
    this.#queue.end();
    this.#protection.refuse(error);
    for (const waiter of this.#queue.takeWaiters()) waiter.resolve('unprotected');
  }

  #fence(writer: string): Error {
    const error = new Error(
      `the intent journal was written by another process (${writer}) while this one held the lease`,
    );
    this.#end(error);
    this.#listener?.onFenced(error);
    return error;
  }

  #end(error: Error): void {
    this.#endedBy ??= error;
    this.#queue.end();
    for (const waiter of this.#queue.takeWaiters()) waiter.reject(error); // also those of writes that end later
  }
}
