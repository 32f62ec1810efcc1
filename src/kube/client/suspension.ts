import type { Clock } from '../../base/clock.ts';

/** How long something is not tried after its first failure, in milliseconds; each further failure doubles it, up to the maximum. */
const firstMs = 3_600_000;
const maxMs = 24 * firstMs;

/**
 * Something that an API server turned out not to offer, and that is not requested again for some hours. Not for good: the cause
 * may be one server of several during an upgrade, or a proxy, and this process runs for months.
 */
export class Suspension {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  #nextMs = firstMs;
  #untilMs = -Infinity;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  get isActive(): boolean {
    return this.#clock.monotonicMs() < this.#untilMs;
  }

  /** Call after a failure; one more than a day after the last suspension counts as the first. @returns the hours of the suspension. */
  begin(): number {
    const nowMs = this.#clock.monotonicMs();
    const forMs = nowMs - this.#untilMs > maxMs ? firstMs : this.#nextMs;
    this.#untilMs = nowMs + forMs;
    this.#nextMs = Math.min(2 * forMs, maxMs);
    return forMs / firstMs;
  }
}
