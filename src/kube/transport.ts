/**
 * HTTP to the API server: keep-alive pools of HTTP/1.1 connections, one for lists and watches without a cap, so that no
 * number of watches can hold up a write. Requests are retried only where the server says that it did nothing.
 */
import { createGunzip } from 'node:zlib';
import { pipeline, type Readable } from 'node:stream';
import { createSecureContext, type SecureContext } from 'node:tls';
import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import { joinSignals, untilAborted } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import {
  ApiError,
  errorFromAnswer,
  errorFromStatus,
  ForbiddenError,
  type RequestInfo,
  type Status,
  TransportError,
} from './api-error.ts';
import { type Answer, exchange } from './exchange.ts';
import { MissingRights } from './missing-rights.ts';
import type { RequestCredentials, RequestHeaders, TlsSettings } from './request-credentials.ts';
import type { TokenBucket } from './token-bucket.ts';

export interface RequestOptions {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path without query, already escaped. */
  path: string;
  query?: Record<string, string | number | boolean | undefined> | undefined;
  /** Sent as JSON. */
  body?: unknown;
  /** Default `application/json`. */
  contentType?: string | undefined;
  info: RequestInfo;
  signal?: AbortSignal | undefined;
}

/** One answered attempt, for metrics and tests. */
export interface RequestObservation {
  verb: string;
  resource: string;
  method: string;
  /** HTTP code, or `<error>` when there was no answer. */
  code: string;
  seconds: number;
}

export interface TransportOptions {
  credentials: RequestCredentials;
  userAgent: string;
  clock: Clock;
  logger: Logger;
  /** Client-side rate limit; absent: none, the server's priority and fairness decides. Watches never wait for it. */
  rateLimit?: TokenBucket | undefined;
  /** How long the answer to a single request may take once that was sent, in milliseconds. Default 30,000. */
  requestTimeoutMs?: number;
  /**
   * Connections for single requests; further requests wait for one, a minute at most. Lists and watches have connections
   * of their own. Default: no limit, each request that finds none idle opens one.
   */
  maxConnections?: number | undefined;
  onRequest?: ((observation: RequestObservation) => void) | undefined;
  /** Reports what the server forbids; several transports share one. Default: one of its own, which only logs. */
  missingRights?: MissingRights | undefined;
}

/** An open answer whose body is read piece by piece. Abort the signal of the request to end it. */
export interface StreamedAnswer {
  body: AsyncIterable<Uint8Array>;
}

/** Attempts after the first, whatever the reason. */
const maxRetries = 10;
/** Pause before a GET is sent again over a new connection. */
const resendPauseMs = 1000;
/** Codes of connections that broke: reset, closed before the end of the answer. */
const brokenConnection: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'Z_BUF_ERROR']);
const connectTimeoutMs = 30_000;
/** Shorter than the API server's own 90 s: a write must not go out over a connection that is being closed. */
const idleConnectionMs = 60_000;
/** How long a request may wait for a connection, in milliseconds. It was never sent then. */
const maxUnsentMs = 60_000;

/** Long waits for the rate limit are told this seldom, in milliseconds: where there is one there are hundreds. */
const throttlingNoticeMs = 10_000;

/** The connections to one API server, with their credentials. Dispose it at the end. */
export class Transport implements AsyncDisposable {
  readonly missingRights: MissingRights;
  readonly #options: TransportOptions;
  readonly #origin: string;
  readonly #pathPrefix: string;
  readonly #fence = new AbortController();
  #tls: TlsSettings;
  #pool: Dispatcher;
  /** Lists and watches have a pool of their own: it can be cut when certificates change without hurting a write. */
  #streamPool: Dispatcher;
  readonly #underWay = new Set<(reason: Error) => void>();
  readonly #warnings = new Set<string>();
  #toldThrottlingAtMs = -Infinity;

  constructor(options: TransportOptions) {
    this.#options = options;
    this.missingRights = options.missingRights ?? new MissingRights(options);
    const { credentials } = options;
    this.#origin = credentials.serverUrl.origin;
    this.#pathPrefix = credentials.serverUrl.pathname.replace(/\/$/, '');
    this.#tls = credentials.tls();
    this.#pool = makePool(this.#tls, credentials.proxyUrl, options.maxConnections ?? null);
    this.#streamPool = makePool(this.#tls, credentials.proxyUrl, null);
  }

