/**
 * Keeps a copy of one resource up to date: lists it, watches it from there, and starts over when the server has
 * forgotten where we stood. The rules are those of Kubernetes' own clients (Kubernetes API concepts, "Watch bookmarks",
 * "410 Gone responses", "Streaming lists").
 */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import {
  ApiError,
  errorFromStatus,
  ExpiredError,
  ForbiddenError,
  isConnectionRefused,
  isTooLargeResourceVersion,
  type Status,
  TooManyRequestsError,
  TransportError,
} from './api-error.ts';
import { Backoff } from './backoff.ts';
import { type KubeObject, objectKey, type Resource } from './objects.ts';
import { pagedList, pageSize } from './paged-list.ts';
import { resourcePath } from './paths.ts';
import type { Transport } from './transport.ts';
import { ReflectorComplaints, ShortWatch } from './reflector-complaints.ts';
import { type WatchEvent, watchStream } from './watch-stream.ts';

/** Where a reflector puts what it sees. Calls never overlap: the next one waits for the end of `replace`. */
export interface ReflectorSink<T> {
  /** The object in the cache, so that an unchanged one is not kept twice while a list comes in. */
  get(key: string): T | undefined;
  /** The whole content at a resource version: what is not in it is gone. */
  replace(objects: T[], resourceVersion: string): Promise<void>;
  upsert(object: T): void;
  remove(object: T): void;
}

/** What a reflector tells its metrics. */
export interface ReflectorMetrics {
  listed(): void;
  watched(): void;
  shortWatch(): void;
  failed(reason: string): void;
}

export interface ReflectorOptions<T extends KubeObject> {
  transport: Transport;
  resource: Resource;
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  fieldSelector?: string | undefined;
  sink: ReflectorSink<T>;
  /** Makes the cached form of an object as it came from the server; may take parts of it, must not keep it whole. */
  transform: (object: KubeObject) => T;
  clock: Clock;
  /** Uniform in [0, 1). */
  random: () => number;
  logger: Logger;
  /** Whether the first content comes as a streaming list. `auto`, the default: where the server offers it. */
  watchList?: 'auto' | 'on' | 'off';
  metrics?: ReflectorMetrics | undefined;
}

/** A watch that ended this soon without an event means that something between us and the server closes watches. */
const shortWatchMs = 1000;
/** Tries to open a watch whose connection breaks before it stands, and the pause between them. */
const openTries = 10;
const openPauseMs = 1000;
/** A server that ignores `sendInitialEvents` is given up on after this long. */
const streamedListPatienceMs = 30_000;
const streamedListSilenceMs = 60_000;
const initialEventsEnd = 'k8s.io/initial-events-end';

/** The server does not stream lists: list in pages. */
class NoStreamedList extends Error {}

