import { type Clock, systemClock, type Timer } from '../../base/clock.ts';
import { sliceSpent } from '../../base/event-loop.ts';
import { DelayHeap, InOrderOfArrival, type WaitingOrder } from './waiting-order.ts';
import type { RateLimiter } from './rate-limiter.ts';

/** What a queue reports; times in seconds. */
export interface WorkQueueMetrics {
  added(): void;
  retried(): void;
  /** A key waited this long between being added and being taken. */
  waited(seconds: number): void;
  /** A key was processed for this long. */
  worked(seconds: number): void;
  /** The queue, for what is computed when metrics are collected: its depth, the work in progress. */
  observe?(queue: WorkQueue): void;
}

/** Where a key is: with a worker, waiting for one, or waiting for its time. A key in none of them is `absent`. */
export type KeyState =
  | { readonly state: 'processing' | 'waiting'; readonly forMs: number }
  | { readonly state: 'delayed'; readonly inMs: number }
  | { readonly state: 'absent' };

/** Parts of a queue; only the limiter has no default. */
export interface WorkQueueOptions {
  limiter: RateLimiter;
  /** The order in which keys are processed; it may hold keys back. Default: first in, first out. */
  order?: WaitingOrder;
  /** Default: the machine's own time. */
  clock?: Clock;
  metrics?: WorkQueueMetrics | undefined;
}

/** The clock is checked at least this often, in milliseconds: timers stop while the machine is suspended. */
const heartbeatMs = 10_000;

/**
 * Keys that wait to be reconciled. A key is never processed twice at once; adds while it is processed requeue it once.
 *
 * A worker takes a key with `get`, and for each one calls `done`, after `forget` or `addRateLimited`.
 */
export class WorkQueue {
  readonly #limiter: RateLimiter;
  readonly #clock: Clock;
  readonly #metrics: WorkQueueMetrics | undefined;
  readonly #waiting: WaitingOrder;
  /** When each key that needs work was added. */
  readonly #dirty = new Map<string, number>();
  /** When the processing of each key began. */
  readonly #processing = new Map<string, number>();
  readonly #delayed = new DelayHeap();
  #timer: Timer | undefined;
  #timerAtMs: number | undefined;
  readonly #takers: ((key: string | undefined) => void)[] = [];
  #shuttingDown = false;

  constructor(options: WorkQueueOptions) {
    this.#limiter = options.limiter;
    this.#clock = options.clock ?? systemClock;
    this.#metrics = options.metrics;
    this.#waiting = options.order ?? new InOrderOfArrival();
    options.metrics?.observe?.(this);
  }

  /** Keys that wait for a worker or will once their present work is done. */
  get length(): number {
    return this.#dirty.size;
  }

  /** Delayed keys that are not ready yet, also those that need no work any more: a delay is not cancelled. A copy. */
  get delayedKeys(): string[] {
    return this.#delayed.keys;
  }

  /** Keys that a worker has. */
  get processingLength(): number {
    return this.#processing.size;
  }

