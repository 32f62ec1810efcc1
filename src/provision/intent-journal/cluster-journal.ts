/**
 * The journal in Leases or ConfigMaps of the cluster. A record's way: `put` gives it to the `WriteQueue`, which places it in a
 * `Shard` with others; the `ShardWriter` writes that; `RecordChanges` is what others do meanwhile.
 */
import { randomUUID } from 'node:crypto';
import { traced } from '../../base/tracing.ts';
import type { IntentJournal, JournalListener, Protection } from './intent-journal.ts';
import type { IntentRecord } from './intent-record.ts';
import { entryOf, type JournalEntry, sharedBytes } from './journal-entry.ts';
import type { ClusterJournalOptions } from './journal-options.ts';
import { JournalProtection } from './journal-protection.ts';
import { untilRead } from './load-journal.ts';
import { loneBytes, maxShardBytes } from './place-group.ts';
import { PlanWriter } from './plan-text.ts';
import { ShardReader } from './read-shards.ts';
import { foreignIntent, RecordChanges } from './record-changes.ts';
import { inParallel, settled } from './settled.ts';
import type { Shard, Waiter } from './shard.ts';
import type { ShardHeader } from './shard-header.ts';
import { ShardSet } from './shard-set.ts';
import { ShardStorage } from './shard-storage.ts';
import { ShardWriter } from './shard-writer.ts';
import { WriteQueue } from './write-queue.ts';

/** Records in Leases or ConfigMaps `<lock name>-journal-<n>`, written in groups. */
export function clusterJournal(options: ClusterJournalOptions): IntentJournal {
  return new ClusterJournal(options);
}

/** Records may grow a little after they were placed; with the prefixes of the keys this stays below the server's 256 KiB. */
const maxGrownBytes = 230 * 1024;
/** All shards are read this often where others may have changed them, in milliseconds. */
const slowPollMs = 60_000;
/** Shards with open records are renewed this often, in milliseconds. */
const renewShardMs = 3_600_000;

class ClusterJournal implements IntentJournal {
  readonly #options: ClusterJournalOptions;
  readonly #me: string;
  readonly #plans = new PlanWriter();
  readonly #shards = new ShardSet();
  readonly #protection: JournalProtection;
  readonly #changes: RecordChanges;
  readonly #reader: ShardReader;
  readonly #queue: WriteQueue;
  #listener: JournalListener | undefined;
  #isOpen = false;
  #endedBy: Error | undefined;
  #renewals = 0;
  #polledAtMs = 0;

