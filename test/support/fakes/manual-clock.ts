import { subscribe } from 'node:diagnostics_channel';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock, Timer } from '../../../src/base/clock.ts';

interface Entry {
  dueMs: number;
  /** Timers of one moment run in the order they were set. */
  order: number;
  run: () => void;
}

export interface ManualClockOptions {
  /** Wall time at the start, in milliseconds since the epoch. Default 2026-01-01. */
  wallMs?: number;
  /**
   * Turns of the event loop that work gets to come to rest after each timer and each response. Default 20; 1 is enough where nothing but
   * promises is at work.
   */
  turns?: number;
  /** Whether time stands still while a response may arrive at any moment. Default true; false where the server responds by this clock. */
  awaitsResponses?: boolean;
}

/** A request that takes longer than this, in milliseconds of real time, is held back on purpose. */
const maxRequestMs = 50;
/** Requests of this process that wait for the end of their response, with the real time at which they began. */
const begunMs = new Map<unknown, number>();

for (const stage of ['create', 'trailers', 'error']) {
  subscribe(`undici:request:${stage}`, (message) => {
    const { request } = message as { request: { path: string } };
    if (stage !== 'create') begunMs.delete(request);
    else if (!isCacheWatch(request.path)) begunMs.set(request, performance.now());
  });
}

/** It ends after minutes, that of a history after seconds. */
function isCacheWatch(path: string): boolean {
  return path.includes('watch=true') && !/timeoutSeconds=\d(&|$)/.test(path);
}

/** Whether a response may arrive at any moment. */
function isResponseDue(): boolean {
  const sinceMs = performance.now() - maxRequestMs;
  return Array.from(begunMs.values()).some((each) => each > sinceMs);
}

/** Time that moves only when a test says so. */
export class ManualClock implements Clock {
  readonly #timers = new Set<Entry>();
  readonly #startWallMs: number;
  readonly #turns: number;
  readonly #awaitsResponses: boolean;
  #nowMs = 0;
  #order = 0;

  constructor(options: ManualClockOptions = {}) {
    this.#startWallMs = options.wallMs ?? Date.UTC(2026, 0, 1);
    this.#turns = options.turns ?? 20;
    this.#awaitsResponses = options.awaitsResponses ?? true;
  }

  wallMs(): number {
    return this.#startWallMs + this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  after(ms: number, run: () => void): Timer {
    const entry: Entry = { dueMs: this.#nowMs + Math.max(ms, 0), order: this.#order++, run };
    this.#timers.add(entry);
    return { cancel: () => void this.#timers.delete(entry) };
  }

  sleep(ms: number, { signal }: { signal?: AbortSignal } = {}): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason as Error);
        return;
      }
      const onAbort = (): void => {
        timer.cancel();
        reject(signal?.reason as Error);
      };
      const timer = this.after(ms, () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      });
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** How many timers are set. */
  get pending(): number {
    return this.#timers.size;
  }

  /** The same passing of time on a machine whose clocks show something else. */
  elsewhere(offset: { wallMs?: number; monotonicMs?: number }): Clock {
    const { wallMs = 0, monotonicMs = 0 } = offset;
    return {
      wallMs: () => this.wallMs() + wallMs,
      monotonicMs: () => this.monotonicMs() + monotonicMs,
      sleep: (ms, options) => this.sleep(ms, options),
      after: (ms, run) => this.after(ms, run),
    };
  }

  /** Moves on, timer by timer in the order they are due; what each one set off comes to rest before the next. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    await this.settle();
    for (let next = this.#next(); next !== undefined && next.dueMs <= endMs; next = this.#next())
      await this.#fire(next);
    this.#nowMs = endMs;
    await this.settle();
  }

  /** Time passes while nothing runs, as when the process is blocked or stopped; then all that is due runs at once. */
  async jump(ms: number): Promise<void> {
    this.#nowMs += ms;
    for (let next = this.#next(); next !== undefined && next.dueMs <= this.#nowMs; next = this.#next()) {
      this.#timers.delete(next);
      next.run();
    }
    await this.settle();
  }

  /** Time passes while nothing runs, and what is due waits for `advance`. */
  skip(ms: number): void {
    this.#nowMs += ms;
  }

  /**
   * Moves on, timer by timer, until the condition holds.
   *
   * @param options.withinMs - how much time may pass. Default ten minutes.
   * @returns the milliseconds that passed.
   * @throws {Error} when time or timers ran out first.
   */
  async until(condition: () => boolean, options: { withinMs?: number } = {}): Promise<number> {
    const startMs = this.#nowMs;
    const endMs = startMs + (options.withinMs ?? 600_000);
    await this.settle();
    while (!condition()) {
      const next = this.#next();
      if (next === undefined || next.dueMs > endMs) {
        throw new Error(`it did not happen within ${endMs - startMs} ms: ${condition.toString()}`);
      }
      await this.#fire(next);
    }
    return this.#nowMs - startMs;
  }

  /** Lets promises and loopback connections come to rest while time stands still. */
  async settle(): Promise<void> {
    do for (let turn = 0; turn < this.#turns; turn++) await nextTurn();
    while (this.#awaitsResponses && isResponseDue());
  }

  async #fire(entry: Entry): Promise<void> {
    this.#nowMs = Math.max(this.#nowMs, entry.dueMs);
    this.#timers.delete(entry);
    entry.run();
    await this.settle();
  }

  #next(): Entry | undefined {
    let first: Entry | undefined;
    for (const entry of this.#timers) {
      if (
        first === undefined ||
        entry.dueMs < first.dueMs ||
        (entry.dueMs === first.dueMs && entry.order < first.order)
      )
        first = entry;
    }
    return first;
  }
}