  /** These keys. A copy: no more than there are workers. */
  get processingKeys(): ReadonlySet<string> {
    return new Set(this.#processing.keys());
  }

  /** Where the key is now. The first that holds counts: processing, waiting, delayed. */
  stateOf(key: string): KeyState {
    const nowMs = this.#clock.monotonicMs();
    const startedMs = this.#processing.get(key);
    if (startedMs !== undefined) return { state: 'processing', forMs: nowMs - startedMs };
    const addedMs = this.#dirty.get(key);
    if (addedMs !== undefined) return { state: 'waiting', forMs: nowMs - addedMs };
    const readyAtMs = this.#delayed.readyAtMs(key);
    return readyAtMs === undefined ? { state: 'absent' } : { state: 'delayed', inMs: Math.max(readyAtMs - nowMs, 0) };
  }

  get shuttingDown(): boolean {
    return this.#shuttingDown;
  }

  /** The key needs work, now. Repeats before a worker takes it count once. */
  add(key: string): void {
    if (this.#shuttingDown || this.#dirty.has(key)) return;
    this.#dirty.set(key, this.#clock.monotonicMs());
    this.#metrics?.added();
    if (this.#processing.has(key)) return;
    this.#waiting.add(key);
    this.#hand();
  }

  /** The key needs work in `delayMs` milliseconds; of two times the earlier one wins. */
  addAfter(key: string, delayMs: number): void {
    if (this.#shuttingDown) return;
    this.#metrics?.retried();
    if (delayMs <= 0) {
      this.add(key);
      return;
    }
    this.#delayed.add(key, this.#clock.monotonicMs() + delayMs);
    this.#arm();
  }

  /** The key failed: it is added again after the back-off of the limiter, or after `minMs` milliseconds if that is longer. */
  addRateLimited(key: string, minMs = 0): void {
    this.addAfter(key, Math.max(this.#limiter.when(key), minMs));
  }

  /** The key succeeded: its failures no longer count. A delayed add is not cancelled. */
  forget(key: string): void {
    this.#limiter.forget(key);
  }

  /**
   * The cause of failures is gone: the failures of all keys in the queue no longer count, and delayed keys become ready
   * evenly spread over the next `withinMs` milliseconds, or sooner where they were due before.
   */
  retrySoon(withinMs: number): void {
    const delayed = this.#delayed.keys;
    for (const key of new Set([...delayed, ...this.#dirty.keys(), ...this.#processing.keys()]))
      this.#limiter.forget(key);
    this.#waiting.retryAll();
    const nowMs = this.#clock.monotonicMs();
    for (const [index, key] of delayed.entries()) this.#delayed.add(key, nowMs + (withinMs * index) / delayed.length);
    this.#hand();
  }

  /** Failures of the key since it was last forgotten. */
  failures(key: string): number {
    return this.#limiter.failures(key);
  }

  /** The next key; undefined once the queue is shut down and empty. */
  get(): Promise<string | undefined> {
    const key = this.#waiting.take();
    if (key !== undefined) return Promise.resolve(this.#take(key));
    if (this.#shuttingDown) return Promise.resolve(undefined);
    return new Promise<string | undefined>((resolve) => {
      this.#takers.push(resolve);
      this.#arm();
    });
  }

  /** The key has been processed, with success or without. */
  done(key: string): void {
    const startedMs = this.#processing.get(key);
    if (startedMs === undefined) return;
    this.#processing.delete(key);
    this.#waiting.done(key);
    this.#metrics?.worked((this.#clock.monotonicMs() - startedMs) / 1000);
    if (this.#dirty.has(key)) this.#waiting.add(key);
    this.#hand();
  }

  /** Refuses new keys and drops delayed ones; what already waits is still handed out. Safe to repeat. */
  shutDown(): void {
    this.#shuttingDown = true;
    this.#delayed.clear();
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#waiting.end();
    this.#hand();
    for (const taker of this.#takers.splice(0)) taker(undefined);
  }

  /** How long the keys in progress have been processed, in seconds: all together, and the max. */
  unfinished(): { totalSeconds: number; maxSeconds: number } {
    const nowMs = this.#clock.monotonicMs();
    let [totalSeconds, maxSeconds] = [0, 0];
    for (const startedMs of this.#processing.values()) {
      const seconds = (nowMs - startedMs) / 1000;
      totalSeconds += seconds;
      maxSeconds = Math.max(maxSeconds, seconds);
    }
    return { totalSeconds, maxSeconds };
  }

  /** Hands keys to waiting workers. A key is taken at once: it must never appear as neither waiting nor processing. */
  #hand(): void {
    while (this.#takers.length > 0) {
      const key = this.#waiting.take();
      if (key === undefined) break;
      this.#takers.shift()?.(this.#take(key));
    }
    this.#arm();
  }

  #take(key: string): string {
    const nowMs = this.#clock.monotonicMs();
    this.#metrics?.waited((nowMs - (this.#dirty.get(key) ?? nowMs)) / 1000);
    this.#dirty.delete(key);
    this.#processing.set(key, nowMs);
    return key;
  }

  #arm(): void {
    const nextAtMs = this.#nextAtMs;
    if (nextAtMs === this.#timerAtMs) return;
    this.#timer?.cancel();
    this.#timerAtMs = nextAtMs;
    if (nextAtMs === undefined) return;
    const inMs = Math.min(Math.max(nextAtMs - this.#clock.monotonicMs(), 0), heartbeatMs);
    this.#timer = this.#clock.after(inMs, () => this.#wake());
  }

  /** When a delayed key becomes ready, or one that is held back may be handed to a worker that waits. */
  get #nextAtMs(): number | undefined {
    if (this.#shuttingDown) return undefined;
    const [readyAtMs, heldUntilMs] = [this.#delayed.nextAtMs, this.#waiting.nextAtMs];
    if (heldUntilMs === undefined || this.#waiting.size === 0 || this.#takers.length === 0) return readyAtMs;
    return Math.min(readyAtMs ?? Infinity, heldUntilMs);
  }

  #wake(): void {
    this.#timerAtMs = undefined;
    const nowMs = this.#clock.monotonicMs();
    let key = this.#delayed.takeReady(nowMs);
    while (key !== undefined) {
      this.add(key);
      key = sliceSpent() ? undefined : this.#delayed.takeReady(nowMs); // the timer comes back for the rest at once
    }
    this.#hand();
  }
}
