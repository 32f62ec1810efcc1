/** The driver's socket: one connection that is watched, so that a loss is noticed at once, and replaced. */
import { stat } from 'node:fs/promises';
import { joinSignals, untilAborted } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { grpcCodes } from './call-error.ts';
import { connectionProblem, csiTarget, socketPath } from './csi-address.ts';
import { type CallEnd, GrpcSession, type UnaryRequest } from './grpc-session.ts';

/** Max size of a response, in bytes, unless the caller expects larger ones. */
const receiveLimitBytes = 4 * 1024 * 1024;
/** Pause between attempts while the socket is missing or refuses, in milliseconds. */
const retryPauseMs = 1000;
/** A call that ends by itself this short before the connection does has ended with it, in milliseconds. */
const brokenSlackMs = 250;
/** Max time of one attempt to connect, in milliseconds: what listens need not speak HTTP/2. */
const attemptLimitMs = 20_000;

/** The driver did not listen in time. The message is the reference's. */
export class ConnectTimeoutError extends Error {
  override readonly name = 'ConnectTimeoutError';

  constructor() {
    super('context deadline exceeded');
  }
}

export interface CsiConnectionOptions {
  /** Socket address: an absolute path or `unix:///path`. */
  address: string;
  /** Max size of a response, in bytes. Default 4 MiB. */
  maxResponseBytes?: number | undefined;
  logger: Logger;
  clock: Clock;
  /** Called at once when the driver is gone. Calls in flight fail by themselves. */
  onLost?: () => void;
  /** Called when a connection whose end broke no call was replaced at once. */
  onRenewed?: () => void;
  /** Called when the driver listens again after a loss. It may be another one. */
  onReconnected?: () => void;
}

export interface ConnectOptions {
  /** Ends the wait. */
  signal?: AbortSignal;
  /** Maximum wait in milliseconds; default 30,000; `Infinity` waits for as long as it takes. */
  limitMs?: number;
  /** Milliseconds between notices while waiting; default 5,000. The first comes at once. */
  noticeIntervalMs?: number;
}

/** `new`: never connected. `renewing`: the connection has ended, which may be no loss. `lost`: connected before, trying again. */
export type ConnectionState = 'new' | 'ready' | 'renewing' | 'lost' | 'closed';

/**
 * A connection to one driver over a unix socket: no TLS, no proxy, no pings, no idle limit, no retries of calls.
 * After the first success it reconnects by itself, about once a second, until it is disposed.
 *
 * Servers close connections that are idle or old (GOAWAY). That is no loss where the connection had held, no call broke with it, and the
 * first dial reaches the same listener at once. Each process that listens makes a socket file of its own, so the file tells.
 */
export class CsiConnection implements AsyncDisposable {
  /** The address as `unix:///path`, for log lines. */
  readonly target: string;
  readonly #maxResponseBytes: number;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #onLost: () => void;
  readonly #onRenewed: () => void;
  readonly #onReconnected: () => void;
  readonly #closing = new AbortController();
  #state: ConnectionState = 'new';
  /** The present connection, or the last one. */
  #session: GrpcSession | undefined;
  /** Resolves at the next change of the state, or attempt to connect that fails. */
  #changed = Promise.withResolvers<undefined>();
  #reconnecting: Promise<void> | undefined;
  /** The socket file of the present connection; undefined: unknown. */
  #listener: string | undefined;
  #brokenAtMs = -Infinity;

