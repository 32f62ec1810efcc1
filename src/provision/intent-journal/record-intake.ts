/** Takes the records of the controller: each becomes an entry of the shard that holds it already, or waits to be placed in one. */
import { traced } from '../../base/tracing.ts';
import type { Protection } from './intent-journal.ts';
import type { IntentRecord } from './intent-record.ts';
import { entryOf, type JournalEntry, sharedBytes } from './journal-entry.ts';
import type { ClusterJournalOptions } from './journal-options.ts';
import type { JournalProtection } from './journal-protection.ts';
import { loneBytes, maxShardBytes } from './place-group.ts';
import { PlanWriter } from './plan-text.ts';
import { foreignIntent } from './record-changes.ts';
import { settled } from './settled.ts';
import type { Shard, Waiter } from './shard.ts';
import type { ShardSet } from './shard-set.ts';
import type { WriteQueue } from './write-queue.ts';

/** Records may grow a little after they were placed; with the prefixes of the keys this stays below the server's 256 KiB. */
const maxGrownBytes = 230 * 1024;

export interface RecordIntakeOptions {
  journal: ClusterJournalOptions;
  /** This process. */
  me: string;
  shards: ShardSet;
  queue: WriteQueue;
  protection: JournalProtection;
  /** Why nothing is written any more. */
  endedBy: () => Error | undefined;
}

/** `put`, `note`, `remove` and `removeNow` are those of `IntentJournal`. */
export class RecordIntake {
  readonly #options: RecordIntakeOptions;
  readonly #plans = new PlanWriter();

  constructor(options: RecordIntakeOptions) {
    this.#options = options;
  }

  async put(record: IntentRecord, signal: AbortSignal): Promise<Protection> {
    const { me, shards, queue, protection } = this.#options;
    signal.throwIfAborted();
    this.#checkEnded();
    const { uid } = record.claim;
    if (shards.all().some(({ foreign }) => foreign.has(uid))) throw foreignIntent(uid);
    const shard = shards.home.get(uid);
    const old = shard?.wanted.get(uid);
    if (old !== undefined && old.writer !== me && old.phase === 'delete') throw foreignIntent(uid);
    const entry = this.#entryOf(record, old);
    if (!fits(entry, shard, old)) {
      await this.#meetMarks(signal);
      return this.#reportOversize(record, entry);
    }
    queue.onRecord();
    const waiting = Promise.withResolvers<Protection>();
    const waiters: Waiter[] = protection.isRefused ? [] : [{ uid, ...waiting }];
    if (shard === undefined) queue.unplaced.set(uid, { entry, waiters });
    else this.#change(shard, entry, waiters);
    if (waiters.length === 0) return 'unprotected';
    queue.wake();
    return traced('journal write', () => settled(waiting, signal), { attributes: { phase: record.phase } });
  }

  note(record: IntentRecord): void {
    const { me, shards, queue } = this.#options;
    const { uid } = record.claim;
    const shard = shards.home.get(uid);
    const unplaced = queue.unplaced.get(uid);
    const old = shard?.wanted.get(uid) ?? unplaced?.entry;
    if (old?.writer !== me) return;
    const entry = this.#entryOf(record, old);
    if (unplaced !== undefined) unplaced.entry = entry;
    else if (shard !== undefined && fits(entry, shard, old)) {
      shard.want(uid, entry, this.#nowMs);
      queue.wake();
    }
  }

  remove(uid: string): void {
    const { me, shards, queue } = this.#options;
    for (const waiter of queue.unplaced.get(uid)?.waiters ?? []) waiter.resolve('durable');
    queue.unplaced.delete(uid);
    const shard = shards.home.get(uid);
    if (shard?.wanted.get(uid)?.writer !== me) return;
    shard.want(uid, undefined, this.#nowMs);
    shard.adopting.delete(uid);
    queue.wake();
  }

  async removeNow(uid: string, signal: AbortSignal): Promise<void> {
    const { shards, queue, protection } = this.#options;
    this.remove(uid);
    const shard = shards.home.get(uid);
    if (shard === undefined || shard.wanted.has(uid) || protection.isRefused) return;
    this.#checkEnded();
    const waiting = Promise.withResolvers<Protection>();
    shard.touch(this.#nowMs, { urgent: true });
    shard.waiters.push({ uid: '', ...waiting });
    queue.wake();
    await traced('journal write', () => settled(waiting, signal), { attributes: { phase: 'closed' } });
  }

  /** To be called once the journal was read: new records go to the shard that already has one for the claim. */
  settleKnown(): void {
    const { shards, queue } = this.#options;
    for (const [uid, { entry, waiters }] of queue.unplaced) {
      const shard = shards.home.get(uid);
      if (shard === undefined) continue;
      queue.unplaced.delete(uid);
      this.#change(shard, entry, waiters);
    }
  }

  #checkEnded(): void {
    const error = this.#options.endedBy();
    if (error !== undefined) throw error;
  }

  #entryOf(record: IntentRecord, old: JournalEntry | undefined): JournalEntry {
    const { me, journal } = this.#options;
    const renewedAt = new Date(journal.clock.wallMs()).toISOString();
    return entryOf(record, { writer: me, renewedAt, reportOnly: old?.reportOnly ?? '', plans: this.#plans });
  }

  #change(shard: Shard, entry: JournalEntry, waiters: readonly Waiter[]): void {
    shard.want(entry.uid, entry, this.#nowMs);
    shard.adopting.delete(entry.uid);
    shard.discarding.delete(entry.uid);
    shard.waiters.push(...waiters);
    shard.urgent = true;
  }

  /** Writes the first shard, as the write of a record would: what operators and other processes have set there is known then. */
  async #meetMarks(signal: AbortSignal): Promise<void> {
    const { shards, queue, protection } = this.#options;
    if (!queue.isRunning || protection.isRefused) return;
    const waiting = Promise.withResolvers<Protection>();
    shards.root.touch(this.#nowMs, { urgent: true });
    shards.root.waiters.push({ uid: '', ...waiting });
    queue.wake();
    await settled(waiting, signal);
  }

  #reportOversize({ claim }: IntentRecord, entry: JournalEntry): Protection {
    const { logger, metrics } = this.#options.journal;
    metrics?.reported('too-large');
    logger.error(
      { claim: `${claim.namespace}/${claim.name}`, bytes: loneBytes(entry), maxBytes: maxShardBytes },
      'The record of a volume is too large for the intent journal: a crash while it is being created may leak it',
    );
    return 'unprotected';
  }

  get #nowMs(): number {
    return this.#options.journal.clock.monotonicMs();
  }
}

/** Whether there is room for a record, which stays in the shard where it is. */
function fits(entry: JournalEntry, shard: Shard | undefined, old: JournalEntry | undefined): boolean {
  if (shard === undefined) return loneBytes(entry) <= maxShardBytes;
  return shard.bytesWith(entry.bytes - (old?.bytes ?? 0), sharedBytes([entry])) <= maxGrownBytes;
}
