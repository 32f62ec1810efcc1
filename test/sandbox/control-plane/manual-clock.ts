import type { Clock, Timer } from '../../../src/base/clock.ts';

/** Time that moves only when the test says so. */
export class ManualClock implements Clock {
  #nowMs = 0;
  readonly #timers = new Set<{ dueMs: number; run: () => void }>();

  wallMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  after(ms: number, run: () => void): Timer {
    const timer = { dueMs: this.#nowMs + ms, run };
    this.#timers.add(timer);
    return { cancel: () => this.#timers.delete(timer) };
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.after(ms, resolve);
    });
  }

  /** How many timers are set. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Moves on and fires what is due. */
  advance(ms: number): void {
    this.#nowMs += ms;
    for (const timer of [...this.#timers]) {
      if (timer.dueMs > this.#nowMs || !this.#timers.delete(timer)) continue;
      timer.run();
    }
  }
}