  /**
   * From now on no request leaves the process, and those under way are cut: called when a lease is lost. Cannot be
   * undone.
   */
  fence(reason: Error): void {
    this.#fence.abort(reason);
    for (const abort of this.#underWay) abort(reason);
  }

  /** Aborted once no request leaves the process any more. */
  get fenced(): AbortSignal {
    return this.#fence.signal;
  }

  /**
   * Sends one request and reads the whole JSON answer.
   *
   * @throws {ApiError} when the server answers with a failure, {TransportError} when there is no answer, or the
   * signal's reason.
   */
  async request<T>(options: RequestOptions): Promise<T> {
    const text = await this.#retrying(options, async () => {
      const answer = await this.#exchange(options);
      return answer.statusCode < 300 ? answer.text : this.#failure(answer, answer.text, options);
    });
    return parseAnswer<T>(text, options.info);
  }

  /**
   * Sends a GET and hands out the body as it comes: lists and watches.
   *
   * @param options.watch - takes no rate-limit token and is not sent again.
   */
  async stream(options: RequestOptions & { watch: boolean }): Promise<StreamedAnswer> {
    const { watch, signal } = options;
    const joined = joinSignals([signal, this.#fence.signal], { clock: this.#options.clock });
    try {
      const answer = await this.#retrying(
        options,
        async () => {
          const opened = await this.#open(options, joined.signal);
          return opened.statusCode < 300 ? opened : this.#failure(opened, await readText(opened), options);
        },
        { retry: !watch, limited: !watch },
      );
      return { body: decoded(answer, () => joined[Symbol.dispose](), joined.signal) };
    } catch (error) {
      joined[Symbol.dispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.fence(new Error('the Kubernetes client is closed'));
    await Promise.all([this.#pool.destroy(), this.#streamPool.destroy()]);
  }

  async #retrying<T>(
    options: RequestOptions,
    attempt: () => Promise<T>,
    how: { retry?: boolean; limited?: boolean } = {},
  ): Promise<T> {
    const { rateLimit, credentials } = this.#options;
    let renewed = false;
    for (let retries = 0; ;) {
      options.signal?.throwIfAborted();
      this.#fence.signal.throwIfAborted();
      if (how.limited !== false && rateLimit !== undefined) await this.#throttle(rateLimit, options);
      const generation = credentials.generation;
      try {
        return await attempt();
      } catch (error) {
        options.signal?.throwIfAborted();
        this.#fence.signal.throwIfAborted();
        if (error instanceof ApiError && error.code === 401 && !renewed) {
          renewed = true;
          credentials.renew(generation);
          continue;
        }
        const pauseMs = how.retry === false ? undefined : retryPauseMs(error, options.method);
        if (pauseMs === undefined || retries >= maxRetries) throw error;
        retries++;
        await this.#pause(pauseMs, options.signal);
      }
    }
  }

  async #pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    const { clock } = this.#options;
    using stopped = joinSignals([signal, this.#fence.signal], { clock });
    await clock.sleep(ms, { signal: stopped.signal });
  }

  async #throttle(rateLimit: TokenBucket, { method, path, signal }: RequestOptions): Promise<void> {
    const waitedMs = rateLimit.reserve();
    if (waitedMs > 0) await this.#pause(waitedMs, signal);
    if (waitedMs <= 50) return;
    const fields = { delayMs: Math.round(waitedMs), verb: method, path };
    const { clock, logger } = this.#options;
    if (waitedMs > 1000 && clock.monotonicMs() - this.#toldThrottlingAtMs >= throttlingNoticeMs) {
      this.#toldThrottlingAtMs = clock.monotonicMs();
      logger.info(fields, 'Waited before sending request, client-side throttling');
    } else logger.debug(fields, 'Waited before sending request, client-side throttling');
  }

  /** One attempt at a unary request; its time begins when it is sent. */
  async #exchange(options: RequestOptions): Promise<Answer> {
    const { clock, requestTimeoutMs = 30_000 } = this.#options;
    const { signal } = options;
    return this.#observed(options, async (request, onSent) => {
      this.#fence.signal.throwIfAborted();
      let timer = clock.after(maxUnsentMs, () =>
        abort(
          new TransportError(`no connection was free within ${maxUnsentMs} ms, the request was not sent`, {
            code: 'TIMEOUT',
          }),
        ),
      );
      const { answer, abort } = exchange(this.#currentPools().pool, request, () => {
        onSent();
        timer.cancel();
        timer = clock.after(requestTimeoutMs, () =>
          abort(new TransportError(`no answer within ${requestTimeoutMs} ms`, { code: 'TIMEOUT' })),
        );
      });
      const cut = (): void => abort(signal?.reason as Error);
      signal?.addEventListener('abort', cut, { once: true });
      if (signal?.aborted === true) cut();
      this.#underWay.add(abort);
      try {
        return await answer;
      } finally {
        this.#underWay.delete(abort);
        timer.cancel();
        signal?.removeEventListener('abort', cut);
      }
    });
  }

  /** One attempt at a request whose answer is read as it comes. */
  #open(options: RequestOptions, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    return this.#observed(options, (request, onSent) => {
      onSent();
      return this.#currentPools().streamPool.request({ ...request, signal });
    });
  }

  async #observed<T extends { statusCode: number; headers: Answer['headers'] }>(
    options: RequestOptions,
    send: (request: Dispatcher.DispatchOptions, onSent: () => void) => Promise<T>,
  ): Promise<T> {
    const { clock, credentials, onRequest } = this.#options;
    const { method, info } = options;
    const startedMs = clock.monotonicMs();
    let code = '<error>';
    let sent = false;
    try {
      const request = {
        origin: this.#origin,
        path: this.#pathPrefix + options.path + queryText(options.query),
        method,
        headers: await this.#headers(options),
        body: options.body === undefined ? null : JSON.stringify(options.body),
      };
      const answer = await send(request, () => {
        sent = true;
      });
      code = String(answer.statusCode);
      this.#warnOnce(answer.headers['warning']);
      return answer;
    } catch (error) {
      throw transportError(error, `${method} ${credentials.serverUrl.host}${options.path}`, sent);
    } finally {
      const seconds = (clock.monotonicMs() - startedMs) / 1000;
      onRequest?.({ verb: info.verb, resource: info.resource.plural, method, code, seconds });
    }
  }

  async #headers({ body, contentType, signal }: RequestOptions): Promise<RequestHeaders> {
    const { clock, credentials, userAgent } = this.#options;
    using ended = joinSignals([signal, this.#fence.signal], { clock });
    const headers: RequestHeaders = {
      ...(await untilAborted(credentials.headers(), ended.signal)), // a plugin may take a while
      accept: 'application/json',
      'user-agent': userAgent,
    };
    if (!credentials.disableCompression) headers['accept-encoding'] = 'gzip';
    if (body !== undefined) headers['content-type'] = contentType ?? 'application/json';
    return headers;
  }

  /** The pools to use now: made anew when the certificates changed, the old connections then end. */
  #currentPools(): { pool: Dispatcher; streamPool: Dispatcher } {
    const tls = this.#options.credentials.tls();
    if (tls !== this.#tls) {
      this.#tls = tls;
      const old = { pool: this.#pool, streamPool: this.#streamPool };
      this.#pool = makePool(tls, this.#options.credentials.proxyUrl, this.#options.maxConnections ?? null);
      this.#streamPool = makePool(tls, this.#options.credentials.proxyUrl, null);
      old.pool.close().catch(() => undefined); // ends after the requests under way
      old.streamPool.destroy().catch(() => undefined); // watches break and resume over new connections
    }
    return { pool: this.#pool, streamPool: this.#streamPool };
  }

  #failure(answer: Pick<Answer, 'statusCode' | 'headers'>, body: string, { info }: RequestOptions): never {
    const error = errorFromAnswer(answer.statusCode, body, info, retryAfter(answer.headers['retry-after']));
    if (error instanceof ForbiddenError) this.missingRights.report(error);
    throw error;
  }

  #warnOnce(header: string | string[] | undefined): void {
    for (const line of typeof header === 'string' ? [header] : (header ?? [])) {
      const text = /^299 \S+ "(.*)"$/.exec(line)?.[1] ?? line;
      if (this.#warnings.has(text) || this.#warnings.size > 1000) continue;
      this.#warnings.add(text);
      this.#options.logger.warn({ warning: text }, 'The API server warns');
    }
  }
}