  /** @throws {CsiAddressError} when the address is no unix socket. Nothing is dialled yet. */
  constructor(options: CsiConnectionOptions) {
    const nothing = (): void => undefined;
    this.target = csiTarget(options.address);
    this.#logger = options.logger;
    this.#clock = options.clock;
    this.#onLost = options.onLost ?? nothing;
    this.#onRenewed = options.onRenewed ?? nothing;
    this.#onReconnected = options.onReconnected ?? nothing;
    this.#maxResponseBytes = options.maxResponseBytes ?? receiveLimitBytes;
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Whether a call made now is sent at once. Becomes false with the connection, which is earlier than `onLost`. */
  get isReady(): boolean {
    return this.#state === 'ready' && this.#session?.takesCalls === true;
  }

  /** A call ended without a response, neither cancelled nor at its deadline. */
  callBroke(): void {
    this.#brokenAtMs = this.#clock.monotonicMs();
  }

  /** Resolves once an end of the connection was either repaired or is a loss; at once while there is none. */
  async settled(): Promise<void> {
    while (this.#state === 'renewing' || (this.#state === 'ready' && !this.isReady)) await this.#changed.promise;
  }

  /**
   * Makes one call: on a connection that is ready, the request is on its way when this returns. Else it waits for the next attempt to
   * connect, and ends as not sent if that fails.
   *
   * @throws {Error} after disposal.
   */
  async call(request: UnaryRequest): Promise<CallEnd> {
    if (!this.isReady) await this.#nextAttempt(request);
    if (this.#state === 'closed') throw new Error('the connection to the driver is closed');
    if (this.#session === undefined || !this.isReady) {
      return { code: grpcCodes.Unavailable, details: 'the CSI driver is not connected', sent: false };
    }
    return await this.#session.call(request);
  }

  async #nextAttempt({ timeoutMs, signal }: Pick<UnaryRequest, 'timeoutMs' | 'signal'>): Promise<void> {
    using joined = joinSignals([signal], { clock: this.#clock, timeoutMs });
    const attempt = this.#state === 'lost' ? this.#changed.promise : this.settled();
    await untilAborted(attempt, joined.signal).catch(() => undefined);
  }

  /**
   * Waits until the driver listens; logs that at once and then regularly.
   *
   * @throws {ConnectTimeoutError} after `limitMs`; the signal's reason when it aborts. The connection may then be
   * tried again or disposed.
   */
  async connect(options: ConnectOptions = {}): Promise<void> {
    const { signal, limitMs = 30_000, noticeIntervalMs = 5000 } = options;
    this.#logger.info({ address: this.target }, 'Connecting');
    const now = (): number => this.#clock.monotonicMs();
    const end = now() + limitMs;
    const ended = new AbortController();
    using joined = joinSignals([signal, this.#closing.signal, ended.signal], { clock: this.#clock });
    const connected = this.#dial(joined.signal);
    connected.catch(() => undefined); // after the limit nobody waits for it
    try {
      for (let nextNotice = now() + noticeIntervalMs; ;) {
        const pause = this.#clock
          .sleep(Math.min(nextNotice, end) - now(), { signal: joined.signal })
          .then(() => undefined);
        this.#session = await Promise.race([connected, pause]);
        if (this.#session !== undefined) break;
        if (now() >= end) throw new ConnectTimeoutError();
        if (now() < nextNotice) continue;
        this.#logger.info({ address: this.target, err: await this.#problem() }, 'Still connecting');
        nextNotice = now() + noticeIntervalMs;
      }
    } finally {
      ended.abort(new Error('the wait has ended'));
    }
    this.#listener = await this.#socketFile();
    this.#setState('ready');
    this.#reconnecting = this.#keepConnected(this.#session);
  }

  /** Calls in flight fail. Safe to repeat. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#state === 'closed') return;
    this.#setState('closed');
    this.#closing.abort();
    this.#session?.close();
    await this.#reconnecting;
  }

  #problem(): Promise<string> {
    return connectionProblem(socketPath(this.target));
  }

  #setState(state: ConnectionState): void {
    if (this.#state === 'closed') return;
    this.#state = state;
    this.#notifyChanged();
  }

  #notifyChanged(): void {
    this.#changed.resolve(undefined);
    this.#changed = Promise.withResolvers();
  }

  async #socketFile(): Promise<string | undefined> {
    try {
      const { dev, ino, birthtimeNs } = await stat(socketPath(this.target), { bigint: true });
      return [dev, ino, birthtimeNs].join();
    } catch {
      return undefined;
    }
  }

  /** Dials about once a second until the driver listens. @throws the signal's reason when it aborts. */
  async #dial(signal: AbortSignal, onFailure?: () => void): Promise<GrpcSession> {
    for (;;) {
      const startedAtMs = this.#clock.monotonicMs();
      const session = await this.#dialOnce(signal, attemptLimitMs);
      if (session !== undefined) return session;
      onFailure?.();
      this.#notifyChanged();
      await this.#clock.sleep(startedAtMs + retryPauseMs - this.#clock.monotonicMs(), { signal });
    }
  }

  /** Undefined: it failed. @throws the signal's reason when it aborts. */
  async #dialOnce(signal: AbortSignal, limitMs: number): Promise<GrpcSession | undefined> {
    using joined = joinSignals([signal], { clock: this.#clock, timeoutMs: limitMs });
    const options = { maxResponseBytes: this.#maxResponseBytes, clock: this.#clock, signal: joined.signal };
    const session = await GrpcSession.open(socketPath(this.target), options).catch(() => undefined);
    if (signal.aborted) session?.close();
    signal.throwIfAborted();
    return session;
  }

  /** Ends with the connection. */
  async #keepConnected(first: GrpcSession): Promise<void> {
    const { signal } = this.#closing;
    try {
      for (let session = first; ;) session = await this.#nextAfter(session, signal);
    } catch (error) {
      if (signal.aborted) return;
      this.#setState('lost');
      this.#logger.error({ err: error, address: this.target }, 'Watching the connection failed');
    }
  }

  /** Waits until a connection ends, and for the one that replaces it. */
  async #nextAfter(session: GrpcSession, signal: AbortSignal): Promise<GrpcSession> {
    const since = this.#clock.monotonicMs();
    await untilAborted(session.retired, signal);
    const renewed = await this.#renew(since);
    if (renewed !== undefined) return renewed;
    this.#setState('lost');
    this.#logger.error({ address: this.target }, 'Lost connection');
    this.#onLost();
    // At once after a connection that held; a driver that drops each one gets about one a second.
    await this.#clock.sleep(since + retryPauseMs - this.#clock.monotonicMs(), { signal });
    const next = await this.#dial(signal, () => {
      void this.#problem().then((err) => this.#logger.debug({ address: this.target, err }, 'Still connecting'));
    });
    this.#listener = await this.#socketFile();
    this.#session = next;
    this.#setState('ready');
    this.#logger.info({ address: this.target }, 'Connected again');
    this.#onReconnected();
    return next;
  }

  /** Dials once after a connection has ended that had held since `since`. Undefined: the driver counts as lost. */
  async #renew(since: number): Promise<GrpcSession | undefined> {
    const endedAtMs = this.#clock.monotonicMs();
    if (endedAtMs - since < retryPauseMs) return undefined;
    this.#setState('renewing');
    const session = await this.#dialOnce(this.#closing.signal, retryPauseMs);
    const listener = await this.#socketFile();
    const isSame = listener !== undefined && listener === this.#listener;
    if (session === undefined || !isSame || this.#brokenAtMs >= endedAtMs - brokenSlackMs) {
      session?.close();
      return undefined;
    }
    this.#session = session;
    this.#onRenewed(); // first, so that no call is made before it
    this.#setState('ready');
    this.#logger.debug({ address: this.target }, 'The driver closed the connection, connected again at once');
    return session;
  }
}
