/**
 * HTTP to the API server: a pool of HTTP/1.1 connections for single requests and, apart from it, so that no number of watches can
 * delay a write, one of HTTP/2 for lists and watches, which PING frames check. Sent again is what the
 * server asks for (429, and 5xx except after a POST, with Retry-After), and a GET whose connection broke.
 */
import type { Dispatcher } from 'undici';
import { joinSignals, untilAborted } from '../../base/abort.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { NotPermittedError } from '../../base/permit.ts';
import { type SpanAttributes, traced } from '../../base/tracing.ts';
import { exchange, type HttpResponse, parseResponse, readChunks, readText, Silence } from './exchange.ts';
import { ApiError, ForbiddenError, TransportError } from './api-error.ts';
import { isProtobuf } from '../protobuf/envelope.ts';
import { ConnectionPools } from './connection-pools.ts';
import { errorFromResponse } from './error-from-status.ts';
import { MissingPermissions } from './missing-permissions.ts';
import type { RequestCredentials, RequestHeaders } from '../credentials/credentials.ts';
import { RequestLanes } from './request-lanes.ts';
import { asTransportError, retryPauseMs } from './request-failure.ts';
import type { RequestObservation, RequestOptions, RequestPause, StreamedResponse, StreamOptions } from './request.ts';
import { Throttle, type TokenBucket } from './token-bucket.ts';

export interface TransportOptions {
  credentials: RequestCredentials;
  userAgent: string;
  clock: Clock;
  logger: Logger;
  /** Client-side rate limit; absent: none, the server's priority and fairness decides. Watches never wait for it. */
  rateLimit?: TokenBucket | undefined;
  /** Max time from sending a single request to the end of its response, in milliseconds. Default 30,000. */
  requestTimeoutMs?: number;
  /**
   * Max connections for single requests; further requests wait up to a minute for one. Lists and watches have
   * connections of their own. Default: no limit, each request that finds none idle opens one.
   */
  maxConnections?: number | undefined;
  onRequest?: ((observation: RequestObservation) => void) | undefined;
  /** Called before each pause after which a request is sent again. */
  onPause?: ((pause: RequestPause) => void) | undefined;
  /** Reports forbidden requests; several transports may share one. Default: one of its own, which only logs. */
  missingPermissions?: MissingPermissions | undefined;
}

/** Max attempts after the first, whatever the reason. */
const maxRetries = 10;
/** How long a request may wait for a connection, in milliseconds; it was never sent then. */
const maxUnsentMs = 60_000;

/** The connections to one API server, with their credentials. Dispose it at the end. */
export class Transport implements AsyncDisposable {
  readonly missingPermissions: MissingPermissions;
  readonly #options: TransportOptions;
  readonly #origin: string;
  readonly #pathPrefix: string;
  readonly #fence = new AbortController();
  readonly #pools: ConnectionPools;
  readonly #throttle: Throttle | undefined;
  readonly #lanes: RequestLanes;
  /** What aborts each request under way, with when it was sent in monotonic milliseconds; `Infinity`: not yet. */
  readonly #underWay = new Map<(reason: Error) => void, () => number>();
  readonly #warnings = new Set<string>();

  constructor(options: TransportOptions) {
    this.#options = options;
    this.missingPermissions = options.missingPermissions ?? new MissingPermissions(options);
    const { credentials, maxConnections, rateLimit } = options;
    this.#origin = credentials.serverUrl.origin;
    this.#pathPrefix = credentials.serverUrl.pathname.replace(/\/$/, '');
    const onDead = (reason: Error, suspectSinceMs: number): void => this.#abandon(reason, suspectSinceMs);
    this.#pools = new ConnectionPools({ credentials, maxConnections, clock: options.clock, onDead });
    this.#lanes = new RequestLanes(options.clock);
    this.#throttle = rateLimit && new Throttle({ ...options, rateLimit });
  }

  /**
   * From now on no request leaves the process, and those under way are aborted: called when a lease is lost. Cannot be
   * undone.
   */
  fence(reason: Error): void {
    this.#fence.abort(reason);
    this.#abandon(reason, Infinity);
  }

