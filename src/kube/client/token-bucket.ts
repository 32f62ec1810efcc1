import { untilAborted } from '../../base/abort.ts';
import type { Clock } from '../../base/clock.ts';
import { type RequestKind, RequestTurns } from './request-turns.ts';

/** Tokens are counted in fractions: a token that lacks less than this counts as whole. */
const rounding = 1e-9;

/** The default kind. */
const anyKind: RequestKind = { name: '', inRow: 1 };

/**
 * A token bucket that refills at a steady rate. It starts full. Kinds of waiters take turns, and those of one kind are served in
 * order of arrival.
 */
export class TokenBucket {
  readonly #perMs: number;
  readonly #burst: number;
  readonly #clock: Clock;
  /** May go below zero: reservations are debts that later callers wait behind. */
  #tokens: number;
  #filledAtMs: number;
  readonly #waiting = new RequestTurns();
  /** Aborted once nobody waits. */
  #pause: AbortController | undefined;

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

  /** Whether there are at least that many tokens; takes none. */
  has(tokens: number): boolean {
    this.#refill();
    return this.#tokens >= tokens - rounding;
  }

  /** Takes a token if one is there. */
  tryTake(): boolean {
    if (!this.has(1)) return false;
    this.#tokens -= 1;
    return true;
  }

  /**
   * Waits for a token. A wait that is aborted takes none: those behind it move up.
   *
   * @param kind - kinds take turns. Default: one kind for all callers that give none.
   * @returns the milliseconds waited.
   */
  async wait(signal?: AbortSignal, kind: RequestKind = anyKind): Promise<number> {
    signal?.throwIfAborted();
    if (this.#waiting.size === 0 && this.tryTake()) return 0;
    const startedMs = this.#clock.monotonicMs();
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const proceed = (): void => resolve(undefined);
    this.#waiting.add(proceed, kind);
    this.#arm();
    try {
      await (signal === undefined ? promise : untilAborted(promise, signal));
    } catch (error) {
      this.#waiting.remove(proceed, kind);
      if (this.#waiting.size === 0) this.#endPause();
      throw error;
    }
    return this.#clock.monotonicMs() - startedMs;
  }

  /** Pauses until the first of those that wait can have its token, unless that is under way. */
  #arm(): void {
    if (this.#pause !== undefined) return;
    this.#refill();
    const pause = new AbortController();
    this.#pause = pause;
    const waitMs = Math.max(1 - this.#tokens, 0) / this.#perMs;
    this.#clock.sleep(waitMs, { signal: pause.signal }).then(
      () => this.#serve(),
      () => undefined,
    );
  }

  #endPause(): void {
    this.#pause?.abort();
    this.#pause = undefined;
  }

  #serve(): void {
    this.#pause = undefined;
    while (this.#waiting.size > 0 && this.tryTake()) this.#waiting.take()?.();
    if (this.#waiting.size > 0) this.#arm();
  }

  #refill(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#tokens = Math.min(this.#burst, this.#tokens + (nowMs - this.#filledAtMs) * this.#perMs);
    this.#filledAtMs = nowMs;
  }
}
