import { ExponentialLimiter, type RateLimiter } from '../../kube/queue/rate-limiter.ts';

/**
 * How long a node waits before it takes a claim that any node may take: `base` doubling with each try up to `max`, less
 * a random part of up to one `base`. So the first wait is 0 to `base`, and nodes that collided once rarely collide again.
 */
export class OwnershipLimiter implements RateLimiter {
  readonly #doubling: ExponentialLimiter;
  readonly #baseMs: number;
  readonly #random: () => number;

  /** @param options.random - a number from 0 up to 1, exclusive. Default: `Math.random`. */
  constructor({ baseMs, maxMs, random = Math.random }: { baseMs: number; maxMs: number; random?: () => number }) {
    this.#doubling = new ExponentialLimiter({ baseMs, maxMs });
    this.#baseMs = baseMs;
    this.#random = random;
  }

  when(key: string): number {
    return Math.max(0, this.#doubling.when(key) - this.#random() * this.#baseMs);
  }

  forget(key: string): void {
    this.#doubling.forget(key);
  }

  failures(key: string): number {
    return this.#doubling.failures(key);
  }
}
