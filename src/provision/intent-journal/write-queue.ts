import type { Timer } from '../../base/clock.ts';
import { outsideSpans } from '../../base/tracing.ts';
import { type JournalParts, settled } from './journal-parts.ts';
import { placeGroup } from './journal-state.ts';
import type { RecordChanges } from './record-changes.ts';
import type { ShardWriter, WriteOutcome } from './shard-writer.ts';
import type { Shard } from './shard.ts';

/** Max writes under way. */
const maxWrites = 4;
/** Without new records for this long everything else is written, in milliseconds. */
const quietMs = 1000;
/** Other changes wait at most this long to be written with records, in milliseconds. */
const maxDelayMs = 30_000;
/** A shard is written for its removed records alone once they are half of it, and at least this many bytes. */
const minDeadBytes = 16 * 1024;

type WriteQueueOptions = JournalParts & { changes: RecordChanges; writer: ShardWriter };

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
    this.#pace = new GroupPace(options.journal.groupMs);
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

/** With more records than this within the window, a write waits for further ones. */
const loneRecords = 4;
const windowMs = 200;
/** A group of this many records waits for no further ones. */
const fullGroup = 8;

/** When new records are written: a lone one at once, many in groups. */
export class GroupPace {
  readonly #pauseMs: number;
  readonly #recentMs: number[] = [];
  #writtenAtMs = -Infinity;

  /** @param pauseMs - between two groups under load, in milliseconds. */
  constructor(pauseMs: number) {
    this.#pauseMs = pauseMs;
  }

  /** When the last record arrived, in monotonic milliseconds. */
  get lastRecordMs(): number {
    return this.#recentMs.at(-1) ?? -Infinity;
  }

  onRecord(nowMs: number): void {
    this.#recentMs.push(nowMs);
    if (this.#recentMs.length > loneRecords + 1) this.#recentMs.shift();
  }

  onGroup(nowMs: number): void {
    this.#writtenAtMs = nowMs;
  }

  /**
   * When the next group may be written, in monotonic milliseconds. A small one waits while more records arrive, at most
   * five pauses, so that also on a slow cluster a write holds several.
   *
   * @param waiting - records in the group so far.
   */
  dueMs(nowMs: number, waiting: number): number {
    const [first = -Infinity] = this.#recentMs;
    const isBusy = this.#recentMs.length > loneRecords && nowMs - first < windowMs;
    if (!isBusy) return nowMs;
    const soonestMs = this.#writtenAtMs + this.#pauseMs;
    if (waiting >= fullGroup) return soonestMs;
    const patientMs = Math.max(soonestMs, this.lastRecordMs + this.#pauseMs);
    return Math.min(patientMs, this.#writtenAtMs + 5 * this.#pauseMs);
  }
}
