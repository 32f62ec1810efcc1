import type { Timer } from '../../base/clock.ts';
import { outsideSpans } from '../../base/tracing.ts';
import { GroupPace } from './group-pace.ts';
import type { JournalEntry } from './journal-entry.ts';
import type { ClusterJournalOptions } from './journal-options.ts';
import { placeGroup } from './place-group.ts';
import { settled } from './settled.ts';
import type { Shard, ShardWrite, Waiter } from './shard.ts';
import type { ShardSet } from './shard-set.ts';
import type { WriteOutcome } from './shard-writer.ts';

/** Max writes under way. */
const maxWrites = 4;
/** Without new records for this long everything else is written, in milliseconds. */
const quietMs = 1000;
/** Other changes wait at most this long for company, in milliseconds. */
const maxDelayMs = 30_000;
/** Removed records are written by themselves once they are half of a shard, and at least this many bytes. */
const minDeadBytes = 16 * 1024;

/** A new record that has no shard yet. */
export interface Unplaced {
  entry: JournalEntry;
  waiters: Waiter[];
}

export interface WriteQueueOptions {
  journal: ClusterJournalOptions;
  shards: ShardSet;
  write: (shard: Shard) => Promise<WriteOutcome>;
  onStored: (shard: Shard, write: ShardWrite) => void;
  onRefused: (error: Error) => void;
  onEnded: (error: Error) => void;
}

/** Decides when which shard is written, and where new records go. */
export class WriteQueue {
  /** By UID of the claim. */
  readonly unplaced = new Map<string, Unplaced>();
  readonly #options: WriteQueueOptions;
  readonly #pace: GroupPace;
  #isRunning = false;
  #writes = 0;
  #timer: Timer | undefined;
  #isQueued = false;
  #progress = Promise.withResolvers<undefined>();

  constructor(options: WriteQueueOptions) {
    this.#options = options;
    this.#pace = new GroupPace(options.journal.groupMs ?? 40);
  }

  /** Whether writes are started. */
  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** From now on writes are started. */
  start(): void {
    this.#isRunning = true;
    this.wake();
  }

  /** A record is to be written. */
  onRecord(): void {
    this.#pace.onRecord(this.#nowMs);
  }

  /** Starts what is due, once the caller has made all its changes. */
  wake(): void {
    if (this.#isQueued) return;
    this.#isQueued = true;
    const startDue = (): void => {
      this.#isQueued = false;
      this.#startDue();
    };
    outsideSpans(() => queueMicrotask(startDue)); // one write is for many claims, and leads to the next
  }

  /** Writes everything, until it is done, nothing more can be written, or the signal aborts. Never rejects. */
  async drain(signal: AbortSignal): Promise<void> {
    while (this.#isRunning && !signal.aborted) {
      const shards = this.#options.shards.all();
      for (const shard of shards) if (shard.isDirty) shard.urgent = true;
      this.#startDue();
      if (this.unplaced.size === 0 && this.#writes === 0 && !shards.some((shard) => shard.isDirty)) return;
      await settled(this.#progress, signal).catch(() => undefined);
    }
  }

  /** Writes a shard now. @returns why it was refused, or nothing. */
  async write(shard: Shard): Promise<Error[]> {
    const { shards, write, onStored, onRefused, onEnded } = this.#options;
    shard.busy = true;
    this.#writes++;
    const outcome = await write(shard);
    this.#writes--;
    shard.busy = false;
    if (outcome.kind === 'stored') {
      onStored(shard, outcome.write);
      for (const waiter of outcome.write.waiters) waiter.resolve('durable');
      if (shards.isRoot(shard) && this.#isRunning) shards.addEntered();
    } else if (outcome.kind === 'refused') onRefused(outcome.error);
    else onEnded(outcome.error);
    this.#progress.resolve(undefined);
    this.#progress = Promise.withResolvers();
    this.wake();
    return outcome.kind === 'refused' ? [outcome.error] : [];
  }

  /** Takes everybody who waits. */
  takeWaiters(): Waiter[] {
    const unplaced = [...this.unplaced.values()].flatMap(({ waiters }) => waiters.splice(0));
    return [...unplaced, ...this.#options.shards.all().flatMap((shard) => shard.takeWaiters())];
  }

  /** Drops a new record that somebody waits for; one that is worked on without protection stays. */
  dropWaiting(uid: string, reason: Error): void {
    const waiters = this.unplaced.get(uid)?.waiters ?? [];
    if (waiters.length === 0) return;
    this.unplaced.delete(uid);
    for (const waiter of waiters) waiter.reject(reason);
  }

  /** Starts no more writes, until `start`. */
  end(): void {
    this.#isRunning = false;
    this.#timer?.cancel();
  }

  get #nowMs(): number {
    return this.#options.journal.clock.monotonicMs();
  }

  /** Starts the writes that are due, and sets the timer for the next. */
  #startDue(): void {
    if (!this.#isRunning) return;
    const nowMs = this.#nowMs;
    let nextMs = Infinity;
    if (this.unplaced.size > 0 && this.#writes < maxWrites) {
      const dueMs = this.#pace.dueMs(nowMs, this.unplaced.size);
      if (dueMs <= nowMs) this.#place(nowMs);
      else nextMs = dueMs;
    }
    for (const shard of this.#options.shards.byNumber.values()) {
      if (!shard.isDirty || shard.busy || this.#writes >= maxWrites) continue;
      const dueMs = this.#dueMs(shard);
      if (dueMs <= nowMs) void this.write(shard);
      else nextMs = Math.min(nextMs, dueMs);
    }
    this.#timer?.cancel();
    this.#timer =
      nextMs === Infinity ? undefined : this.#options.journal.clock.after(nextMs - nowMs, () => this.#startDue());
  }

  #dueMs(shard: Shard): number {
    if (shard.urgent || (shard.deadBytes >= minDeadBytes && shard.deadBytes >= shard.bytes)) return -Infinity;
    const quiet = Math.max(this.#pace.lastRecordMs, shard.dirtySinceMs) + quietMs;
    return Math.min(quiet, shard.dirtySinceMs + maxDelayMs);
  }

  /** Gives new records a shard, as many as fit into one. */
  #place(nowMs: number): void {
    const { shards } = this.#options;
    const group = [...this.unplaced.values()];
    const place = placeGroup(
      group.map(({ entry }) => entry),
      shards.byNumber.values(),
      { inOrder: !this.#options.journal.exclusive, isFull: shards.isFull },
    );
    if (place === 'grow' && shards.isFull) {
      for (const { waiters } of group) for (const waiter of waiters.splice(0)) waiter.resolve('unprotected');
    } else if (place === 'grow') shards.grow(nowMs);
    if (place === 'grow' || place === 'wait') return;
    const { shard, count } = place;
    for (const { entry, waiters } of group.slice(0, count)) {
      shard.want(entry.uid, entry, nowMs);
      shard.waiters.push(...waiters);
      shards.home.set(entry.uid, shard);
      this.unplaced.delete(entry.uid);
    }
    shard.urgent = true;
    this.#pace.onGroup(nowMs);
  }
}