/** The signal bounds unary requests, the reflector bounds watches; undici's own times would cut quiet watches. */
const unbounded = { headersTimeout: 0, bodyTimeout: 0 };

function makePool(tls: TlsSettings, proxyUrl: string | undefined, connections: number | null): Dispatcher {
  const connect = { ...prepared(tls), timeout: connectTimeoutMs, keepAlive: true, keepAliveInitialDelay: 30_000 };
  const common = {
    pipelining: 1,
    allowH2: false, // HTTP/1.1 costs half the CPU
    connections,
    keepAliveTimeout: idleConnectionMs,
    keepAliveMaxTimeout: idleConnectionMs,
    ...unbounded,
  };
  return proxyUrl === undefined
    ? new Agent({ ...common, connect })
    : new ProxyAgent({ ...common, uri: proxyUrl, requestTls: connect, proxyTunnel: true }); // else one connection for all
}

/** With the certificates read once, which takes some 30 ms for a system's store, and not for each connection. */
function prepared(tls: TlsSettings): TlsSettings & { secureContext?: SecureContext } {
  const { ca, cert, key, ...others } = tls;
  try {
    return { ...others, secureContext: createSecureContext({ ca, cert, key }) };
  } catch {
    return tls; // each connection then fails with the reason
  }
}

function queryText(query: RequestOptions['query']): string {
  const parts: string[] = [];
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) parts.push(`${name}=${encodeURIComponent(value)}`);
  }
  return parts.length === 0 ? '' : `?${parts.join('&')}`;
}

