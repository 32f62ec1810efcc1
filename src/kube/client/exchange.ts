import { pipeline, type Readable } from 'node:stream';
import { createGunzip, gunzipSync } from 'node:zlib';
import type { Dispatcher } from 'undici';
import type { Clock, Timer } from '../../base/clock.ts';
import { isProtobuf, readStatus } from '../protobuf/envelope.ts';
import { type RequestInfo, TransportError } from './api-error.ts';
import type { Status } from '../kube-object.ts';
import { errorFromStatus } from './error-from-status.ts';
import { asTransportError } from './request-failure.ts';

/** A whole response. */
export interface HttpResponse {
  statusCode: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

/** A request under way. */
interface Exchange {
  response: Promise<HttpResponse>;
  /** Aborts it with this reason; nothing happens when it has ended. */
  abort: (reason: Error) => void;
}

/**
 * Sends one request and collects its response, which is small. Built on undici's handlers, which cost a fraction of its
 * streams for a short JSON body.
 *
 * @param options.beforeSend - called when the request has a connection: what it returns ends the request, which is then not sent.
 * @param options.onSent - called when the request is sent.
 * @param options.discardResponse - leaves the text of a successful response empty.
 */
export function exchange(
  pool: Dispatcher,
  request: Dispatcher.DispatchOptions,
  {
    beforeSend,
    onSent,
    discardResponse,
  }: { beforeSend: () => Error | undefined; onSent: () => void; discardResponse: boolean },
): Exchange {
  const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>();
  let controller: Dispatcher.DispatchController | undefined;
  let aborted: Error | undefined;
  let statusCode = 0;
  let headers: HttpResponse['headers'] = {};
  const chunks: Buffer[] = [];
  pool.dispatch(request, {
    onRequestStart: (started) => {
      controller = started;
      aborted ??= beforeSend();
      if (aborted === undefined) onSent();
      else started.abort(aborted);
    },
    onResponseStart: (_controller, code, received) => {
      if (code < 200) return; // informational, the response follows
      statusCode = code;
      headers = received;
    },
    onResponseData: (_controller, chunk) => {
      if (!discardResponse || statusCode >= 300) chunks.push(chunk);
    },
    onResponseEnd: () => {
      try {
        resolve({ statusCode, headers, text: decode(chunks, headers['content-encoding']) });
      } catch (error) {
        reject(error); // the body is not in the encoding of its header
      }
    },
    onResponseError: (_controller, error) => reject(error),
  });
  return {
    response: promise,
    abort: (reason) => {
      aborted ??= reason;
      controller?.abort(reason);
      reject(reason); // also while it still waits for a connection
    },
  };
}

function decode(chunks: Buffer[], encoding: string | string[] | undefined): string {
  const [first, ...more] = chunks;
  const body = first === undefined ? Buffer.alloc(0) : more.length === 0 ? first : Buffer.concat(chunks);
  return (encoding === 'gzip' ? gunzipSync(body) : body).toString('utf8');
}

/** The whole body; a Status in protobuf as its JSON. @throws {TransportError} when the connection breaks before the end. */
export async function readText(response: Dispatcher.ResponseData): Promise<string> {
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of decompressed(response)) chunks.push(chunk as Uint8Array);
  } catch (error) {
    throw asTransportError(error, 'reading the response');
  }
  const bytes = Buffer.concat(chunks);
  if (!isProtobuf(response.headers['content-type'])) return bytes.toString('utf8');
  const status = readStatus(bytes);
  return status === undefined ? '' : JSON.stringify(status);
}

/**
 * The body as it comes.
 *
 * @param signal - of the request: its reason is thrown once it aborts.
 * @param onEnd - called once reading has ended, for any reason.
 * @throws {TransportError} when the connection breaks before the end.
 */
export async function* readChunks(
  response: Dispatcher.ResponseData,
  signal: AbortSignal,
  onEnd: () => void,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of decompressed(response)) yield chunk as Uint8Array;
  } catch (error) {
    signal.throwIfAborted();
    throw asTransportError(error, 'reading the response');
  } finally {
    onEnd();
    response.body.on('error', () => undefined).destroy();
  }
}

/** A broken connection breaks the result too, which `pipe` alone would not do. */
function decompressed({ headers, body }: Dispatcher.ResponseData): Readable {
  if (headers['content-encoding'] !== 'gzip') return body;
  const gunzip = createGunzip();
  pipeline(body, gunzip, () => undefined); // the reader of the result gets the failure
  return gunzip;
}

/**
 * The object in a successful response.
 *
 * @param options.mayBeEmpty - a response without a body is an empty object, since nobody needs what is in it.
 * @throws {ApiError} for a failure behind a 2xx code, {TransportError} with code `BAD_JSON`.
 */
export function parseResponse<T>(text: string, info: RequestInfo, { mayBeEmpty }: { mayBeEmpty: boolean }): T {
  if (text === '' && mayBeEmpty) return {} as T;
  const parsed = parsedJson(text) as (T & Partial<Status>) | null | undefined;
  if (typeof parsed !== 'object' || parsed === null) {
    const what = `${info.verb} ${info.resource.plural}: the response is ${text === '' ? 'empty' : 'not a JSON object'}`;
    // Without the cause: its message quotes the response, which may be a Secret.
    throw new TransportError(what, { code: 'BAD_JSON' });
  }
  if (parsed.kind === 'Status' && parsed.status !== undefined && parsed.status !== 'Success') {
    throw errorFromStatus(parsed, info);
  }
  return parsed;
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Aborts once nothing has come for too long while something was waited for. */
export class Silence {
  readonly #clock: Clock;
  readonly #maxMs: number | undefined;
  readonly #what: string;
  readonly #controller = new AbortController();
  #timer: Timer | undefined;

  /**
   * @param options.maxMs - in milliseconds; undefined: never.
   * @param options.what - what is waited for, in the error message.
   */
  constructor(options: { clock: Clock; maxMs: number | undefined; what: string }) {
    this.#clock = options.clock;
    this.#maxMs = options.maxMs;
    this.#what = options.what;
  }

  /** Its reason is a `TransportError` with code `TIMEOUT`. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Something is waited for from now on. */
  begin(): void {
    this.end();
    const maxMs = this.#maxMs;
    if (maxMs === undefined) return;
    const message = `no byte of ${this.#what} for ${maxMs} ms`;
    this.#timer = this.#clock.after(maxMs, () =>
      this.#controller.abort(new TransportError(message, { code: 'TIMEOUT' })),
    );
  }

  /** It came, or nothing is waited for any more. */
  end(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** The chunks of a body, each of which is waited for only while somebody reads. */
  async *guarded(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      this.begin();
      for await (const chunk of body) {
        this.end();
        yield chunk;
        this.begin();
      }
    } finally {
      this.end();
    }
  }
}
