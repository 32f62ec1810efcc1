/**
 * Keeps a copy of one resource up to date: lists it, watches it from there, and relists when the server has
 * forgotten its resource version. The rules are those of Kubernetes' own clients (Kubernetes API concepts,
 * "Watch bookmarks", "410 Gone responses", "Streaming lists").
 */
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import {
  isConnectionRefused,
  isGarbled,
  isVersionUnavailable,
  TooManyRequestsError,
  TransportError,
} from '../client/api-error.ts';
import { BookmarkPace, shortWatchMs, watchStream } from './watch-stream.ts';
import { type KubeObject, type Resource, resourcePath, type WatchEvent } from '../kube-object.ts';
import { CodingChoice } from './coding-choice.ts';
import type { ListEnvelope } from './list-stream.ts';
import { pagedList, pageSize } from './paged-list.ts';
import type { ObjectDecoder } from '../protobuf/envelope.ts';
import { ReflectorCache, type ReflectorSink, WatchProgress } from './reflector-cache.ts';
import { ReflectorFailures, RewindCheck, ShortWatchError } from './reflector-failures.ts';
import type { ReflectorMetrics } from './reflector-metrics.ts';
import { StreamedList } from './streamed-list.ts';
import type { Transport } from '../client/transport.ts';

export interface ReflectorOptions<T extends KubeObject> {
  transport: Transport;
  resource: Resource;
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  fieldSelector?: string | undefined;
  sink: ReflectorSink<T>;
  /** Makes the cached form of an object as it came from the server; may take parts of it, must not keep it whole. */
  transform: (object: KubeObject) => T;
  /** Reads the objects from protobuf, at least what `transform` reads. Absent: only JSON is requested. */
  protobuf?: ObjectDecoder | undefined;
  clock: Clock;
  /** Uniform in [0, 1). */
  random: () => number;
  logger: Logger;
  /** Whether the first content comes as a streaming list. `auto`, the default: where the server offers it. */
  watchList?: 'auto' | 'on' | 'off';
  metrics?: ReflectorMetrics | undefined;
}

/** Max tries to open a watch whose connection breaks before the server has responded, and the pause between them. */
const maxOpenFailures = 10;
const openPauseMs = 1000;
/** A watch that ends this much before its time has had it, in milliseconds: no two clocks run at quite the same speed. */
const endLeewayMs = 1000;

export class Reflector<T extends KubeObject> {
  readonly #options: ReflectorOptions<T>;
  readonly #info;
  readonly #path: string;
  readonly #cache: ReflectorCache<T>;
  readonly #failures: ReflectorFailures;
  readonly #streamedList: StreamedList<T>;
  readonly #coding: CodingChoice;
  readonly #pace = new BookmarkPace();
  #lastByteMs: number;
  /** The server pages even lists at version 0, so it has no watch cache for this resource. */
  #alwaysPage = false;
  /** A watch has ended before its time, and since then nothing has shown that the server has the version of the content. */
  #interrupted = true;

