import type { Clock, Timer } from '../../base/clock.ts';
import { nextSlice, sliceSpent } from '../../base/event-loop.ts';
import { asGarbled, isGarbled, TransportError } from '../client/api-error.ts';
import type { RequestOptions } from '../client/request.ts';
import type { WatchEvent } from '../kube-object.ts';
import { protobufEvents } from './protobuf-stream.ts';
import type { CodingChoice } from './coding-choice.ts';
import { lines } from './list-stream.ts';

interface WatchStreamOptions {
  coding: CodingChoice;
  clock: Clock;
  request: Omit<RequestOptions, 'method' | 'signal'>;
  /** `timeoutSeconds` of the request; 30 s later the stream is aborted here. */
  timeoutS: number;
  /** No byte for this long ends the stream, until the first bookmark. Default: as `pace` says. */
  maxSilenceMs?: number | undefined;
  /** How long a silence ends the stream. Default: only `timeoutS` counts. */
  pace?: BookmarkPace | undefined;
  /** Called at each chunk of the response. */
  onBytes?: (() => void) | undefined;
  /** Called when silence ends the stream. @param openedAtMs - when it was requested, in monotonic milliseconds. */
  onSilent?: ((openedAtMs: number) => void) | undefined;
  /** Called at each event, and when the server opens the watch and ends it normally: successes even without an event. */
  onSuccess: () => void;
  signal: AbortSignal;
}

/** A watch that ended this soon without an event means that something between us and the server closes watches. */
export const shortWatchMs = 1000;
/** Max time until the response headers of a watch, which a server sends at once, with events or without. */
const maxResponseMs = 30_000;
/** The annotation of the bookmark that ends the initial events of a streaming list. */
export const initialEventsEnd = 'k8s.io/initial-events-end';
/** A watch stays open this much longer than it asked for, then its connection counts as dead. */
const graceMs = 30_000;

/** The connection is dead: the watch ends as if the server had closed it. */
class SilentConnection extends Error {}

/**
 * The events of one watch, until the server ends it, the connection dies or goes silent. A broken connection ends the
 * events like a normal end does: what was missed comes with the next watch.
 *
 * @throws {ApiError} when the server refuses the watch, {TransportError} for a garbled event (`isGarbled`), or before
 * any event when there is no connection or no response within 30 s.
 */
export async function* watchStream(options: WatchStreamOptions): AsyncGenerator<WatchEvent> {
  const { coding, request, onSuccess, onBytes, signal } = options;
  const guard = new SilenceGuard(options);
  const ended = AbortSignal.any([signal, guard.signal]);
  try {
    const { body, decode } = await coding.stream({ ...request, method: 'GET', signal: ended, watch: true });
    onSuccess();
    guard.opens();
    const onChunk = (): void => {
      guard.sawBytes();
      onBytes?.();
    };
    const { kind } = request.info.resource;
    for await (const event of decode === undefined
      ? jsonEvents(body, onChunk)
      : protobufEvents(body, { kind, decode, onChunk })) {
      if (sliceSpent()) await nextSlice();
      if (event.type === 'BOOKMARK') guard.sawBookmark(event);
      onSuccess();
      yield event;
    }
    onSuccess();
  } catch (failure) {
    signal.throwIfAborted();
    if (guard.opened && guard.signal.aborted) return;
    const error = asGarbled(failure, 'an event of the watch');
    coding.failed(error, request);
    if (guard.opened && error instanceof TransportError && !isGarbled(error)) return;
    throw error;
  } finally {
    guard.stop();
  }
}

async function* jsonEvents(body: AsyncIterable<Uint8Array>, onChunk: () => void): AsyncGenerator<WatchEvent> {
  for await (const line of lines(body, onChunk)) yield parse(line);
}

function parse(line: string): WatchEvent {
  const event = JSON.parse(line) as Partial<WatchEvent> | null;
  const { type, object } = event ?? {};
  // that of an ERROR is a Status, whose metadata nobody reads
  if (typeof type !== 'string' || !isObject(object) || (type !== 'ERROR' && !isObject(object.metadata))) {
    throw new SyntaxError('a line of the watch is not an event');
  }
  return event as WatchEvent;
}

