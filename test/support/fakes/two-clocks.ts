import type { Clock } from '../../../src/base/clock.ts';
import type { ManualClock } from './manual-clock.ts';

/** A machine of which one clock can be moved without the other one: it sleeps, or its time is set. */
export class TwoClocks implements Clock {
  readonly #clock: ManualClock;
  /** What its wall clock shows beside the time that passes. */
  wallOffsetMs = 0;
  readonly sleep: Clock['sleep'];
  readonly after: Clock['after'];

  constructor(clock: ManualClock) {
    this.#clock = clock;
    this.sleep = clock.sleep.bind(clock);
    this.after = clock.after.bind(clock);
  }

  wallMs(): number {
    return this.#clock.wallMs() + this.wallOffsetMs;
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs();
  }
}
