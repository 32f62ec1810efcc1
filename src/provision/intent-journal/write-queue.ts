import type { Timer } from '../../base/clock.ts';
import { outsideSpans } from '../../base/tracing.ts';
import { GroupPace } from './group-pace.ts';
import type { JournalParts } from './journal-parts.ts';
import { placeGroup } from './place-group.ts';
import type { RecordChanges } from './record-changes.ts';
import { settled } from './settled.ts';
import type { Shard } from './shard.ts';
import type { ShardWriter, WriteOutcome } from './shard-writer.ts';

/** Max writes under way. */
const maxWrites = 4;
/** Without new records for this long everything else is written, in milliseconds. */
const quietMs = 1000;
/** Other changes wait at most this long to be written with records, in milliseconds. */
const maxDelayMs = 30_000;
/** A shard is written for its removed records alone once they are half of it, and at least this many bytes. */
const minDeadBytes = 16 * 1024;

export type WriteQueueOptions = JournalParts & { changes: RecordChanges; writer: ShardWriter };

/** Decides when which shard is written, and where new records go. */
export class WriteQueue {
  readonly #options: WriteQueueOptions;
  readonly #pace: GroupPace;
  #writes = 0;
  #timer: Timer | undefined;
  #isQueued = false;
  #progress = Promise.withResolvers<undefined>();

  constructor(options: WriteQueueOptions) {
    this.#options = options;
    this.#pace = new GroupPace(options.journal.groupMs ?? 40);
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
  async flush(signal: AbortSignal): Promise<void> {
    const { state, status } = this.#options;
    while (status.isRunning && !signal.aborted) {
      const shards = state.all();
      for (const shard of shards) shard.hurry();
      this.#startDue();
      if (state.unplaced.size === 0 && this.#writes === 0 && !shards.some((shard) => shard.isDirty)) return;
      await settled(this.#progress, signal).catch(() => undefined);
    }
  }

  /** Writes a shard now. @returns why it was refused, or nothing. */
  async write(shard: Shard): Promise<Error[]> {
    shard.acquire();
    this.#writes++;
    const outcome = await this.#options.writer.write(shard);
    this.#writes--;
    shard.release();
    this.#finish(shard, outcome);
    this.#progress.resolve(undefined);
    this.#progress = Promise.withResolvers();
    this.wake();
    return outcome.kind === 'refused' ? [outcome.error] : [];
  }

  #finish(shard: Shard, outcome: WriteOutcome): void {
    const { state, status, changes } = this.#options;
    if (outcome.kind === 'refused') status.refuse(outcome.error);
    else if (outcome.kind === 'ended') status.end(outcome.error);
    else {
      changes.onStored(shard, outcome.write);
      for (const waiter of outcome.write.waiters) waiter.resolve('durable');
      if (state.isRoot(shard) && status.isRunning) state.addEntered();
    }
  }

  get #nowMs(): number {
    return this.#options.journal.clock.monotonicMs();
  }

  /** Starts the writes that are due, and sets the timer for the next. */
  #startDue(): void {
    const { journal, state, status } = this.#options;
    this.#timer?.cancel();
    if (!status.isRunning) return;
    const nowMs = this.#nowMs;
    let nextMs = Infinity;
    if (state.unplaced.size > 0 && this.#writes < maxWrites) {
      const dueMs = this.#pace.dueMs(nowMs, state.unplaced.size);
      if (dueMs <= nowMs) this.#place(nowMs);
      else nextMs = dueMs;
    }
    for (const shard of state.byNumber.values()) {
      if (!shard.isDirty || shard.busy || this.#writes >= maxWrites) continue;
      const dueMs = this.#dueMs(shard);
      if (dueMs <= nowMs) void this.write(shard);
      else nextMs = Math.min(nextMs, dueMs);
    }
    this.#timer = nextMs === Infinity ? undefined : journal.clock.after(nextMs - nowMs, () => this.#startDue());
  }

  #dueMs(shard: Shard): number {
    if (shard.urgent || (shard.deadBytes >= minDeadBytes && shard.deadBytes >= shard.bytes)) return -Infinity;
    const quiet = Math.max(this.#pace.lastRecordMs, shard.dirtySinceMs) + quietMs;
    return Math.min(quiet, shard.dirtySinceMs + maxDelayMs);
  }

  /** Gives new records a shard, as many as fit into one. */
  #place(nowMs: number): void {
    const { journal, state } = this.#options;
    const group = [...state.unplaced.values()].map(({ entry }) => entry);
    const { isFull } = state;
    const place = placeGroup(group, state.byNumber.values(), { inOrder: !journal.exclusive, isFull });
    if (place === 'grow' && isFull) for (const waiter of state.takeUnplacedWaiters()) waiter.resolve('unprotected');
    else if (place === 'grow') state.grow(nowMs);
    if (place === 'grow' || place === 'wait') return;
    state.place(place, nowMs);
    this.#pace.onGroup(nowMs);
  }
}