export class Reflector<T extends KubeObject> {
  readonly #options: ReflectorOptions<T>;
  readonly #backoff: Backoff;
  readonly #info;
  readonly #path: string;
  #lastVersion: string | undefined;
  /** The server said that `#lastVersion` is not to be had. */
  #versionUnavailable = false;
  /** The server pages even lists at version 0, so it has no watch cache for this resource. */
  #alwaysPage = false;
  #streams: boolean;
  #lastSuccessMs: number;
  #lastError: Error | undefined;
  readonly #complaints: ReflectorComplaints;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#backoff = new Backoff({ clock: options.clock, random: options.random });
    this.#path = resourcePath(options.resource, { namespace: options.namespace });
    this.#info = { verb: 'watch', resource: options.resource, namespace: options.namespace };
    this.#streams = options.watchList !== 'off';
    this.#lastSuccessMs = options.clock.monotonicMs();
    this.#complaints = new ReflectorComplaints(options);
  }

  /** What went wrong last, until something succeeds. */
  get lastError(): Error | undefined {
    return this.#lastError;
  }

  /** Milliseconds (monotonic) at which the server last answered well. */
  get lastSuccessMs(): number {
    return this.#lastSuccessMs;
  }

  /** Resource version up to which the cache is complete. */
  get lastVersion(): string | undefined {
    return this.#lastVersion;
  }

  /** Runs until the signal aborts; resolves then, and never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        await this.#cycle(signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#complain(error);
      }
      await this.#backoff.wait(signal).catch(() => undefined);
      if (signal.aborted) return;
    }
  }

  /** One life of the copy: fill it, then follow the changes until something forces a new list. */
  async #cycle(signal: AbortSignal): Promise<void> {
    if (this.#streams) {
      try {
        await this.#streamedList(signal);
      } catch (error) {
        if (!(error instanceof NoStreamedList)) throw error;
        await this.#list(signal);
      }
    } else {
      await this.#list(signal);
    }
    await this.#follow(signal);
  }

  async #list(signal: AbortSignal): Promise<void> {
    const version = this.#versionUnavailable ? '' : (this.#lastVersion ?? '0');
    try {
      await this.#listAt(version, signal);
    } catch (error) {
      if (!isVersionUnavailable(error) || version === '') throw error;
      this.#versionUnavailable = true;
      await this.#listAt('', signal);
    }
    this.#versionUnavailable = false;
  }

  async #listAt(version: string, signal: AbortSignal): Promise<void> {
    const { transport, clock, resource, namespace, labelSelector, fieldSelector } = this.#options;
    let objects: T[] = [];
    const result = await pagedList({
      transport,
      clock,
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
        const object = this.#cachedForm(item);
        if (object !== undefined) objects.push(object);
      },
      signal,
    });
    if (version === '0' && result.paged) this.#alwaysPage = true;
    this.#options.metrics?.listed();
    await this.#fill(objects, result.resourceVersion);
  }

  async #fill(objects: T[], version: string): Promise<void> {
    await this.#options.sink.replace(objects, version);
    this.#lastVersion = version;
    this.#versionUnavailable = false;
    this.#succeeded();
  }

  /** Fills the copy from one request that goes on as a watch. */
  async #streamedList(signal: AbortSignal): Promise<void> {
    for (let incomplete = 0; ; incomplete++) {
      const version = this.#versionUnavailable ? '' : (this.#lastVersion ?? '');
      const progress = { filled: false };
      try {
        await this.#streamOnce(version, progress, signal);
        if (progress.filled) return;
      } catch (error) {
        if (signal.aborted || error instanceof NoStreamedList) throw error;
        if (progress.filled) {
          // by now it is a watch like any other
          if (!(error instanceof TooManyRequestsError)) throw error;
          await this.#pause(error, signal);
          return;
        }
        if (isConnectionRefused(error) || error instanceof TooManyRequestsError) {
          await this.#pause(error, signal);
        } else if (isVersionUnavailable(error) && version !== '') {
          this.#versionUnavailable = true;
        } else {
          if (error instanceof ApiError && error.reason === 'Invalid') this.#streams = this.#options.watchList === 'on';
          throw new NoStreamedList('the server refuses the streaming list', { cause: error });
        }
        continue;
      }
      if (incomplete > 0) await this.#backoff.wait(signal);
    }
  }

  /** One such request; `progress` tells whether all objects had come before it ended or failed. */
  async #streamOnce(version: string, progress: { filled: boolean }, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const startedMs = clock.monotonicMs();
    const collected = new Map<string, T>();
    const following = new Follower(version);
    let seen = 0;
    let foreign = false;
    for await (const event of this.#open(
      version,
      { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' },
      streamedListSilenceMs,
      signal,
    )) {
      seen++;
      if (progress.filled) {
        this.#apply(event, following);
        continue;
      }
      if (event.type === 'BOOKMARK' && event.object.metadata.annotations?.[initialEventsEnd] === 'true') {
        await this.#fill([...collected.values()], event.object.metadata.resourceVersion ?? '');
        collected.clear();
        progress.filled = true;
        following.advance = true;
        continue;
      }
      this.#collect(event, collected);
      foreign ||= event.type === 'BOOKMARK' || event.type === 'MODIFIED' || event.type === 'DELETED';
      if (foreign && clock.monotonicMs() - startedMs > streamedListPatienceMs) this.#giveUpStreaming();
    }
    if (progress.filled) return;
    const tookMs = clock.monotonicMs() - startedMs;
    if (tookMs >= streamedListSilenceMs) this.#giveUpStreaming();
    if (seen === 0 && tookMs < shortWatchMs) throw new NoStreamedList('the streaming list ended at once');
  }

  #giveUpStreaming(): never {
    this.#streams = false;
    this.#options.logger.info(
      { resource: this.#options.resource.plural },
      'The API server does not stream lists, listing in pages from now on',
    );
    throw new NoStreamedList('no end of the initial events');
  }

  #collect(event: WatchEvent, collected: Map<string, T>): void {
    if (event.type === 'ERROR') throw this.#streamError(event);
    if (event.type === 'BOOKMARK' || !this.#expected(event)) return;
    const object = this.#cachedForm(event.object);
    if (object === undefined) return;
    if (event.type === 'DELETED') collected.delete(objectKey(object));
    else collected.set(objectKey(object), object);
  }

  /** Watches from where we stand, again and again, until only a new list helps (which is thrown or returned). */
  async #follow(signal: AbortSignal): Promise<void> {
    let openFailures = 0;
    for (;;) {
      const startedMs = this.#options.clock.monotonicMs();
      let seen = 0;
      const version = this.#lastVersion ?? '';
      const following = new Follower(version);
      try {
        for await (const event of this.#open(version, {}, undefined, signal)) {
          seen++;
          openFailures = 0;
          this.#apply(event, following);
        }
      } catch (error) {
        signal.throwIfAborted();
        if (isConnectionRefused(error) || error instanceof TooManyRequestsError) {
          await this.#pause(error, signal);
          continue;
        }
        if (!(error instanceof TransportError) || error.code === 'BAD_JSON') throw error;
        if (++openFailures > openTries) throw error;
        this.#complain(error);
        await this.#options.clock.sleep(openPauseMs, { signal });
        continue;
      }
      if (seen === 0 && this.#options.clock.monotonicMs() - startedMs < shortWatchMs) {
        this.#options.metrics?.shortWatch();
        throw new ShortWatch('the watch ended at once and without an event');
      }
    }
  }

  /** One back-off step, or as long as the server asks for if that is longer. */
  async #pause(error: unknown, signal: AbortSignal): Promise<void> {
    this.#complain(error);
    const askedMs = error instanceof ApiError ? (error.retryAfterS ?? 0) * 1000 : 0;
    await this.#options.clock.sleep(Math.max(this.#backoff.next(), askedMs), { signal });
  }

  async *#open(
    version: string,
    extra: Record<string, string | boolean>,
    quietLimitMs: number | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent> {
    const { transport, clock, random, labelSelector, fieldSelector, metrics } = this.#options;
    const timeoutS = Math.floor(300 + random() * 300); // spread, so that watches do not all end together
    metrics?.watched();
    const events = watchStream({
      transport,
      clock,
      request: {
        path: this.#path,
        query: {
          watch: true,
          ...extra,
          allowWatchBookmarks: true,
          resourceVersion: version === '' ? undefined : version,
          timeoutSeconds: timeoutS,
          labelSelector,
          fieldSelector,
        },
        info: this.#info,
      },
      timeoutS,
      quietLimitMs,
      onNews: () => this.#succeeded(),
      signal,
    });
    for await (const event of events) {
      this.#succeeded();
      yield event;
    }
  }

  #apply(event: WatchEvent, following: Follower): void {
    const { sink } = this.#options;
    if (event.type === 'ERROR') throw this.#streamError(event);
    if (!this.#expected(event)) return;
    if (event.type !== 'ADDED') following.advance = true;
    if (event.type === 'ADDED' || event.type === 'MODIFIED' || event.type === 'DELETED') {
      const object = this.#cachedForm(event.object);
      if (object !== undefined && event.type === 'DELETED') sink.remove(object);
      else if (object !== undefined) sink.upsert(object);
    } else if (event.type !== 'BOOKMARK') {
      this.#options.logger.warn(
        { type: event.type, resource: this.#info.resource.plural },
        'Unknown watch event ignored',
      );
      return;
    }
    const version = event.object.metadata.resourceVersion;
    if (following.advance && version !== undefined && version !== '') this.#lastVersion = version;
  }

  #expected({ object }: WatchEvent): boolean {
    const { kind } = this.#options.resource;
    if (object.kind === kind && typeof (object.metadata as unknown) === 'object') return true;
    this.#options.logger.warn({ got: object.kind, want: kind }, 'Watch event of another kind ignored');
    return false;
  }

  #streamError(event: WatchEvent): ApiError {
    const error = errorFromStatus(event.object as unknown as Status, this.#info);
    if (error instanceof ForbiddenError) this.#options.transport.missingRights.report(error);
    return error;
  }

  /** The cached form; the object that is there already when it is the same version, so that a relist costs no memory. */
  #cachedForm(object: KubeObject): T | undefined {
    const known = this.#options.sink.get(objectKey(object));
    if (known !== undefined && known.metadata.resourceVersion === object.metadata.resourceVersion) {
      if (known.metadata.uid === object.metadata.uid) return known;
    }
    try {
      return this.#options.transform(object);
    } catch (error) {
      // one object that is not as it should be must not keep the others out
      this.#options.logger.error(
        { err: error, object: objectKey(object) },
        'An object could not be read and is left out',
      );
      return undefined;
    }
  }

  #succeeded(): void {
    this.#lastSuccessMs = this.#options.clock.monotonicMs();
    this.#lastError = undefined;
  }

  #complain(error: unknown): void {
    this.#lastError = error as Error;
    const reason = this.#complaints.tell(error);
    if (reason !== undefined) this.#options.metrics?.failed(reason);
  }
}

/** Whether the version of a watch may be taken from its events yet. */
class Follower {
  advance: boolean;

  constructor(startVersion: string) {
    this.advance = startVersion !== '' && startVersion !== '0';
  }
}

function isVersionUnavailable(error: unknown): boolean {
  return error instanceof ExpiredError || isTooLargeResourceVersion(error);
}