  constructor(options: ClusterJournalOptions) {
    const me = options.writer ?? randomUUID();
    const { clock, client, metrics } = options;
    const [shards, storage] = [this.#shards, new ShardStorage(options)];
    this.#options = options;
    this.#me = me;
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
    this.#reader = new ShardReader({ journal: options, storage, shards, onChanged });
    const writer = new ShardWriter({
      storage,
      clock,
      writer: me,
      fenced: client.fenced,
      rootFields: (shard) => this.#rootFields(shard),
      onChanged,
      onWritten: ({ seconds, bytes }) => {
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
  }

  async open(listener: JournalListener, signal: AbortSignal): Promise<void> {
    this.#listener = listener;
    await this.#load(signal);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, renewMs = 10_000, pollMs = 10_000 } = this.#options;
    for (;;) {
      try {
        await clock.sleep(Math.min(renewMs, pollMs), { signal });
      } catch {
        return;
      }
      if (this.#protection.isRetryDue) await this.#retry(signal);
      else if (this.#isOpen && !this.#protection.isRefused && this.#endedBy === undefined) await this.#lookAround();
    }
  }

  async put(record: IntentRecord, signal: AbortSignal): Promise<Protection> {
    signal.throwIfAborted();
    if (this.#endedBy !== undefined) throw this.#endedBy;
    const { uid } = record.claim;
    const shard = this.#shards.home.get(uid);
    const old = shard?.wanted.get(uid);
    if (old !== undefined && old.writer !== this.#me && old.phase === 'delete') throw foreignIntent(uid);
    const entry = this.#entryOf(record, old);
    if (!fits(entry, shard, old)) return this.#reportOversize(record, entry);
    this.#queue.onRecord();
    const waiting = Promise.withResolvers<Protection>();
    const waiters: Waiter[] = this.#protection.isRefused ? [] : [{ uid, ...waiting }];
    if (shard === undefined) this.#queue.unplaced.set(uid, { entry, waiters });
    else this.#change(shard, entry, waiters);
    if (waiters.length === 0) return 'unprotected';
    this.#queue.wake();
    return await traced('journal write', () => settled(waiting, signal), { attributes: { phase: record.phase } });
  }

  note(record: IntentRecord): void {
    const { uid } = record.claim;
    const shard = this.#shards.home.get(uid);
    const unplaced = this.#queue.unplaced.get(uid);
    const old = shard?.wanted.get(uid) ?? unplaced?.entry;
    if (old?.writer !== this.#me) return;
    const entry = this.#entryOf(record, old);
    if (unplaced !== undefined) unplaced.entry = entry;
    else if (shard !== undefined && fits(entry, shard, old)) {
      shard.want(uid, entry, this.#options.clock.monotonicMs());
      this.#queue.wake();
    }
  }

  remove(uid: string): void {
    for (const waiter of this.#queue.unplaced.get(uid)?.waiters ?? []) waiter.resolve('durable');
    this.#queue.unplaced.delete(uid);
    const shard = this.#shards.home.get(uid);
    if (shard?.wanted.get(uid)?.writer !== this.#me) return;
    shard.want(uid, undefined, this.#options.clock.monotonicMs());
    shard.adopting.delete(uid);
    this.#queue.wake();
  }

  async removeNow(uid: string, signal: AbortSignal): Promise<void> {
    this.remove(uid);
    const shard = this.#shards.home.get(uid);
    if (shard === undefined || shard.wanted.has(uid) || this.#protection.isRefused) return;
    if (this.#endedBy !== undefined) throw this.#endedBy;
    const waiting = Promise.withResolvers<Protection>();
    shard.touch(this.#options.clock.monotonicMs(), { urgent: true });
    shard.waiters.push({ uid: '', ...waiting });
    this.#queue.wake();
    await traced('journal write', () => settled(waiting, signal), { attributes: { phase: 'closed' } });
  }

  async flush(signal: AbortSignal): Promise<void> {
    await this.#queue.drain(signal);
  }

  #entryOf(record: IntentRecord, old: JournalEntry | undefined): JournalEntry {
    return entryOf(record, { writer: this.#me, reportOnly: old?.reportOnly ?? '', plans: this.#plans });
  }

  #change(shard: Shard, entry: JournalEntry, waiters: readonly Waiter[]): void {
    shard.want(entry.uid, entry, this.#options.clock.monotonicMs());
    shard.adopting.delete(entry.uid);
    shard.discarding.delete(entry.uid);
    shard.waiters.push(...waiters);
    shard.urgent = true;
  }

  /** Reads everything, and writes what is taken over; then it is open. Also resolves when that is refused. */
  async #load(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#options;
    const unread = await untilRead(() => this.#reader.readAll(), { clock, logger, signal });
    if (unread !== undefined) {
      this.#refuse(unread);
      return;
    }
    this.#shards.root.touch(clock.monotonicMs(), { urgent: true });
    const dirty = this.#shards.all().filter((shard) => shard.isDirty);
    const refusals: Error[] = [];
    await inParallel(dirty, async (shard) => {
      if (refusals.length === 0) refusals.push(...(await this.#queue.write(shard)));
    });
    if (this.#endedBy !== undefined) throw this.#endedBy;
    if (refusals.length > 0) return;
    this.#isOpen = true;
    this.#polledAtMs = clock.monotonicMs();
    this.#protection.restore();
    if (this.#listener !== undefined) await this.#changes.listen(this.#listener);
    for (const [uid, { entry, waiters }] of this.#queue.unplaced) {
      const shard = this.#shards.home.get(uid);
      if (shard === undefined) continue;
      this.#queue.unplaced.delete(uid);
      this.#change(shard, entry, waiters);
    }
    this.#queue.start();
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

  /** What is done from time to time. */
  async #lookAround(): Promise<void> {
    const { clock, exclusive, adoptAfterMs = 30_000, pollMs = 10_000 } = this.#options;
    const nowMs = clock.monotonicMs();
    const entries = this.#shards.entries();
    const isForeign = entries.some(({ writer }) => writer !== this.#me);
    const isReported = entries.some(({ phase, reportOnly }) => phase === 'stuck' || reportOnly !== '');
    const everyMs = isForeign ? pollMs : !exclusive || isReported ? slowPollMs : Infinity;
    if (nowMs - this.#polledAtMs >= everyMs) {
      this.#polledAtMs = nowMs;
      // where nobody can be seen nobody is silent; the next write reports why
      await this.#reader.poll(nowMs).catch(() => this.#changes.others.restart(clock.monotonicMs()));
    }
    this.#changes.adoptSilent(exclusive ? Infinity : clock.monotonicMs() - adoptAfterMs);
    if (!exclusive && entries.some(({ writer }) => writer === this.#me)) {
      this.#renewals++;
      this.#shards.root.touch(nowMs, { urgent: true });
    }
    for (const shard of this.#shards.all()) {
      if (shard.wanted.size > 0 && nowMs - shard.writtenAtMs >= renewShardMs) shard.touch(nowMs, { urgent: true });
    }
    this.#queue.wake();
  }

  #rootFields(shard: Shard): Partial<ShardHeader> {
    const { exclusive, clock, adoptAfterMs = 30_000 } = this.#options;
    const shards = this.#shards.count;
    if (!this.#shards.isRoot(shard)) return {};
    if (exclusive) return { shards };
    const sinceMs = clock.monotonicMs() - 10 * adoptAfterMs;
    const { [this.#me]: _own, ...others } = shard.header?.renewals ?? {};
    const kept = Object.entries(others).filter(([writer]) => !this.#changes.others.isSilent(writer, sinceMs));
    return { shards, renewals: { ...Object.fromEntries(kept), [this.#me]: this.#renewals } };
  }

  #refuse(error: Error): void {
    this.#queue.end();
    this.#protection.refuse(error);
    for (const waiter of this.#queue.takeWaiters()) waiter.resolve('unprotected');
  }

  #reportOversize({ claim }: IntentRecord, entry: JournalEntry): Protection {
    const { logger, metrics } = this.#options;
    metrics?.reported('too-large');
    logger.error(
      { claim: `${claim.namespace}/${claim.name}`, bytes: loneBytes(entry), maxBytes: maxShardBytes },
      'The record of a volume is too large for the intent journal: a crash while it is made may leak it',
    );
    return 'unprotected';
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

/** Whether there is room for a record, which stays in the shard where it is. */
function fits(entry: JournalEntry, shard: Shard | undefined, old: JournalEntry | undefined): boolean {
  if (shard === undefined) return loneBytes(entry) <= maxShardBytes;
  return shard.bytesWith(entry.bytes - (old?.bytes ?? 0), sharedBytes([entry])) <= maxGrownBytes;
}