  /** Aborts what was sent before a moment in monotonic milliseconds; with `Infinity` all. */
  #abandon(reason: Error, sentBeforeMs: number): void {
    for (const [abort, sentAtMs] of this.#underWay) {
      if (sentAtMs() < sentBeforeMs || sentBeforeMs === Infinity) abort(reason);
    }
  }

  /** Aborted once no request leaves the process any more. */
  get fenced(): AbortSignal {
    return this.#fence.signal;
  }

  /** As `ConnectionPools.distrust`. */
  distrust(openedBeforeMs: number): void {
    this.#pools.distrust(openedBeforeMs);
  }

  /**
   * Sends one request and reads the whole JSON response, which may be empty after a DELETE, or if it is discarded.
   *
   * @throws {ApiError} for a failure response of the server, {TransportError} when there is no response, or the
   * signal's reason.
   */
  async request<T>(options: RequestOptions): Promise<T> {
    const { verb, resource } = options.info;
    const exchange = async (): Promise<string> => {
      const response = await this.#exchange(options);
      return response.statusCode < 300 ? response.text : this.#failure(response, response.text, options);
    };
    const send = (): Promise<string> => this.#retrying(options, exchange);
    const attributes = (): SpanAttributes => objectAttributes(options.info);
    const text = await traced(`${verb} ${resource.plural}`, send, { isCall: true, attributes });
    const mayBeEmpty = options.discardResponse === true || options.method === 'DELETE';
    return parseResponse<T>(text, options.info, { mayBeEmpty });
  }

  /** Sends a GET and streams the body: lists and watches. */
  async stream(options: StreamOptions): Promise<StreamedResponse> {
    const { watch, signal, maxSilenceMs, info } = options;
    const { clock } = this.#options;
    const silence = new Silence({ clock, maxMs: maxSilenceMs, what: `the ${info.resource.plural} ${info.verb}` });
    const joined = joinSignals([signal, this.#fence.signal, silence.signal], { clock });
    try {
      const response = await this.#retrying(
        options,
        async () => {
          const opened = await this.#open(options, joined.signal, silence);
          if (opened.statusCode < 300) return opened;
          silence.begin(); // the body of a failure is short: all of it must arrive within the time for one chunk
          const text = await readText(opened).finally(() => silence.end());
          return this.#failure(opened, text, options);
        },
        { retry: !watch, limited: !watch },
      );
      const chunks = readChunks(response, joined.signal, () => joined[Symbol.dispose]());
      const body = maxSilenceMs === undefined ? chunks : silence.guarded(chunks);
      return { body, isProtobuf: isProtobuf(response.headers['content-type']) };
    } catch (error) {
      joined[Symbol.dispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.fence(new Error('the Kubernetes client is closed'));
    await this.#pools.destroy();
  }

  async #retrying<T>(
    options: RequestOptions,
    attempt: () => Promise<T>,
    how: { retry?: boolean; limited?: boolean } = {},
  ): Promise<T> {
    const { clock, credentials } = this.#options;
    const { permit } = options;
    let renewed = false;
    for (let retries = 0; ;) {
      options.signal?.throwIfAborted();
      this.#fence.signal.throwIfAborted();
      const throttle = how.limited === false ? undefined : this.#throttle;
      if (throttle !== undefined) await this.#untilFenced(options, (signal) => throttle.wait(options, signal));
      while (permit?.isValid === false) {
        await this.#untilFenced(options, (signal) => permit.renewed(signal));
        options.recheck?.();
      }
      const { generation } = credentials;
      const tls = credentials.tls();
      try {
        return await attempt();
      } catch (error) {
        options.signal?.throwIfAborted();
        this.#fence.signal.throwIfAborted();
        if (error instanceof NotPermittedError) continue;
        if (error instanceof ApiError && error.code === 401 && !renewed) {
          renewed = true;
          credentials.renew(generation);
          continue;
        }
        if (error instanceof TransportError) {
          credentials.recheckTls();
          const isRepeatable = !error.sent || options.method === 'GET';
          // the files have changed: at once, as after a 401
          if (isRepeatable && credentials.tls() !== tls && retries < maxRetries) {
            retries++;
            continue;
          }
        }
        const pauseMs = how.retry === false ? undefined : retryPauseMs(error, options.method);
        if (pauseMs === undefined || retries >= maxRetries) throw error;
        retries++;
        const { verb, resource } = options.info;
        this.#options.onPause?.({ error, pauseMs, verb, resource: resource.plural });
        await this.#untilFenced(options, (signal) => clock.sleep(pauseMs, { signal }));
      }
    }
  }

  /** Ends the wait when the request is aborted or the transport is fenced. */
  async #untilFenced<T>({ signal }: RequestOptions, wait: (signal: AbortSignal) => Promise<T>): Promise<T> {
    using ended = joinSignals([signal, this.#fence.signal], { clock: this.#options.clock });
    return await wait(ended.signal);
  }

  /** One attempt at a unary request, which first waits for its place; only then its time begins. */
  async #exchange(options: RequestOptions): Promise<HttpResponse> {
    const send = (): Promise<HttpResponse> =>
      this.#observed(options, (request, onSent) => this.#sendUnary(request, options, onSent));
    if (options.newConnection === true) return await send();
    const place = this.#lanes.enter(options);
    try {
      const { admitted } = place;
      if (admitted !== undefined) {
        await this.#untilFenced(options, (signal) => untilAborted(admitted, signal));
        options.recheck?.();
      }
      return await send();
    } finally {
      place.leave();
    }
  }

  async #sendUnary(
    request: Dispatcher.DispatchOptions,
    options: RequestOptions,
    onSent: () => void,
  ): Promise<HttpResponse> {
    const { clock, requestTimeoutMs = 30_000 } = this.#options;
    const { signal, permit, discardResponse = false, newConnection = false } = options;
    this.#fence.signal.throwIfAborted();
    signal?.throwIfAborted();
    let timer: Timer | undefined;
    let sentAtMs = Infinity;
    const { response, abort } = exchange(newConnection ? this.#pools.single : this.#pools.unary, request, {
      discardResponse,
      // headers and connection may have taken long
      beforeSend: () => (permit?.isValid === false ? new NotPermittedError() : undefined),
      onSent: () => {
        onSent();
        timer?.cancel();
        sentAtMs = clock.monotonicMs();
        timer = clock.after(requestTimeoutMs, () => {
          this.#pools.distrust(sentAtMs);
          abort(new TransportError(`no response within ${requestTimeoutMs} ms`, { code: 'TIMEOUT' }));
        });
      },
    });
    // over a connection that was idle it is sent by now
    timer ??= clock.after(maxUnsentMs, () =>
      abort(
        new TransportError(`no connection was free within ${maxUnsentMs} ms, the request was not sent`, {
          code: 'TIMEOUT',
        }),
      ),
    );
    const onAbort = (): void => abort(signal?.reason as Error);
    signal?.addEventListener('abort', onAbort, { once: true });
    this.#underWay.set(abort, () => sentAtMs);
    try {
      return await response;
    } finally {
      this.#underWay.delete(abort);
      timer.cancel();
      signal?.removeEventListener('abort', onAbort);
    }
  }

  /** One attempt at a request whose response is streamed. */
  #open(options: RequestOptions, signal: AbortSignal, silence: Silence): Promise<Dispatcher.ResponseData> {
    return this.#observed(options, async (request, onSent) => {
      onSent();
      const pool = options.newConnection === true ? this.#pools.single : this.#pools.streaming;
      silence.begin();
      try {
        return await pool.request({ ...request, signal });
      } finally {
        silence.end();
      }
    });
  }

  async #observed<T extends { statusCode: number; headers: HttpResponse['headers'] }>(
    options: RequestOptions,
    send: (request: Dispatcher.DispatchOptions, onSent: () => void) => Promise<T>,
  ): Promise<T> {
    const { clock, credentials, onRequest } = this.#options;
    const { method, info } = options;
    const startedMs = clock.monotonicMs();
    let code = '<error>';
    let sent = false;
    let date: string | undefined;
    try {
      const request = {
        origin: this.#origin,
        path: this.#pathPrefix + options.path + queryText(options.query),
        method,
        headers: await this.#headers(options),
        body: options.body === undefined ? null : JSON.stringify(options.body),
        // otherwise undici closes the connection after a DELETE with a body, and the next request takes a TLS handshake
        ...(method === 'DELETE' && { reset: false }),
      };
      const response = await send(request, () => {
        sent = true;
      });
      code = String(response.statusCode);
      date = single(response.headers['date']);
      this.#warnOnce(response.headers['warning']);
      return response;
    } catch (error) {
      if (error instanceof NotPermittedError) throw error;
      throw asTransportError(error, `${method} ${credentials.serverUrl.host}${options.path}`, sent);
    } finally {
      const seconds = (clock.monotonicMs() - startedMs) / 1000;
      onRequest?.({ verb: info.verb, resource: info.resource.plural, method, code, seconds, date });
    }
  }

  async #headers(options: RequestOptions): Promise<RequestHeaders> {
    const { credentials, userAgent } = this.#options;
    const { body, contentType, accept } = options;
    const given = credentials.headers();
    const authentication =
      given instanceof Promise ? await this.#untilFenced(options, (signal) => untilAborted(given, signal)) : given;
    const headers: RequestHeaders = {
      ...authentication,
      accept: accept ?? 'application/json',
      'user-agent': userAgent,
    };
    if (!credentials.disableCompression) headers['accept-encoding'] = 'gzip';
    if (body !== undefined) headers['content-type'] = contentType ?? 'application/json';
    return headers;
  }

  #failure(response: Pick<HttpResponse, 'statusCode' | 'headers'>, body: string, { info }: RequestOptions): never {
    const error = errorFromResponse(response.statusCode, body, info, retryAfter(response.headers['retry-after']));
    if (error instanceof ForbiddenError) this.missingPermissions.report(error);
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

function single(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : header?.[0];
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

function objectAttributes({ resource, namespace, name }: RequestOptions['info']): SpanAttributes {
  return {
    'k8s.object.kind': resource.kind,
    ...(namespace !== undefined && { 'k8s.object.namespace': namespace }),
    ...(name !== undefined && { 'k8s.object.name': name }),
  };
}
