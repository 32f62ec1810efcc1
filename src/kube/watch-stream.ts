import type { Clock, Timer } from '../base/clock.ts';
import { nextSlice, sliceSpent } from '../base/event-loop.ts';
import { asGarbled, isGarbled, TransportError } from './api-error.ts';
import type { CodingChoice } from './coding-choice.ts';
import { lines } from './line-stream.ts';
import { protobufEvents } from './protobuf/protobuf-watch.ts';
import type { RequestOptions } from './request.ts';
import type { WatchEvent } from './watch-event.ts';

export interface WatchStreamOptions {
  coding: CodingChoice;
  clock: Clock;
  request: Omit<RequestOptions, 'method' | 'signal'>;
  /** `timeoutSeconds` of the request; 30 s later the stream is aborted here. */
  timeoutS: number;
  /** No byte for this long ends the stream, until the first bookmark. Default: only `timeoutS` counts. */
  maxSilenceMs?: number | undefined;
  /** Called at each event, and when the server opens the watch and ends it normally: successes even without an event. */
  onSuccess: () => void;
  signal: AbortSignal;
}

/** A watch that ended this soon without an event means that something between us and the server closes watches. */
export const shortWatchMs = 1000;
/** Max time until the response headers of a watch, which a server sends at once, with events or without. */
const maxAnswerMs = 30_000;
/** A watch stays open this much longer than it asked for, then its connection counts as dead. */
const graceMs = 30_000;
/** Min silence after which a connection counts as dead once bookmarks were seen. */
const minBookmarkSilenceMs = 180_000;

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
  const { coding, request, onSuccess, signal } = options;
  const guard = new SilenceGuard(options);
  const ended = AbortSignal.any([signal, guard.signal]);
  try {
    const { body, decode } = await coding.stream({ ...request, method: 'GET', signal: ended, watch: true });
    onSuccess();
    guard.opens();
    const onChunk = (): void => guard.sawBytes();
    const { kind } = request.info.resource;
    for await (const event of decode === undefined
      ? jsonEvents(body, onChunk)
      : protobufEvents(body, { kind, decode, onChunk })) {
      if (sliceSpent()) await nextSlice();
      if (event.type === 'BOOKMARK') guard.sawBookmark();
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
  if (typeof event?.type !== 'string' || typeof event.object !== 'object') {
    throw new SyntaxError('a line of the watch is not an event');
  }
  return event as WatchEvent;
}

/** Aborts a silent stream. One timer checks from time to time, instead of one timer for each chunk. */
class SilenceGuard {
  readonly #clock: Clock;
  readonly #controller = new AbortController();
  readonly #endAtMs: number;
  readonly #maxSilenceMs: number | undefined;
  readonly #resource: string;
  opened = false;
  #lastByteMs: number;
  #lastBookmarkMs: number | undefined;
  #maxGapMs = 0;
  #timer: Timer | undefined;

  constructor({ clock, request, timeoutS, maxSilenceMs }: WatchStreamOptions) {
    this.#clock = clock;
    this.#lastByteMs = clock.monotonicMs();
    this.#endAtMs = this.#lastByteMs + timeoutS * 1000 + graceMs;
    this.#maxSilenceMs = maxSilenceMs;
    this.#resource = request.info.resource.plural;
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
    this.#lastByteMs = this.#clock.monotonicMs();
  }

  sawBookmark(): void {
    const nowMs = this.#clock.monotonicMs();
    if (this.#lastBookmarkMs !== undefined) this.#maxGapMs = Math.max(this.#maxGapMs, nowMs - this.#lastBookmarkMs);
    const first = this.#lastBookmarkMs === undefined;
    this.#lastBookmarkMs = nowMs;
    if (first) this.#arm();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** When the stream counts as dead if nothing more comes. */
  #deadAtMs(): number {
    if (!this.opened) return this.#lastByteMs + maxAnswerMs;
    if (this.#lastBookmarkMs !== undefined) {
      return Math.min(this.#endAtMs, this.#lastByteMs + Math.max(minBookmarkSilenceMs, 3 * this.#maxGapMs));
    }
    return this.#maxSilenceMs === undefined
      ? this.#endAtMs
      : Math.min(this.#endAtMs, this.#lastByteMs + this.#maxSilenceMs);
  }

  #verdict(): Error {
    if (this.opened) return new SilentConnection('the API server sends nothing');
    const message = `no response to a watch of ${this.#resource} within ${maxAnswerMs} ms`;
    return new TransportError(message, { code: 'TIMEOUT' });
  }

  #arm(): void {
    this.#timer?.cancel();
    const inMs = this.#deadAtMs() - this.#clock.monotonicMs();
    if (inMs <= 0) this.#controller.abort(this.#verdict());
    else this.#timer = this.#clock.after(inMs, () => this.#arm());
  }
}
