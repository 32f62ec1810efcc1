/**
 * The journal in Leases of the cluster. The path of a record: `put` turns it into an entry, the `WriteQueue` places it in a shard with
 * others, and the `ShardWriter` writes that. All of it is kept in the `JournalState`; `RecordChanges` follows what other processes
 * write, and the `JournalRun` opens the journal and does the periodic work.
 */
import { randomUUID } from 'node:crypto';
import { traced } from '../../base/tracing.ts';
import {
  foreignIntent,
  type IntentJournal,
  type IntentRecord,
  type JournalListener,
  OtherProvisionerError,
  type Protection,
} from './intent-journal.ts';
import { entryOf, type JournalEntry, withHead } from './journal-entry.ts';
import { noJournalMetrics } from './journal-metrics.ts';
import { type ClusterJournalOptions, type JournalOptions, settled, WriterStatus } from './journal-parts.ts';
import { JournalRun } from './journal-run.ts';
import { JournalState, loneBytes, maxShardBytes } from './journal-state.ts';
import { PlanWriter } from './plan-text.ts';
import { ShardReader } from './read-shards.ts';
import { RecordChanges } from './record-changes.ts';
import { ShardStorage } from './shard-storage.ts';
import { ShardWriter } from './shard-writer.ts';
import { Heartbeats, OwnWrites, WriterPermit } from './signs-of-life.ts';
import { WriteQueue } from './write-queue.ts';

/** Records in Leases `<lock name>-journal-<n>`, written in groups. */
export function clusterJournal(options: ClusterJournalOptions): IntentJournal {
  const { roundMs = 10_000, adoptAfterMs = 30_000, groupMs = 40 } = options;
  const { writer = randomUUID(), isFormer = () => false, metrics = noJournalMetrics } = options;
  return new ClusterJournal({ ...options, roundMs, adoptAfterMs, groupMs, writer, isFormer, metrics });
}

class ClusterJournal implements IntentJournal {
  readonly permit: WriterPermit | undefined;
  readonly #options: JournalOptions;
  /** This process. */
  readonly #me: string;
  readonly #state = new JournalState();
  readonly #status: WriterStatus;
  readonly #queue: WriteQueue;
  readonly #run: JournalRun;
  readonly #plans = new PlanWriter();

  constructor(journal: JournalOptions) {
    const { writer: me, exclusive } = journal;
    const state = this.#state;
    const status = new WriterStatus({ journal, state });
    const storage = new ShardStorage({ ...journal, signal: status.requestSignal });
    const parts = { journal, me, state, status, storage, heartbeats: new Heartbeats() };
    const changes = new RecordChanges(parts);
    const reader = new ShardReader({ ...parts, changes });
    const ownWrites = exclusive ? undefined : new OwnWrites(parts);
    const writer = new ShardWriter({ ...parts, changes, ownWrites });
    const queue = new WriteQueue({ ...parts, changes, writer });
    this.permit = ownWrites && new WriterPermit({ ...parts, ownWrites, queue });
    this.#run = new JournalRun({ ...parts, changes, reader, queue });
    this.#options = journal;
    this.#me = me;
    this.#status = status;
    this.#queue = queue;
  }

  get isDraining(): boolean {
    return this.#state.isDraining;
  }

  open(listener: JournalListener, signal: AbortSignal): Promise<void> {
    return this.#run.open(listener, signal);
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#run.run(signal);
  }

  async put(record: IntentRecord, signal: AbortSignal): Promise<Protection> {
    signal.throwIfAborted();
    this.#status.throwIfEnded();
    const { uid } = record.claim;
    const old = this.#state.entryOf(uid);
    const mustEndThere = old !== undefined && old.writer !== this.#me && old.phase === 'delete';
    if (mustEndThere) throw foreignIntent(uid);
    const other = this.#state.otherProvisionerOf(uid);
    if (other !== undefined) throw new OtherProvisionerError(uid, other);
    const entry = this.#entryOf(record, old);
    if (!this.#state.hasRoom(entry)) {
      await this.#readMarks(signal);
      return this.#reportOversize(record, entry);
    }
    this.#queue.onRecord();
    const waiting = Promise.withResolvers<Protection>();
    const { isRefused } = this.#status;
    this.#state.put(entry, isRefused ? [] : [{ uid, ...waiting }], this.#nowMs);
    if (isRefused) return 'unprotected';
    this.#queue.wake();
    return traced('journal write', () => settled(waiting, signal), { attributes: { phase: record.phase } });
  }

  note(record: IntentRecord): void {
    this.#revise(record.claim.uid, (old) => this.#entryOf(record, old));
  }

  renewSince(uid: string, since: string): void {
    this.#revise(uid, (old) => withHead(old, { since, renewedAt: this.#wallTime }));
  }

  remove(uid: string): void {
    for (const waiter of this.#state.dropUnplaced(uid)) waiter.resolve('durable');
    if (this.#state.entryOf(uid)?.writer !== this.#me) return;
    this.#state.home.get(uid)?.remove(uid, this.#nowMs);
    this.#queue.wake();
  }

  async removeNow(uid: string, signal: AbortSignal): Promise<void> {
    this.remove(uid);
    const shard = this.#state.home.get(uid);
    if (shard === undefined || shard.wanted.has(uid) || this.#status.isRefused) return;
    this.#status.throwIfEnded();
    const written = shard.written(this.#nowMs);
    this.#queue.wake();
    await traced('journal write', () => settled(written, signal), { attributes: { phase: 'closed' } });
  }

  flush(signal: AbortSignal): Promise<void> {
    return this.#queue.flush(signal);
  }

  #revise(uid: string, change: (old: JournalEntry) => JournalEntry): void {
    const old = this.#state.entryOf(uid) ?? this.#state.unplaced.get(uid)?.entry;
    if (old?.writer !== this.#me) return;
    this.#state.revise(change(old), this.#nowMs);
    this.#queue.wake();
  }

  #entryOf(record: IntentRecord, old: JournalEntry | undefined): JournalEntry {
    const { reportOnly = '' } = old ?? {};
    return entryOf(record, { writer: this.#me, renewedAt: this.#wallTime, reportOnly, plans: this.#plans });
  }

  /** Writes the first shard, as the write of a record would, which shows what operators and other processes have set there. */
  async #readMarks(signal: AbortSignal): Promise<void> {
    if (!this.#status.isRunning || this.#status.isRefused) return;
    const written = this.#state.root.written(this.#nowMs);
    this.#queue.wake();
    await settled(written, signal);
  }

  #reportOversize({ claim }: IntentRecord, entry: JournalEntry): Protection {
    const { logger, metrics } = this.#options;
    metrics.reported('too-large');
    logger.error(
      { claim: `${claim.namespace}/${claim.name}`, bytes: loneBytes(entry), maxBytes: maxShardBytes },
      'The record of a volume is too large for the intent journal: a crash while it is being created may leak it',
    );
    return 'unprotected';
  }

  get #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  get #wallTime(): string {
    return new Date(this.#options.clock.wallMs()).toISOString();
  }
}
