import type { JournalListener } from './intent-journal.ts';
import type { JournalParts } from './journal-parts.ts';
import { inParallel, type ShardReader, UnreadError } from './read-shards.ts';
import { isStuck, type RecordChanges } from './record-changes.ts';
import { isUnexpected, RequestFailures } from './shard-storage.ts';
import type { Shard } from './shard.ts';
import type { WriteQueue } from './write-queue.ts';

/** All shards are read this often: others may have changed or deleted them, or an operator set an annotation. In milliseconds. */
const slowPollMs = 60_000;
/** Open records of this process are renewed this often, in milliseconds. */
const renewRecordMs = 3_600_000;
/** How often it is checked whether any is due, in milliseconds. */
const renewEveryMs = 60_000;
const firstPauseMs = 50;
const maxPauseMs = 2000;
/** Of this many failures to read one is logged, about every half minute. */
const failuresPerLine = 15;

type JournalRunOptions = JournalParts & { changes: RecordChanges; reader: ShardReader; queue: WriteQueue };

/**
 * Opens the journal, and keeps it going: it renews what this process has, reads what others write, adopts records of silent writers, and
 * tries again what was refused.
 */
export class JournalRun {
  readonly #options: JournalRunOptions;
  #listener: JournalListener | undefined;
  #isOpen = false;
  #polledAtMs = 0;
  #renewedAtMs = 0;
  /** The unexpected error of the last poll, which is logged once; empty: there was none. */
  #pollError = '';

  constructor(options: JournalRunOptions) {
    this.#options = options;
  }

  async open(listener: JournalListener, signal: AbortSignal): Promise<void> {
    const { status } = this.#options;
    status.listen(listener);
    using _ending = status.endsWith(signal);
    this.#listener = listener;
    await this.#load(signal);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { journal, status, queue } = this.#options;
    const { clock, roundMs } = journal;
    using _ending = status.endsWith(signal);
    for (;;) {
      try {
        await clock.sleep(roundMs, { signal });
      } catch {
        return;
      }
      if (status.isRetryDue) await this.#retry(signal);
      else if (this.#isOpen && !status.isRefused && !status.hasEnded) {
        await this.#maintain();
        queue.wake();
      }
    }
  }