function isObject(value: object | null | undefined): value is object {
  return typeof value === 'object' && value !== null;
}

/** Aborts a silent stream. One timer checks from time to time, instead of one timer for each chunk. */
class SilenceGuard {
  readonly #options: WatchStreamOptions;
  readonly #controller = new AbortController();
  readonly #startedMs: number;
  opened = false;
  #lastByteMs: number;
  #lastBookmarkMs: number;
  #hasBookmark = false;
  #timer: Timer | undefined;

  constructor(options: WatchStreamOptions) {
    this.#options = options;
    this.#startedMs = options.clock.monotonicMs();
    this.#lastByteMs = this.#startedMs;
    this.#lastBookmarkMs = this.#startedMs;
    this.#arm();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  opens(): void {
    this.opened = true;
    this.sawBytes();
  }

  sawBytes(): void {
    this.#lastByteMs = this.#options.clock.monotonicMs();
  }

  sawBookmark({ object }: WatchEvent): void {
    const nowMs = this.#options.clock.monotonicMs();
    const isPeriodic = object.metadata.annotations?.[initialEventsEnd] !== 'true';
    if (isPeriodic) this.#options.pace?.sawBookmark(nowMs - this.#lastBookmarkMs);
    this.#lastBookmarkMs = nowMs;
    if (this.#hasBookmark) return;
    this.#hasBookmark = true;
    this.#arm(); // less silence may count as dead now
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** When the stream counts as dead if nothing more comes. */
  #deadAtMs(): number {
    if (!this.opened) return this.#lastByteMs + maxResponseMs;
    return Math.min(this.#endAtMs, this.#lastByteMs + this.#maxSilenceMs);
  }

  get #endAtMs(): number {
    return this.#startedMs + this.#options.timeoutS * 1000 + graceMs;
  }

  get #maxSilenceMs(): number {
    const { maxSilenceMs, pace } = this.#options;
    return (this.#hasBookmark ? undefined : maxSilenceMs) ?? pace?.maxSilenceMs ?? Infinity;
  }

  #end(): void {
    const { onSilent, pace, request } = this.#options;
    if (this.opened) {
      pace?.wasSilent();
      this.#controller.abort(new SilentConnection('the API server sends nothing'));
    } else {
      const message = `no response to a watch of ${request.info.resource.plural} within ${maxResponseMs} ms`;
      this.#controller.abort(new TransportError(message, { code: 'TIMEOUT' }));
    }
    onSilent?.(this.#startedMs);
  }

  #arm(): void {
    this.#timer?.cancel();
    const { clock } = this.#options;
    const inMs = this.#deadAtMs() - clock.monotonicMs();
    if (inMs <= 0) this.#end();
    else this.#timer = clock.after(inMs, () => this.#arm());
  }
}

/** Min silence after which a watch counts as dead, in milliseconds: servers send a bookmark each minute. */
const minSilenceMs = 75_000;
/** A bookmark may be later than the max gap that was seen by this factor. */
const leeway = 1.25;
/** After this many silent watches, and never a bookmark, the server counts as one that sends none. */
const maxSilentWatches = 2;

/** How many of the last gaps between bookmarks count: one may have been long because this process was paused. */
const maxGaps = 3;

/** How often a server sends bookmarks in the watches of one resource, and so how long a silence means that a connection is dead. */
export class BookmarkPace {
  readonly #gapsMs: number[] = [];
  #silentWatches = 0;

  /** Milliseconds without a byte after which a watch is dead; undefined while silence means nothing. */
  get maxSilenceMs(): number | undefined {
    if (this.#gapsMs.length === 0 && this.#silentWatches >= maxSilentWatches) return undefined;
    return Math.max(minSilenceMs, leeway * Math.max(0, ...this.#gapsMs));
  }

  /** A bookmark came, this long after the one before it or the start of the watch, in milliseconds. */
  sawBookmark(gapMs: number): void {
    this.#gapsMs.push(gapMs);
    if (this.#gapsMs.length > maxGaps) this.#gapsMs.shift();
  }

  /** A watch was ended because of its silence. */
  wasSilent(): void {
    this.#silentWatches += 1;
  }
}
