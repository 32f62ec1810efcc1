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