  /** Reads everything, and writes what is taken over; then it is open. Also resolves when that is refused. */
  async #load(signal: AbortSignal): Promise<void> {
    const { journal, state, status, changes, reader, queue } = this.#options;
    if (!(await this.#read(() => reader.readAll(), signal))) return;
    state.root.touch(this.#nowMs);
    // the first one before all others: from then on a former leader that begins to use a shard notices that it no longer leads
    if (!(await this.#writeAll([state.root]))) return;
    if (journal.exclusive) {
      if (!(await this.#read(() => reader.readAbsent(), signal))) return;
      state.dropExcess(this.#nowMs);
    }
    if (!(await this.#writeAll(state.all().filter((shard) => shard.isDirty)))) return;
    this.#isOpen = true;
    this.#polledAtMs = this.#nowMs;
    status.restore();
    if (this.#listener !== undefined) await changes.listen(this.#listener);
    state.placeKnown(this.#nowMs);
    status.start();
    queue.wake();
  }

  /**
   * Repeats reading while the API server is overloaded, away, or has just started.
   *
   * @returns whether it was read, or is refused.
   * @throws when the signal aborts, or no request leaves the process any more.
   */
  async #read(read: () => Promise<void>, signal: AbortSignal): Promise<boolean> {
    const { journal, status } = this.#options;
    const { clock, logger } = journal;
    const requests = new RequestFailures({ journal, status });
    let failures = 0;
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
      signal.throwIfAborted();
      try {
        await read();
        return true;
      } catch (error) {
        const failure = await requests.classify(error);
        if (failure === 'ended') throw error;
        if (failure === 'refused') {
          status.refuse(error as Error);
          return false;
        }
        if (++failures % failuresPerLine === 0) {
          const message = 'The intent journal could not be read, nothing is provisioned or deleted before it is';
          logger.error({ err: error }, message);
        }
      }
      await clock.sleep(pauseMs, { signal });
    }
  }

  /** @returns whether all were written, or one is refused. @throws when nothing may be written any more. */
  async #writeAll(shards: readonly Shard[]): Promise<boolean> {
    const { status, queue } = this.#options;
    const refusals: Error[] = [];
    await inParallel(shards, async (shard) => {
      if (refusals.length === 0) refusals.push(...(await queue.write(shard)));
    });
    status.throwIfEnded();
    return refusals.length === 0;
  }

  /** Resumes the journal, if it can be written now. @throws what is no failure of a request: the run ends. */
  async #retry(signal: AbortSignal): Promise<void> {
    const { state, status, queue } = this.#options;
    try {
      if (!this.#isOpen) {
        await this.#load(signal);
        return;
      }
      state.root.touch(this.#nowMs);
      status.start();
      await queue.flush(signal);
      if (status.isRunning && !signal.aborted) status.restore();
    } catch (error) {
      // callers that wait for a record were rejected already; anything else is no failure of a request, and ends the run
      if (!signal.aborted && !this.#isOver) throw error;
    }
  }

  /** One round of the periodic work. */
  async #maintain(): Promise<void> {
    const { journal, me, state, heartbeats, changes } = this.#options;
    const { clock, exclusive, adoptAfterMs, roundMs } = journal;
    const nowMs = this.#nowMs;
    const entries = state.entries();
    const isForeign = entries.some(({ writer }) => writer !== me);
    const othersMayWrite = !exclusive || isForeign || state.isDraining || entries.some(isStuck);
    const everyMs = isForeign || state.isDraining ? roundMs : slowPollMs;
    if (nowMs - this.#polledAtMs >= everyMs) await this.#poll(othersMayWrite, nowMs);
    changes.adoptSilent(exclusive ? Infinity : this.#nowMs - adoptAfterMs);
    if (!exclusive && entries.some(({ writer }) => writer === me)) {
      heartbeats.beat();
      state.root.touch(nowMs);
    }
    if (nowMs - this.#renewedAtMs < renewEveryMs) return;
    this.#renewedAtMs = nowMs;
    for (const shard of state.all()) shard.renew(me, { dueMs: renewRecordMs, wallMs: clock.wallMs(), nowMs });
  }

  /**
   * After a failed request the next poll tries again. Any other error is thrown, and ends the run, as it does at the start: what was read
   * counts as known, but was perhaps not reported to the listener.
   *
   * @param othersMayWrite - other processes, or an operator.
   */
  async #poll(othersMayWrite: boolean, nowMs: number): Promise<void> {
    const { heartbeats, reader } = this.#options;
    this.#polledAtMs = nowMs;
    // where nobody else should write, only shards that no write of our own has lately shown to be unchanged
    const isDue = ({ writtenAtMs }: Shard): boolean => othersMayWrite || nowMs - writtenAtMs >= slowPollMs;
    try {
      await reader.poll(nowMs, isDue);
      this.#pollError = '';
    } catch (error) {
      if (this.#isOver) return;
      if (!(error instanceof UnreadError)) throw error;
      heartbeats.restart(this.#nowMs); // nobody counts as silent while the shards cannot be read
      if (isUnexpected(error.cause)) this.#reportPoll(error.cause); // for others the next write reports why
    }
  }

  /** Logs an unexpected error of a request once, as each poll may fail with it. */
  #reportPoll(error: unknown): void {
    const text = String(error);
    if (text === this.#pollError) return;
    this.#pollError = text;
    const { logger, namespace, lockName } = this.#options.journal;
    logger.error(
      { namespace, journal: `${lockName}-journal-0`, err: error },
      'The intent journal could not be read again, retrying: this is probably a bug in this program',
    );
  }

  /** Nothing is read or written any more. */
  get #isOver(): boolean {
    const { status } = this.#options;
    return status.hasEnded || status.fencedOrEnded.aborted;
  }

  get #nowMs(): number {
    return this.#options.journal.clock.monotonicMs();
  }
}
