/**
 * One HTTP/2 connection to the driver, and the unary calls on it (gRPC, "gRPC over HTTP2"). grpc-js has no options for two things that
 * drivers need: header values that begin or end with a blank, as in `Exception calling application: `, which Node would drop, and
 * status texts of up to 64 KiB.
 */
import http2 from 'node:http2';
import net from 'node:net';
import { promisify } from 'node:util';
import { gunzip, inflate } from 'node:zlib';
import type { Clock } from '../base/clock.ts';
import { grpcCodes } from './call-error.ts';

/**
 * Maximum length of a driver's status text, in bytes and percent-encoded: the max header value that Node's
 * HTTP/2 accepts. A longer one breaks the connection, with all calls on it.
 */
const maxStatusTextBytes = 64 * 1024;
/** Room for the other headers of a status, as HTTP/2 counts them (RFC 9113, "SETTINGS_MAX_HEADER_LIST_SIZE"). */
const otherHeadersBytes = 256;
/** A reset this short before our deadline was the driver's side of the same deadline, in milliseconds. */
const deadlineSlackMs = 250;
/** In front of a message: whether it is compressed, and its length. */
const prefixBytes = 5;

export interface UnaryRequest {
  /** Such as `/csi.v1.Controller/CreateVolume`. */
  readonly path: string;
  readonly message: Buffer;
  /** Further headers; keys in lower case. */
  readonly metadata?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Resets the call. */
  readonly signal?: AbortSignal | undefined;
  /** Called with the first headers of the driver. */
  readonly onResponse?: () => void;
}

/** How a call ended: with a message, or with a status. */
export type CallEnd = { readonly message: Buffer } | FailedCall;

export interface FailedCall {
  readonly message?: undefined;
  readonly code: number;
  /** The driver's own words, or ours in those of Go's client, which users and dashboards know. */
  readonly details: string;
  /** False: the driver has not begun to process the request. Default true. */
  readonly sent?: boolean;
  /** The driver ended the call, and its status or response did not arrive. Default false. */
  readonly isLost?: boolean;
  readonly cause?: unknown;
}

const deadlineExceeded = { code: grpcCodes.DeadlineExceeded, details: 'context deadline exceeded' };
const connectionBroke = { code: grpcCodes.Unavailable, details: 'error reading from server: EOF' };
const lostStatus = {
  code: grpcCodes.Internal,
  details: `the driver's status did not arrive: it is longer than ${maxStatusTextBytes / 1024} KiB, or the driver reset the call`,
  isLost: true,
};

/** A connection over a unix socket. It ends by itself when the driver ends it. */
export class GrpcSession {
  /** Resolves once no further call can be made: the driver ends the connection, at once or after the calls under way (GOAWAY). */
  readonly retired: Promise<void>;
  readonly #session: http2.ClientHttp2Session;
  readonly #maxResponseBytes: number;
  readonly #clock: Pick<Clock, 'monotonicMs'>;

  private constructor(
    session: http2.ClientHttp2Session,
    options: { maxResponseBytes: number; clock: Pick<Clock, 'monotonicMs'> },
  ) {
    this.#session = session;
    this.#maxResponseBytes = options.maxResponseBytes;
    this.#clock = options.clock;
    this.retired = new Promise((resolve) => session.once('goaway', () => resolve()).once('close', resolve));
  }

  /**
   * Connects, and waits for the settings of the other side: they show that it speaks HTTP/2.
   *
   * @throws {Error} when nobody listens, or when the signal aborts.
   */
  static async open(
    socketPath: string,
    options: { maxResponseBytes: number; clock: Pick<Clock, 'monotonicMs'>; signal: AbortSignal },
  ): Promise<GrpcSession> {
    options.signal.throwIfAborted();
    const session = http2.connect('http://localhost', {
      createConnection: () => net.connect(socketPath),
      strictFieldWhitespaceValidation: false,
      settings: { enablePush: false, maxHeaderListSize: maxStatusTextBytes + otherHeadersBytes },
      maxSessionMemory: Number.MAX_SAFE_INTEGER, // Node would refuse calls beside a large response
    });
    const opened = new GrpcSession(session, options);
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const abort = (): void => session.destroy();
    options.signal.addEventListener('abort', abort, { once: true });
    session.once('remoteSettings', () => resolve(undefined));
    session.on('error', reject).once('close', () => reject(new Error('the connection was closed')));
    try {
      await promise;
      return opened;
    } finally {
      options.signal.removeEventListener('abort', abort);
    }
  }

