import { type Clock, systemClock, type Timer } from '../../../src/base/clock.ts';

/** Real time that passes several times as fast, so that pauses of seconds take a test no seconds. */
export class FastClock implements Clock {
  readonly #factor: number;
  readonly #clock: Clock;
  readonly #startWallMs: number;
  readonly #startMs: number;

  /** @param options.factor - how many times as fast. @param options.clock - what measures real time. */
  constructor(options: { factor: number; clock?: Clock }) {
    this.#factor = options.factor;
    this.#clock = options.clock ?? systemClock;
    this.#startWallMs = this.#clock.wallMs();
    this.#startMs = this.#clock.monotonicMs();
  }

  wallMs(): number {
    return this.#startWallMs + this.monotonicMs();
  }

  monotonicMs(): number {
    return (this.#clock.monotonicMs() - this.#startMs) * this.#factor;
  }

  sleep(ms: number, options?: { signal?: AbortSignal }): Promise<void> {
    return this.#clock.sleep(ms / this.#factor, options);
  }

  after(ms: number, run: () => void): Timer {
    return this.#clock.after(ms / this.#factor, run);
  }
}
