import type { Clock } from '../../base/clock.ts';

/** How long a saved volume may take to reach the cache, in milliseconds. */
const lifeDefaultMs = 60_000;

/**
 * Volumes that were saved and that the cache may not show yet, by their names or by the UIDs of their claims. Without it the
 * next event of the claim would provision it a second time.
 */
export class RecentlySaved {
  readonly #clock: Clock;
  readonly #lifeMs: number;
  readonly #untilMs = new Map<string, number>();

  /** @param options.lifeMs - how long one is remembered, in milliseconds. Default 60,000. */
  constructor(options: { clock: Clock; lifeMs?: number }) {
    this.#clock = options.clock;
    this.#lifeMs = options.lifeMs ?? lifeDefaultMs;
  }

  add(key: string): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [each, untilMs] of this.#untilMs) {
      if (untilMs > nowMs) break; // they are in the order of time
      this.#untilMs.delete(each);
    }
    this.#untilMs.delete(key);
    this.#untilMs.set(key, nowMs + this.#lifeMs);
  }

  /** The cache shows the volume, or has seen its deletion. */
  delete(key: string): void {
    this.#untilMs.delete(key);
  }

  has(key: string): boolean {
    return (this.#untilMs.get(key) ?? -Infinity) > this.#clock.monotonicMs();
  }
}
