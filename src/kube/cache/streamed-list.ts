/** The first content of a cache from a watch that sends it as events (Kubernetes API concepts, "Streaming lists"). */
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { ApiError, isConnectionRefused, isVersionUnavailable, TooManyRequestsError } from '../client/api-error.ts';
import { type KubeObject, objectKey, type Resource, type WatchEvent } from '../kube-object.ts';
import { type ReflectorCache, WatchProgress } from './reflector-cache.ts';
import { type ReflectorFailures, RewoundError } from './reflector-failures.ts';
import { Suspension } from './coding-choice.ts';
import { initialEventsEnd, shortWatchMs } from './watch-stream.ts';

export interface StreamedListOptions<T extends KubeObject> {
  resource: Resource;
  /** `auto`: not for some hours after the server has refused to. */
  watchList: 'auto' | 'on' | 'off';
  cache: ReflectorCache<T>;
  failures: ReflectorFailures;
  watch: (request: {
    version: string;
    query: Record<string, string | boolean>;
    maxSilenceMs: number;
    signal: AbortSignal;
  }) => AsyncIterable<WatchEvent>;
  /** The cache has the whole content, and follows from there. */
  onFilled: () => void;
  clock: Clock;
  logger: Logger;
}

/** How long a server may send events other than those of a streaming list before it counts as one without. */
const maxForeignEventsMs = 30_000;
const maxSilenceMs = 60_000;
/** A stream without an event for this long has gone silent; less than above, as an event is read after its bytes arrive. */
const silentMs = maxSilenceMs - 5000;
/** Max streams in a row that end before all objects have arrived: what cuts them off may let the shorter pages through. */
const maxIncomplete = 3;

/** The server does not stream lists: list in pages. */
class NotStreamedError extends Error {}

export class StreamedList<T extends KubeObject> {
  readonly #options: StreamedListOptions<T>;
  readonly #suspension: Suspension;

  constructor(options: StreamedListOptions<T>) {
    this.#options = options;
    this.#suspension = new Suspension(options.clock);
  }

  /**
   * Fills the cache from one request and goes on with it as a watch until that ends.
   *
   * @returns false when the cache was not filled, since the resource has to be listed in pages.
   * @throws whatever ends the watch once the cache is filled, or the signal's reason.
   */
  async run(signal: AbortSignal): Promise<boolean> {
    if (this.#options.watchList === 'off' || this.#suspension.isActive) return false;
    try {
      await this.#untilFilled(signal);
      return true;
    } catch (error) {
      if (error instanceof NotStreamedError) return false;
      throw error;
    }
  }

  async #untilFilled(signal: AbortSignal): Promise<void> {
    const { cache, failures, watchList } = this.#options;
    for (let incomplete = 0; incomplete < maxIncomplete;) {
      const version = cache.versionToList('');
      const list = { filled: false };
      try {
        await this.#attempt(version, list, signal);
        if (list.filled) return;
      } catch (error) {
        if (signal.aborted || error instanceof NotStreamedError || error instanceof RewoundError) throw error;
        if (list.filled) {
          if (!(error instanceof TooManyRequestsError)) throw error;
          await failures.reportAndBackOff(error, signal);
          return;
        }
        if (isConnectionRefused(error) || error instanceof TooManyRequestsError) {
          await failures.reportAndBackOff(error, signal);
        } else if (isVersionUnavailable(error) && version !== '') {
          cache.markVersionUnavailable();
        } else {
          if (error instanceof ApiError && error.reason === 'Invalid' && watchList === 'auto') this.#suspend();
          throw new NotStreamedError('the server refuses the streaming list', { cause: error });
        }
        continue;
      }
      if (incomplete++ > 0) await failures.backOff(signal);
    }
    throw new NotStreamedError('the streaming list repeatedly ends early');
  }

  /** One request; `list.filled` says whether all objects had come before it ended or failed. */
  async #attempt(version: string, list: { filled: boolean }, signal: AbortSignal): Promise<void> {
    const { clock, cache, watch } = this.#options;
    const startedMs = clock.monotonicMs();
    const collected = new Map<string, T>();
    const progress = new WatchProgress(version);
    let lastEventMs = startedMs;
    let seen = 0;
    let foreign = false;
    const query = { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' };
    for await (const event of watch({ version, query, maxSilenceMs, signal })) {
      seen++;
      lastEventMs = clock.monotonicMs();
      if (list.filled) {
        cache.apply(event, progress);
        continue;
      }
      if (event.type === 'BOOKMARK' && event.object.metadata.annotations?.[initialEventsEnd] === 'true') {
        await cache.replace([...collected.values()], event.object.metadata.resourceVersion ?? '');
        this.#options.failures.succeeded();
        this.#options.onFilled();
        collected.clear();
        list.filled = true;
        progress.mayAdvance = true;
        continue;
      }
      this.#collect(event, collected);
      foreign ||= event.type === 'BOOKMARK' || event.type === 'MODIFIED' || event.type === 'DELETED';
      if (foreign && clock.monotonicMs() - startedMs > maxForeignEventsMs) this.#giveUp();
    }
    if (list.filled) return;
    const endedMs = clock.monotonicMs();
    if (endedMs - lastEventMs >= silentMs) this.#giveUp();
    if (seen === 0 && endedMs - startedMs < shortWatchMs)
      throw new NotStreamedError('the streaming list ended at once');
  }

  #giveUp(): never {
    this.#suspend();
    throw new NotStreamedError('no end of the initial events');
  }

  #suspend(): void {
    this.#options.logger.info(
      { resource: this.#options.resource.plural, retryAfterHours: this.#suspension.begin() },
      'The API server does not stream lists, listing in pages until streaming is tried again',
    );
  }

  #collect(event: WatchEvent, collected: Map<string, T>): void {
    const { cache } = this.#options;
    cache.throwIfError(event);
    if (event.type === 'BOOKMARK' || !cache.isExpected(event)) return;
    if (event.type === 'DELETED') {
      collected.delete(objectKey(event.object));
      return;
    }
    const object = cache.cachedForm(event.object);
    if (object !== undefined) collected.set(objectKey(object), object);
  }
}
