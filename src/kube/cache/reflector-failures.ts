import { type JoinedSignal, joinSignals } from '../../base/abort.ts';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { ApiError, ExpiredError, ForbiddenError, TransportError } from '../client/api-error.ts';
import { retryAfterMs } from '../client/request-failure.ts';
import type { Resource } from '../kube-object.ts';
import { Backoff } from '../queue/rate-limiter.ts';

/** The watch ended at once and empty: something between us and the server closes watches. */
export class ShortWatchError extends Error {}

/** The server's store is older than the cache: it was restored from a backup. */
export class RewoundError extends Error {
  override readonly name = 'RewoundError';
}

/** The same failure is logged at most this often, in milliseconds. */
const repeatMs = 60_000;
/** Max different failures remembered. */
const maxRemembered = 100;

interface ReflectorFailuresOptions {
  logger: Logger;
  clock: Clock;
  /** Uniform in [0, 1). */
  random: () => number;
  resource: Resource;
  /** Counts a failure by its reason, unless `MissingPermissions` counts it. */
  onFailure?: ((reason: string) => void) | undefined;
}

/** The failures of a reflector: logged, counted, and followed by a pause. */
export class ReflectorFailures {
  readonly #options: ReflectorFailuresOptions;
  readonly #backoff: Backoff;
  readonly #loggedAtMs = new Map<string, number>();
  #lastSuccessMs: number;
  #lastError: Error | undefined;

  constructor(options: ReflectorFailuresOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options);
    this.#lastSuccessMs = options.clock.monotonicMs();
  }

  /** The last failure, until something succeeds. */
  get lastError(): Error | undefined {
    return this.#lastError;
  }

  /** Monotonic milliseconds of the last success; of the start where there was none. */
  get lastSuccessMs(): number {
    return this.#lastSuccessMs;
  }

  succeeded(): void {
    this.#lastSuccessMs = this.#options.clock.monotonicMs();
    this.#lastError = undefined;
  }

  /** Logs and counts a failure. One that repeats is counted each time and logged at most once a minute. */
  report(error: unknown): void {
    this.#lastError = error as Error;
    if (error instanceof ForbiddenError && !error.isAdmission) return; // `MissingPermissions` has reported it
    this.#log(error);
    this.#options.onFailure?.(reasonOf(error));
  }

  /** One back-off step. @throws the signal's reason when it aborts first. */
  async backOff(signal: AbortSignal): Promise<void> {
    await this.#backoff.wait(signal);
  }

  /** Reports the failure, then waits one back-off step, or for the server's `Retry-After` if that is longer. */
  async reportAndBackOff(error: unknown, signal: AbortSignal): Promise<void> {
    this.report(error);
    const askedMs = error instanceof ApiError ? (retryAfterMs(error) ?? 0) : 0;
    await this.#options.clock.sleep(Math.max(this.#backoff.next(), askedMs), { signal });
  }

  #log(error: unknown): void {
    const { logger, resource } = this.#options;
    const fields = { resource: resource.plural, err: error };
    if (error instanceof ExpiredError) {
      logger.debug(fields, 'The watch is too old, relisting');
    } else if (this.#loggedRecently(`${(error as Error).name}: ${(error as Error).message}`)) {
      return;
    } else if (error instanceof ApiError && error.code === 404) {
      logger.warn(fields, 'The API server does not serve the resource, retrying');
    } else if (error instanceof RewoundError) {
      logger.warn(fields, 'The API server has gone back in time, as after a restore of its etcd: relisting');
    } else if (error instanceof ShortWatchError) {
      logger.info(fields, 'A watch ended at once, relisting');
    } else {
      logger.error(fields, 'Reading a resource failed, trying again');
    }
  }

  #loggedRecently(text: string): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs - (this.#loggedAtMs.get(text) ?? -Infinity) < repeatMs) return true;
    if (this.#loggedAtMs.size >= maxRemembered) this.#loggedAtMs.clear();
    this.#loggedAtMs.set(text, nowMs);
    return false;
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof ExpiredError) return 'Expired';
  if (error instanceof ApiError) return error.reason;
  if (error instanceof RewoundError) return 'Rewound';
  return error instanceof TransportError ? error.code : 'ShortWatch';
}

/**
 * Silence of the watches after an interruption after which the versions are compared, in milliseconds: a server sends a
 * bookmark each minute. Less than the silence that ends a watch.
 */
const silentMs = 70_000;

/**
 * Guards a watch that was opened after an interruption, from its start to its first event or bookmark. A watch from a version
 * that the server has not reached stays open and silent, so that a silent one is checked. The silence of several in a row
 * counts as one: a proxy may end each of them before its first bookmark.
 */
export class RewindCheck implements Disposable {
  readonly #rewound = new AbortController();
  readonly #joined: JoinedSignal;
  readonly #ended = new AbortController();
  readonly #clock: Clock;
  #compareAtMs: number;
  #isSettled = false;

  /**
   * @param options.afterMs - silence until the versions are compared, in milliseconds: `leftMs` of the watch before. Default 70,000.
   * @param options.compare - asks the server for its version; its `RewoundError` aborts the watch, other failures are retried.
   */
  constructor(options: {
    clock: Clock;
    afterMs?: number | undefined;
    compare: (signal: AbortSignal) => Promise<void>;
    signal: AbortSignal;
  }) {
    const { clock, afterMs = silentMs, compare, signal } = options;
    this.#clock = clock;
    this.#compareAtMs = clock.monotonicMs() + afterMs;
    this.#joined = joinSignals([signal, this.#rewound.signal], { clock });
    void this.#run(compare).catch(() => undefined); // it has ended
  }

  /** For the watch. Its reason is the `RewoundError` where the server has gone back. */
  get signal(): AbortSignal {
    return this.#joined.signal;
  }

  /** Milliseconds of silence until the versions are compared; all of them again once the server is known to have the version. */
  get leftMs(): number {
    return this.#isSettled ? silentMs : Math.max(this.#compareAtMs - this.#clock.monotonicMs(), 0);
  }

  /** The watch has had an event or bookmark: nothing is compared any more. Cheap to repeat, as each event does. */
  confirm(): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#ended.abort();
  }

  async #run(compare: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const clock = this.#clock;
    using signal = joinSignals([this.#joined.signal, this.#ended.signal], { clock });
    for (;;) {
      await clock.sleep(this.leftMs, { signal: signal.signal });
      try {
        await compare(signal.signal);
        this.#isSettled = true;
        return;
      } catch (error) {
        signal.signal.throwIfAborted();
        if (error instanceof RewoundError) this.#rewound.abort(error);
        this.#compareAtMs = clock.monotonicMs() + silentMs;
      }
    }
  }

  [Symbol.dispose](): void {
    this.#ended.abort();
    this.#joined[Symbol.dispose]();
  }
}
