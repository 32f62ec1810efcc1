import { type Clock, systemClock } from '../../base/clock.ts';
import { TokenBucket } from '../client/token-bucket.ts';

/** Decides how long a failed key waits before it is requeued. */
export interface RateLimiter {
  /** Milliseconds to wait now; each call counts as one more failure of the key. */
  when(key: string): number;
  /** The key succeeded: its failures are forgotten. */
  forget(key: string): void;
  /** Failures of the key since it was last forgotten. */
  failures(key: string): number;
}

/** `base` doubling with each failure of a key up to `max`. No jitter, as in the original. */
export class ExponentialLimiter implements RateLimiter {
  readonly #baseMs: number;
  readonly #maxMs: number;
  readonly #failures = new Map<string, number>();

  constructor(options: { baseMs: number; maxMs: number }) {
    this.#baseMs = options.baseMs;
    this.#maxMs = options.maxMs;
  }

  when(key: string): number {
    const failures = this.failures(key);
    this.#failures.set(key, failures + 1);
    return Math.min(this.#baseMs * 2 ** failures, this.#maxMs);
  }

  forget(key: string): void {
    this.#failures.delete(key);
  }

  failures(key: string): number {
    return this.#failures.get(key) ?? 0;
  }
}

/** One token of a shared bucket for each call, whatever the key. Nothing is given back. */
export class BucketLimiter implements RateLimiter {
  readonly #bucket: TokenBucket;

  /**
   * @param options.qps - tokens each second.
   * @param options.burst - max tokens, and those at the start.
   * @param options.clock - default: the machine's own time.
   */
  constructor({ qps, burst, clock = systemClock }: { qps: number; burst: number; clock?: Clock }) {
    this.#bucket = new TokenBucket({ qps, burst, clock });
  }

  when(): number {
    return this.#bucket.reserve();
  }

  forget(): void {
    // a token that was used is gone
  }

  failures(): number {
    return 0;
  }
}

/** The max of several limiters. */
export class MaxOfLimiter implements RateLimiter {
  readonly #limiters: readonly RateLimiter[];

  constructor(limiters: readonly RateLimiter[]) {
    this.#limiters = limiters;
  }

  when(key: string): number {
    return Math.max(...this.#limiters.map((limiter) => limiter.when(key)));
  }

  forget(key: string): void {
    for (const limiter of this.#limiters) limiter.forget(key);
  }

  failures(key: string): number {
    return Math.max(...this.#limiters.map((limiter) => limiter.failures(key)));
  }
}

interface BackoffOptions {
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
