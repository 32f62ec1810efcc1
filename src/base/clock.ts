import { setTimeout as delay } from 'node:timers/promises';

/** A running timer; `cancel` is safe to repeat and after it fired. */
export interface Timer {
  cancel(): void;
}

/** Time as the code sees it: injected, so that a test can control it. */
export interface Clock {
  /** Milliseconds since the Unix epoch; may jump when the machine's time is set. */
  wallMs(): number;
  /** Monotonic milliseconds with an arbitrary origin. */
  monotonicMs(): number;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when it aborts first. */
  sleep(ms: number, options?: { signal?: AbortSignal }): Promise<void>;
  /** Calls `run` once after `ms` milliseconds. The timer does not keep the process alive. */
  after(ms: number, run: () => void): Timer;
}

/** Node's timers hold at most 2^31-1 ms and fire at once beyond it. */
const maxTimerMs = 2_147_483_647;

/** The machine's own time. */
export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: async (ms, { signal } = {}) => {
    signal?.throwIfAborted();
    try {
      await delay(Math.min(Math.max(ms, 0), maxTimerMs), undefined, signal === undefined ? {} : { signal });
    } catch (error) {
      signal?.throwIfAborted(); // the reason that the caller aborted with, not Node's AbortError
      throw error;
    }
  },
  after: (ms, run) => {
    const timer = setTimeout(run, Math.min(Math.max(ms, 0), maxTimerMs)).unref();
    return { cancel: () => clearTimeout(timer) };
  },
};
