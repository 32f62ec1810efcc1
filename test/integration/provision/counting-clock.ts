import { type Clock, systemClock, type Timer } from '../../../src/base/clock.ts';

/** The machine's time, with a count of what waits for it. */
export class CountingClock implements Clock {
  readonly #pending = new Set<object>();

  /** Timers and sleeps that have neither ended nor been cancelled. */
  get pending(): number {
    return this.#pending.size;
  }

  wallMs(): number {
    return systemClock.wallMs();
  }

  monotonicMs(): number {
    return systemClock.monotonicMs();
  }

  async sleep(ms: number, options?: { signal?: AbortSignal }): Promise<void> {
    const entry = {};
    this.#pending.add(entry);
    try {
      await systemClock.sleep(ms, options);
    } finally {
      this.#pending.delete(entry);
    }
  }

  after(ms: number, run: () => void): Timer {
    const timer = systemClock.after(ms, () => {
      this.#pending.delete(timer);
      run();
    });
    this.#pending.add(timer);
    return {
      cancel: () => {
        this.#pending.delete(timer);
        timer.cancel();
      },
    };
  }
}
