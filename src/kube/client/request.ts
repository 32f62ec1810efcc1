import type { Permit } from '../../base/permit.ts';
import type { RequestInfo } from './api-error.ts';

export interface RequestOptions {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path without query, already escaped. */
  path: string;
  query?: Record<string, string | number | boolean | undefined> | undefined;
  /** Sent as JSON. */
  body?: unknown;
  /** Default `application/json`. */
  contentType?: string | undefined;
  /** The header `Accept`, for streamed responses. Default `application/json`. */
  accept?: string | undefined;
  /** Nobody reads the body of a successful response: it is not decoded, and counts as empty. */
  discardResponse?: boolean | undefined;
  /** Over a connection of its own. Default: over one that is kept alive. */
  newConnection?: boolean | undefined;
  /** Checked directly before each attempt, which waits until it is valid. Default: none is needed. */
  permit?: Permit | undefined;
  /**
   * Returns until when the request gives way to others, in monotonic milliseconds; called again while it waits. It is sent while few
   * others are under way, and in any case from that moment on. Default: it gives way to none.
   */
  yieldsUntilMs?: (() => number) | undefined;
  /** It is sent at once, however many requests are under way: others depend on it. Default false. */
  waitsForNone?: boolean | undefined;
  /**
   * Called after each wait, for the permit or for its turn, since much may have changed meanwhile: what it throws ends the request, which
   * was not sent.
   */
  recheck?: (() => void) | undefined;
  info: RequestInfo;
  signal?: AbortSignal | undefined;
}

/** A GET whose response is streamed to the caller. */
export interface StreamOptions extends RequestOptions {
  /** A watch takes no rate-limit token and is not sent again. */
  watch: boolean;
  /**
   * An attempt fails when no byte comes for this long while one is waited for, in milliseconds: from when it is sent, after the
   * client-side rate limit and pauses. Default: never.
   */
  maxSilenceMs?: number | undefined;
}

/** One finished attempt, for metrics and tests. */
export interface RequestObservation {
  verb: string;
  resource: string;
  method: string;
  /** HTTP code, or `<error>` when there was no response. */
  code: string;
  seconds: number;
  /** The header `Date` of the response: the server's time, whole seconds. */
  date?: string | undefined;
}

/** A request is about to be sent again, after a pause. */
export interface RequestPause {
  /** Why: an `ApiError` where the server asks for it, or a `TransportError`. */
  error: unknown;
  pauseMs: number;
  verb: string;
  /** Its plural name. */
  resource: string;
}

/** An open response whose body is read in chunks. Abort the signal of the request to end it. */
export interface StreamedResponse {
  body: AsyncIterable<Uint8Array>;
  /** It is in the protobuf coding of Kubernetes, else in JSON. */
  isProtobuf: boolean;
}
