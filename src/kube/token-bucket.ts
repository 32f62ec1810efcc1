import type { Clock } from '../base/clock.ts';

/** A bucket of tokens that refills at a steady rate. Starts full. Waiters are served in the order they came. */
export class TokenBucket {
  readonly #perMs: number;
  readonly #burst: number;
  readonly #clock: Clock;
  /** May go below zero: reservations are debts that later callers wait behind. */
  #tokens: number;
  #filledAtMs: number;

  /**
   * @param options.qps - tokens that come back each second.
   * @param options.burst - max tokens, and those at the start.
   */
  constructor(options: { qps: number; burst: number; clock: Clock }) {
    this.#perMs = options.qps / 1000;
    this.#burst = options.burst;
    this.#clock = options.clock;
    this.#tokens = options.burst;
    this.#filledAtMs = options.clock.monotonicMs();
  }

  /** Takes a token. @returns the milliseconds until it is available. It is never given back. */
  reserve(): number {
    this.#refill();
    this.#tokens -= 1;
    return this.#tokens >= 0 ? 0 : -this.#tokens / this.#perMs;
  }

  /** Takes a token if one is there. */
  tryTake(): boolean {
    this.#refill();
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** Waits for a token; resolves to the milliseconds waited. A wait that is aborted still used its token. */
  async wait(signal?: AbortSignal): Promise<number> {
    const waitMs = this.reserve();
    if (waitMs > 0) await this.#clock.sleep(waitMs, signal === undefined ? {} : { signal });
    return waitMs;
  }

  #refill(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#tokens = Math.min(this.#burst, this.#tokens + (nowMs - this.#filledAtMs) * this.#perMs);
    this.#filledAtMs = nowMs;
  }
}
