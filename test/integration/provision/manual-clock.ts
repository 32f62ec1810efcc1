import type { Clock, Timer } from '../../../src/base/clock.ts';

/** Time that moves only when the test says so; timers fire in the order in which they are due. */
export class ManualClock implements Clock {
  readonly #originMs = Date.UTC(2026, 0, 1);
  #nowMs = 0;
  readonly #timers = new Set<{ dueMs: number; run: () => void }>();

  wallMs(): number {
    return this.#originMs + this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  after(ms: number, run: () => void): Timer {
    const timer = { dueMs: this.#nowMs + ms, run };
    this.#timers.add(timer);
    return { cancel: () => this.#timers.delete(timer) };
  }

  sleep(ms: number, { signal }: { signal?: AbortSignal } = {}): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        timer.cancel();
        reject(signal?.reason as Error);
      };
      const timer = this.after(ms, () => {
        signal?.removeEventListener('abort', abort);
        resolve();
      });
      if (signal?.aborted === true) abort();
      else signal?.addEventListener('abort', abort, { once: true });
    });
  }

  /** How many timers are set. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Moves on and fires what falls due on the way, at its time. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (;;) {
      const [next] = [...this.#timers].filter(({ dueMs }) => dueMs <= endMs).sort((a, b) => a.dueMs - b.dueMs);
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.run();
    }
    this.#nowMs = endMs;
  }
}