function retryAfter(header: string | string[] | undefined): number | undefined {
  return typeof header === 'string' && /^\d+$/.test(header) ? Number(header) : undefined;
}

/** How long to wait before sending again; undefined when it must not be sent again. */
function retryPauseMs(error: unknown, method: string): number | undefined {
  if (error instanceof ApiError) {
    const refused = error.code === 429 || error.code >= 500;
    return refused && error.retryAfterS !== undefined ? error.retryAfterS * 1000 : undefined;
  }
  const broken = error instanceof TransportError && brokenConnection.has(error.code);
  return broken && method === 'GET' ? resendPauseMs : undefined;
}

function transportError(error: unknown, what: string, sent = true): unknown {
  if (error instanceof TransportError) {
    return new TransportError(`${what}: ${error.message}`, { code: error.code, sent, cause: error.cause });
  }
  if (!(error instanceof Error) || error instanceof ApiError || error instanceof TypeError) return error;
  if (error.name === 'AbortError') return error;
  const code = (error as NodeJS.ErrnoException).code ?? 'UNKNOWN';
  return new TransportError(`${what}: ${error.message === '' ? code : error.message}`, { code, sent, cause: error });
}

async function readText(answer: Dispatcher.ResponseData): Promise<string> {
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of unpacked(answer)) chunks.push(chunk as Uint8Array);
  } catch (error) {
    throw transportError(error, 'reading the answer');
  }
  return Buffer.concat(chunks).toString('utf8');
}

async function* decoded(
  answer: Dispatcher.ResponseData,
  letGo: () => void,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of unpacked(answer)) yield chunk as Uint8Array;
  } catch (error) {
    signal.throwIfAborted();
    throw transportError(error, 'reading the answer');
  } finally {
    letGo();
    answer.body.on('error', () => undefined).destroy();
  }
}

/** The body without its compression. A broken connection breaks it too, which `pipe` alone would not do. */
function unpacked({ headers, body }: Dispatcher.ResponseData): Readable {
  if (headers['content-encoding'] !== 'gzip') return body;
  const gunzip = createGunzip();
  pipeline(body, gunzip, () => undefined); // who reads the result hears of the failure
  return gunzip;
}

function parseAnswer<T>(text: string, info: RequestInfo): T {
  if (text === '') return {} as T;
  let parsed: T & Partial<Status>;
  try {
    parsed = JSON.parse(text) as T & Partial<Status>;
  } catch {
    // Without the cause: its message quotes the answer, which may be a Secret.
    throw new TransportError(`${info.verb} ${info.resource.plural}: the answer is no JSON`, { code: 'BAD_JSON' });
  }
  if (parsed.kind === 'Status' && parsed.status !== undefined && parsed.status !== 'Success') {
    throw errorFromStatus(parsed, info); // a failure behind a 2xx code
  }
  return parsed;
}