  constructor(options: ReflectorOptions<T>) {
    const { transport, resource, namespace, watchList = 'auto', metrics } = options;
    this.#options = options;
    this.#lastByteMs = options.clock.monotonicMs();
    this.#coding = new CodingChoice(options);
    this.#path = resourcePath(resource, { namespace });
    this.#info = { verb: 'watch', resource, namespace };
    this.#cache = new ReflectorCache({
      ...options,
      info: this.#info,
      missingPermissions: transport.missingPermissions,
    });
    this.#failures = new ReflectorFailures({ ...options, onFailure: (reason) => metrics?.failed(reason) });
    this.#streamedList = new StreamedList({
      ...options,
      watchList,
      cache: this.#cache,
      failures: this.#failures,
      watch: (request) => this.#watch(request),
      onFilled: () => (this.#interrupted = false),
    });
  }

  /** The last failure, until something succeeds. */
  get lastError(): Error | undefined {
    return this.#failures.lastError;
  }

  /** Monotonic milliseconds of the last successful response. */
  get lastSuccessMs(): number {
    return this.#failures.lastSuccessMs;
  }

  /** Monotonic milliseconds at which something last came from the API server; of the start where nothing has. */
  get lastByteMs(): number {
    return Math.max(this.#lastByteMs, this.lastSuccessMs);
  }

  /** Milliseconds without a byte after which a watch is opened again; undefined where the server sends no bookmarks. */
  get maxSilenceMs(): number | undefined {
    return this.#pace.maxSilenceMs;
  }

  /** Resource version up to which the cache is complete. */
  get lastVersion(): string | undefined {
    return this.#cache.lastVersion;
  }

  /**
   * Whether the content follows the server. False before the first list, and from the end of a connection until the first event
   * or bookmark of the next watch: the server's store may have been restored from a backup meanwhile.
   */
  get isFollowing(): boolean {
    return !this.#interrupted;
  }

  /** Runs until the signal aborts; resolves then, and never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { metrics, clock } = this.#options;
    const unfollow = metrics?.follow?.(() => clock.monotonicMs() - this.lastByteMs);
    await this.#keepUpToDate(signal);
    unfollow?.();
  }

  async #keepUpToDate(signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        if (!(await this.#streamedList.run(signal))) await this.#list(signal);
        await this.#follow(signal);
      } catch (error) {
        if (signal.aborted) return;
        // the code that fenced the transport has logged why, and nothing is retried
        if (!this.#options.transport.fenced.aborted) this.#failures.report(error);
      }
      await this.#failures.backOff(signal).catch(() => undefined);
      if (signal.aborted) return;
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const version = this.#cache.versionToList('0');
    try {
      await this.#listAt(version, signal);
    } catch (error) {
      if (!isVersionUnavailable(error) || version === '') throw error;
      this.#cache.markVersionUnavailable();
      await this.#listAt('', signal);
    }
  }

  async #listAt(version: string, signal: AbortSignal): Promise<void> {
    const { resource, namespace, labelSelector, fieldSelector } = this.#options;
    let objects: T[] = [];
    const result = await pagedList({
      coding: this.#coding,
      resource,
      namespace,
      labelSelector,
      fieldSelector,
      resourceVersion: version,
      limit: version === '' || version === '0' || this.#alwaysPage ? pageSize : 0,
      onStart: () => {
        objects = [];
      },
      onItem: (item) => {
        this.#sawBytes();
        const object = this.#cache.cachedForm(item);
        if (object !== undefined) objects.push(object);
      },
      signal,
    });
    if (version === '0' && result.paged) this.#alwaysPage = true;
    this.#options.metrics?.listed();
    await this.#cache.replace(objects, result.resourceVersion);
    this.#interrupted = false;
    this.#failures.succeeded();
  }

  /**
   * Compares the version of the content with that of the server. A watch from a version that the server has not reached stays
   * open and silent, and later begins with the events after that version: what an older store lacks would stay in the cache, and
   * what it has would be missing. Nothing else reveals that etcd was restored from a backup (Kubernetes, "Restoring an etcd
   * cluster").
   *
   * @throws {RewoundError} when everything has to be listed again.
   */
  async #compareVersion(signal: AbortSignal): Promise<void> {
    const { transport, resource, namespace, labelSelector, fieldSelector } = this.#options;
    const { lastVersion = '' } = this.#cache; // it may be newer than the response once that is read
    const { metadata } = await transport.request<ListEnvelope>({
      method: 'GET',
      path: this.#path,
      query: { limit: 1, labelSelector, fieldSelector },
      info: { verb: 'list', resource, namespace },
      signal,
    });
    this.#cache.throwIfRewound(metadata?.resourceVersion, lastVersion);
    this.#interrupted = false;
  }

  #rewindCheck(signal: AbortSignal, afterMs: number | undefined): RewindCheck {
    const { clock } = this.#options;
    return new RewindCheck({ clock, afterMs, compare: (each) => this.#compareVersion(each), signal });
  }

  /** Watches repeatedly from the cache's resource version. @throws errors that need a new list. */
  async #follow(signal: AbortSignal): Promise<never> {
    const { clock, metrics } = this.#options;
    let openFailures = 0;
    let checkAfterMs: number | undefined;
    for (;;) {
      const startedMs = clock.monotonicMs();
      let seen = 0;
      const version = this.#cache.lastVersion ?? '';
      const progress = new WatchProgress(version);
      using check = this.#interrupted ? this.#rewindCheck(signal, checkAfterMs) : undefined;
      try {
        for await (const event of this.#watch({ version, signal: check?.signal ?? signal })) {
          seen++;
          openFailures = 0;
          this.#cache.apply(event, progress);
          this.#interrupted = false;
          check?.confirm();
        }
      } catch (error) {
        signal.throwIfAborted();
        if (isConnectionRefused(error) || error instanceof TooManyRequestsError) {
          await this.#failures.reportAndBackOff(error, signal);
          continue;
        }
        if (!(error instanceof TransportError) || isGarbled(error)) throw error;
        if (++openFailures > maxOpenFailures) throw error;
        this.#failures.report(error);
        await clock.sleep(openPauseMs, { signal });
        continue;
      }
      checkAfterMs = check?.leftMs;
      if (clock.monotonicMs() - startedMs >= shortWatchMs || this.#cache.lastVersion !== version) continue;
      metrics?.shortWatch();
      if (seen === 0) throw new ShortWatchError('the watch ended at once and without an event');
      await this.#failures.backOff(signal); // its events change nothing: the next one would end as soon
    }
  }

  async *#watch(request: {
    version: string;
    query?: Record<string, string | boolean>;
    maxSilenceMs?: number;
    signal: AbortSignal;
  }): AsyncGenerator<WatchEvent> {
    const { transport, clock, random, metrics, labelSelector, fieldSelector } = this.#options;
    const { version, query, maxSilenceMs, signal } = request;
    const timeoutS = Math.floor(300 + random() * 300); // spread, so that watches do not all end together
    metrics?.watched();
    const endsAtMs = clock.monotonicMs() + timeoutS * 1000;
    try {
      yield* watchStream({
        coding: this.#coding,
        clock,
        request: {
          path: this.#path,
          query: {
            watch: true,
            ...query,
            allowWatchBookmarks: true,
            resourceVersion: version === '' ? undefined : version,
            timeoutSeconds: timeoutS,
            labelSelector,
            fieldSelector,
          },
          info: this.#info,
        },
        timeoutS,
        maxSilenceMs,
        pace: this.#pace,
        onBytes: () => this.#sawBytes(),
        onSilent: (openedAtMs) => transport.distrust(openedAtMs),
        onSuccess: () => this.#failures.succeeded(),
        signal,
      });
    } finally {
      if (clock.monotonicMs() < endsAtMs - endLeewayMs) this.#interrupted = true; // later it is the end that was requested
    }
  }

  #sawBytes(): void {
    this.#lastByteMs = this.#options.clock.monotonicMs();
  }
}