  get takesCalls(): boolean {
    return !this.#session.closed && !this.#session.destroyed;
  }

  /** Breaks the calls under way. */
  close(): void {
    this.#session.destroy();
  }

  /** Makes one call: the request is on its way when this returns. Never rejects. */
  call(request: UnaryRequest): Promise<CallEnd> {
    const { path, message, metadata, timeoutMs, signal } = request;
    let stream: http2.ClientHttp2Stream;
    try {
      stream = this.#session.request({
        ...metadata,
        ':method': 'POST',
        ':path': path,
        ':authority': 'localhost',
        te: 'trailers',
        'content-type': 'application/grpc',
        'user-agent': 'csi-provisioner',
        'grpc-accept-encoding': 'identity,deflate,gzip',
        'grpc-timeout': timeoutText(timeoutMs),
      });
    } catch (error) {
      const { message: details } = error as Error;
      return Promise.resolve({ code: grpcCodes.Unavailable, details, sent: false, cause: error });
    }
    const startMs = this.#clock.monotonicMs();
    return new Promise((resolve) => {
      const end = (how: CallEnd | Promise<CallEnd>): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', cancel);
        resolve(how);
      };
      const reset = (how: CallEnd): void => {
        end(how);
        stream.close(http2.constants.NGHTTP2_CANCEL);
      };
      const cancel = (): void => reset({ code: grpcCodes.Canceled, details: 'context canceled' });
      const timer = setTimeout(() => reset(deadlineExceeded), Math.min(timeoutMs, maxTimerMs));
      signal?.addEventListener('abort', cancel, { once: true });
      const response = new Response(this.#maxResponseBytes);
      stream.on('response', (headers: http2.IncomingHttpHeaders, flags: number) => {
        request.onResponse?.();
        response.headers = headers;
        if ((flags & http2.constants.NGHTTP2_FLAG_END_STREAM) !== 0) response.trailers = headers;
      });
      stream.on('trailers', (trailers: http2.IncomingHttpHeaders) => {
        response.trailers = trailers;
      });
      stream.on('data', (chunk: Buffer) => {
        response.add(chunk);
        if (response.refusal !== undefined) reset(response.refusal);
      });
      let failure: Error | undefined;
      stream.on('error', (error: Error) => {
        failure = error;
      });
      stream.on('end', () => {
        if (response.trailers !== undefined) end(response.read());
      });
      stream.on('close', () => {
        if (response.trailers !== undefined || response.httpFailure !== undefined) end(response.read());
        else if (this.#clock.monotonicMs() - startMs >= timeoutMs - deadlineSlackMs) end(deadlineExceeded);
        else end({ ...this.#withoutStatus(stream.rstCode, failure, response), cause: failure });
      });
      const prefix = Buffer.alloc(prefixBytes);
      prefix.writeUInt32BE(message.length, 1);
      stream.end(Buffer.concat([prefix, message]));
    });
  }

  /** What a call that ended without a status means. */
  #withoutStatus(resetCode: number, failure: Error | undefined, response: Response): FailedCall {
    // a header that is too long alone breaks the connection, with all calls on it
    if (failure?.message === 'Protocol error') return lostStatus;
    if (this.#session.destroyed) return connectionBroke;
    switch (resetCode) {
      case http2.constants.NGHTTP2_NO_ERROR:
      case http2.constants.NGHTTP2_INTERNAL_ERROR: // by a driver that knows the limit (Go)
      case http2.constants.NGHTTP2_ENHANCE_YOUR_CALM: // by Node: all headers together are too long
        return lostStatus;
      case http2.constants.NGHTTP2_REFUSED_STREAM:
        // not begun, as when the driver closes the connection (RFC 9113, "REFUSED_STREAM")
        return { ...resetBy(resetCode, grpcCodes.Unavailable), sent: response.headers !== undefined };
      case http2.constants.NGHTTP2_CANCEL:
        return resetBy(resetCode, grpcCodes.Canceled);
      case http2.constants.NGHTTP2_INADEQUATE_SECURITY:
        return resetBy(resetCode, grpcCodes.PermissionDenied);
      default:
        return resetBy(resetCode, grpcCodes.Internal);
    }
  }
}

/** Maximum of a Node.js timer. */
const maxTimerMs = 2_147_483_647;

/** gRPC over HTTP2, "Timeout": at most eight digits. */
function timeoutText(ms: number): string {
  const whole = Math.ceil(ms);
  return whole < 1e8 ? `${whole}m` : `${Math.min(Math.ceil(whole / 1000), 99_999_999)}S`;
}

function resetBy(resetCode: number, code: number): FailedCall {
  return { code, details: `stream terminated by RST_STREAM with error code: ${resetCode}` };
}

/** gRPC, "HTTP to gRPC Status Code Mapping". */
const codesOfHttp: Readonly<Record<number, number>> = {
  400: grpcCodes.Internal,
  401: grpcCodes.Unauthenticated,
  403: grpcCodes.PermissionDenied,
  404: grpcCodes.Unimplemented,
  429: grpcCodes.Unavailable,
  502: grpcCodes.Unavailable,
  503: grpcCodes.Unavailable,
  504: grpcCodes.Unavailable,
};

const decompressors: Readonly<
  Record<string, (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>>
> = { gzip: promisify(gunzip), deflate: promisify(inflate) };

/** What has arrived of a response. */
class Response {
  headers: http2.IncomingHttpHeaders | undefined;
  trailers: http2.IncomingHttpHeaders | undefined;
  /** Why the rest is not read. */
  refusal: FailedCall | undefined;
  readonly #maxBytes: number;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  /** Of the message; undefined: not known yet. */
  #length: number | undefined;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The failure that an HTTP status without one of gRPC stands for, such as that of a web server. */
  get httpFailure(): FailedCall | undefined {
    const httpStatus = this.headers?.[':status'] as number | undefined;
    if (httpStatus === undefined || (httpStatus === 200 && this.trailers === undefined)) return undefined;
    const code = codesOfHttp[httpStatus] ?? grpcCodes.Unknown;
    return { code, details: `unexpected HTTP status code received from server: ${httpStatus}` };
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes < prefixBytes) return;
    this.#length ??= this.#joined().readUInt32BE(1);
    if (this.#length > this.#maxBytes && this.trailers === undefined) {
      this.refusal = this.httpFailure ?? this.#tooLarge(`${this.#length} vs ${this.#maxBytes}`);
    } else if (this.#bytes > prefixBytes + this.#length) {
      this.refusal = { code: grpcCodes.Internal, details: 'the response of the driver has more than one message' };
    }
  }

  /** The result, once headers, message and trailers have arrived. */
  async read(): Promise<CallEnd> {
    const { 'grpc-status': status, 'grpc-message': text = '' } = this.trailers ?? {};
    if (this.refusal !== undefined) return this.refusal;
    if (typeof status !== 'string') return this.httpFailure ?? lostStatus;
    if (status !== '0')
      return { code: /^\d+$/.test(status) ? Number(status) : grpcCodes.Unknown, details: decoded(text) };
    if (this.#length === undefined || this.#bytes < prefixBytes + this.#length) {
      return { code: grpcCodes.Internal, details: 'the response of the driver has no message' };
    }
    const bytes = this.#joined();
    const message = bytes.subarray(prefixBytes);
    return bytes[0] === 0 ? { message } : await this.#decompressed(message);
  }

  #joined(): Buffer {
    const [first = Buffer.alloc(0), ...more] = this.#chunks;
    return more.length === 0 ? first : Buffer.concat(this.#chunks);
  }

  async #decompressed(message: Buffer): Promise<CallEnd> {
    const encoding = String(this.headers?.['grpc-encoding']);
    const decompress = decompressors[encoding];
    if (decompress === undefined) {
      return { code: grpcCodes.Internal, details: 'grpc: failed to decompress the received message' };
    }
    try {
      return { message: await decompress(message, { maxOutputLength: this.#maxBytes }) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') {
        return this.#tooLarge(`decompressed vs ${this.#maxBytes}`);
      }
      return { code: grpcCodes.Internal, details: `Failed to decompress ${encoding}-encoded message`, cause: error };
    }
  }

  /** The driver did what was requested, and its response is not read. */
  #tooLarge(sizes: string): FailedCall {
    return { code: grpcCodes.ResourceExhausted, details: `Received message larger than max (${sizes})`, isLost: true };
  }
}

/** gRPC over HTTP2, "Status-Message": what cannot be decoded is kept. */
function decoded(text: string | string[]): string {
  const whole = String(text);
  try {
    return decodeURIComponent(whole);
  } catch {
    return whole;
  }
}
