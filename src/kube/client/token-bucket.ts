import { untilAborted } from '../../base/abort.ts';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import type { RequestOptions } from './request.ts';

/** Tokens are counted in fractions: a token that lacks less than this counts as whole. */
const rounding = 1e-9;

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

/** Requests of one kind, such as those that list claims. */
export interface RequestKind {
  readonly name: string;
  /** How many requests of the kind are sent in each turn while other kinds wait. */
  readonly inRow: number;
}

interface Waiting {
  readonly kind: RequestKind;
  readonly requests: Set<() => void>;
  /** How many were sent since the turn of the kind began. */
  sent: number;
}

/**
 * A queue of requests in which kinds take turns: a request waits for few others of each kind, however many of one kind wait.
 * Requests of one kind are taken in order of arrival.
 */
export class RequestTurns {
  /** By name of the kind, in the order of their turns. */
  readonly #kinds = new Map<string, Waiting>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(request: () => void, kind: RequestKind): void {
    const waiting = this.#kinds.get(kind.name) ?? { kind, requests: new Set(), sent: 0 };
    this.#kinds.set(kind.name, waiting);
    waiting.requests.add(request);
    this.#size++;
  }

  /** Removes a request that no longer waits. Safe to repeat. */
  remove(request: () => void, { name }: RequestKind): void {
    const waiting = this.#kinds.get(name);
    if (waiting?.requests.delete(request) !== true) return;
    this.#size--;
    if (waiting.requests.size === 0) this.#kinds.delete(name);
  }

  /** Removes the next request and returns it; undefined if none waits. */
  take(): (() => void) | undefined {
    for (const waiting of this.#kinds.values()) {
      for (const request of waiting.requests) {
        this.remove(request, waiting.kind);
        this.#endTurn(waiting);
        return request;
      }
    }
    return undefined;
  }

  /** Puts the kind behind all others, once its turn is over. */
  #endTurn(waiting: Waiting): void {
    const { name, inRow } = waiting.kind;
    if (++waiting.sent < inRow || !this.#kinds.delete(name)) return;
    waiting.sent = 0;
    this.#kinds.set(name, waiting);
  }
}

/** Long waits are logged at info at most this often, in milliseconds: there are usually hundreds at once. */
const noticeEveryMs = 10_000;
const minDebugWaitMs = 50;
const minInfoWaitMs = 1000;
/** How many writes of PersistentVolumes are sent in each turn: each completes the work of several other requests. */
const volumeWritesInRow = 4;

/** Makes requests wait for the client-side rate limit, and logs long waits. */
export class Throttle {
  readonly #options: { rateLimit: TokenBucket; clock: Clock; logger: Logger };
  #loggedAtMs = -Infinity;

  constructor(options: { rateLimit: TokenBucket; clock: Clock; logger: Logger }) {
    this.#options = options;
  }

  /** Waits for a token. @throws the signal's reason when it aborts first; no token is used then. */
  async wait(
    { method, path, info }: Pick<RequestOptions, 'method' | 'path' | 'info'>,
    signal: AbortSignal,
  ): Promise<void> {
    const { rateLimit, clock, logger } = this.#options;
    const waitedMs = await rateLimit.wait(signal, kindOf(info, method));
    if (waitedMs <= minDebugWaitMs) return;
    const fields = { delayMs: Math.round(waitedMs), verb: method, path };
    const isDue = waitedMs > minInfoWaitMs && clock.monotonicMs() - this.#loggedAtMs >= noticeEveryMs;
    if (isDue) this.#loggedAtMs = clock.monotonicMs();
    logger[isDue ? 'info' : 'debug'](fields, 'Waited before sending request, client-side throttling');
  }
}

/**
 * Kinds take turns: neither a page of a list nor a write of the intent journal, for which many claims wait, has to wait for
 * hundreds of other requests.
 */
function kindOf({ verb, resource }: RequestOptions['info'], method: RequestOptions['method']): RequestKind {
  const isVolumeWrite = resource.plural === 'persistentvolumes' && method !== 'GET';
  return { name: `${verb} ${resource.plural}`, inRow: isVolumeWrite ? volumeWritesInRow : 1 };
}
