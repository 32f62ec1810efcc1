import type { Clock } from '../../base/clock.ts';

/** How long a saved volume may take to reach the cache, in milliseconds. */
const lifeDefaultMs = 60_000;

/**
 * Volumes that were saved and that the cache may not show yet. Without it the next event of the claim would provision
 * it a second time.
 */
export class RecentlySaved {
  readonly #clock: Clock;
  readonly #lifeMs: number;
  readonly #untilMs = new Map<string, number>();

  /** @param options.lifeMs - how long a name is remembered, in milliseconds. Default 60,000. */
  constructor(options: { clock: Clock; lifeMs?: number }) {
    this.#clock = options.clock;
    this.#lifeMs = options.lifeMs ?? lifeDefaultMs;
  }

  add(volumeName: string): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [name, untilMs] of this.#untilMs) {
      if (untilMs > nowMs) break; // they are in the order of time
      this.#untilMs.delete(name);
    }
    this.#untilMs.delete(volumeName);
    this.#untilMs.set(volumeName, nowMs + this.#lifeMs);
  }

  /** The cache shows the volume, or has seen its deletion. */
  delete(volumeName: string): void {
    this.#untilMs.delete(volumeName);
  }

  has(volumeName: string): boolean {
    return (this.#untilMs.get(volumeName) ?? -Infinity) > this.#clock.monotonicMs();
  }
}
