import type { Clock } from '../../base/clock.ts';

export interface BackoffOptions {
  clock: Clock;
  /** Uniform in [0, 1). */
  random: () => number;
  /** First pause in milliseconds. Default 800. */
  baseMs?: number;
  /** Max pause before jitter, in milliseconds. Default 30,000. */
  maxMs?: number;
  /** Without a pause for this long the next one is `baseMs` again, in milliseconds. Default 120,000. */
  resetMs?: number;
}

/** Pauses that double, each stretched by up to its own length at random. */
export class Backoff {
  readonly #options: Required<BackoffOptions>;
  #steps = 0;
  #lastMs = -Infinity;

  constructor(options: BackoffOptions) {
    this.#options = { baseMs: 800, maxMs: 30_000, resetMs: 120_000, ...options };
  }

  /** Length of the next pause, in milliseconds; counts as taken. */
  next(): number {
    const { clock, random, baseMs, maxMs, resetMs } = this.#options;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#lastMs > resetMs) this.#steps = 0;
    const pauseMs = Math.min(baseMs * 2 ** this.#steps, maxMs) * (1 + random());
    this.#steps++;
    this.#lastMs = nowMs;
    return pauseMs;
  }

  /** Pauses once. @throws the signal's reason when it aborts first. */
  async wait(signal: AbortSignal): Promise<void> {
    await this.#options.clock.sleep(this.next(), { signal });
  }
}
