/** The driver's socket: one gRPC channel whose connectivity state is watched, so that a loss is noticed at once. */
import { stat } from 'node:fs/promises';
import { Client, connectivityState, credentials, type ChannelOptions } from '@grpc/grpc-js';
import { untilAborted } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { connectionProblem } from './connection-problem.ts';
import { csiTarget, socketPath } from './csi-address.ts';
import { adjustedHttp2 } from './http2-connect.ts';

/** Max size of a response, in bytes, unless the caller expects larger ones. */
const receiveLimitBytes = 4 * 1024 * 1024;
/** Pause between attempts while the socket is missing or refuses, in milliseconds. */
const retryPauseMs = 1000;
/** A call that ends by itself this short before the connection does has ended with it, in milliseconds. */
const brokenSlackMs = 250;
/** Maximum of a Node.js timer: grpc-js knows no "never". */
const neverMs = 2_147_483_647;

const channelOptions: ChannelOptions = {
  'grpc.default_authority': 'localhost',
  'grpc.max_receive_message_length': receiveLimitBytes,
  'grpc.max_send_message_length': -1,
  'grpc.client_idle_timeout_ms': neverMs,
  'grpc.initial_reconnect_backoff_ms': retryPauseMs,
  'grpc.max_reconnect_backoff_ms': retryPauseMs,
  'grpc.enable_retries': 0,
  'grpc.enable_channelz': 0, // nobody asks for these statistics
  'grpc.enable_http_proxy': 0,
  'grpc.service_config_disable_resolution': 1,
  'grpc.use_local_subchannel_pool': 1,
};

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
  /** For `unaryCall`: calls made while the driver is disconnected fail with code Unavailable. */
  readonly client: Client;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #onLost: () => void;
  readonly #onRenewed: () => void;
  readonly #onReconnected: () => void;
  readonly #closing = new AbortController();
  #state: ConnectionState = 'new';
  #stateChanged = Promise.withResolvers<undefined>();
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
    this.client = new Client(this.target, credentials.createInsecure(), {
      ...channelOptions,
      ...adjustedHttp2(),
      ...(options.maxResponseBytes !== undefined && { 'grpc.max_receive_message_length': options.maxResponseBytes }),
    });
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Whether a call made now is sent at once. Becomes false with the connection, which is earlier than `onLost`. */
  get isReady(): boolean {
    return this.#state === 'ready' && this.#isChannelReady;
  }

  /** A call ended without a response, neither cancelled nor at its deadline. */
  callBroke(): void {
    this.#brokenAtMs = this.#clock.monotonicMs();
  }

  /** Resolves once an end of the connection was either repaired or is a loss; at once while there is none. */
  async settled(): Promise<void> {
    while (this.#state === 'renewing' || (this.#state === 'ready' && !this.#isChannelReady)) {
      await this.#stateChanged.promise;
    }
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
    let nextNotice = now() + noticeIntervalMs;
    while (!(await this.#readyWithin(Math.min(retryPauseMs, nextNotice - now(), end - now()), signal))) {
      if (now() >= end) throw new ConnectTimeoutError();
      if (now() >= nextNotice) {
        this.#logger.info({ address: this.target, err: await this.#problem() }, 'Still connecting');
        nextNotice = now() + noticeIntervalMs;
      }
    }
    this.#listener = await this.#socketFile();
    this.#setState('ready');
    this.#watchForLoss();
  }

  /** Closes the channel; calls in flight fail. Safe to repeat. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#state === 'closed') return;
    this.#setState('closed');
    this.#closing.abort();
    this.client.close();
    await this.#reconnecting;
  }

  /** True once the channel is ready; false when `ms` passed without it. */
  async #readyWithin(ms: number, signal?: AbortSignal): Promise<boolean> {
    const end = this.#clock.monotonicMs() + ms;
    while (!this.#dial()) {
      const left = end - this.#clock.monotonicMs();
      if (left <= 0) return false;
      const changed = this.#stateChange(left);
      await (signal === undefined ? changed : untilAborted(changed, signal));
    }
    return true;
  }

  #problem(): Promise<string> {
    return connectionProblem(socketPath(this.target));
  }

  /** Makes an idle channel dial; true when it is ready already. */
  #dial(): boolean {
    return this.#channelState(true) === connectivityState.READY;
  }

  get #isChannelReady(): boolean {
    return this.#channelState(false) === connectivityState.READY;
  }

  #setState(state: ConnectionState): void {
    if (this.#state === 'closed') return;
    this.#state = state;
    this.#stateChanged.resolve(undefined);
    this.#stateChanged = Promise.withResolvers();
  }

  async #socketFile(): Promise<string | undefined> {
    try {
      const { dev, ino, birthtimeNs } = await stat(socketPath(this.target), { bigint: true });
      return [dev, ino, birthtimeNs].join();
    } catch {
      return undefined;
    }
  }

  #channelState(dial: boolean): connectivityState {
    return this.client.getChannel().getConnectivityState(dial);
  }

  /** Resolves at the next state change, or after `ms`. */
  #stateChange(ms: number): Promise<void> {
    const channel = this.client.getChannel();
    return new Promise((resolve) => {
      const deadline = ms === Infinity ? Infinity : Date.now() + ms;
      channel.watchConnectivityState(channel.getConnectivityState(false), deadline, () => resolve());
    });
  }

  #watchForLoss(): void {
    this.#reconnecting = this.#reconnectForEver().catch((error: unknown) => {
      if (!this.#closing.signal.aborted) {
        this.#setState('lost');
        this.#logger.error({ err: error, address: this.target }, 'Watching the connection failed');
      }
    });
  }

  async #reconnectForEver(): Promise<void> {
    const { signal } = this.#closing;
    for (;;) {
      const since = this.#clock.monotonicMs();
      while (this.#isChannelReady) await untilAborted(this.#stateChange(Infinity), signal);
      if (await this.#renew(since)) continue;
      this.#setState('lost');
      this.#logger.error({ address: this.target }, 'Lost connection');
      this.#onLost();
      // At once after a connection that held; a driver that drops each one gets about one a second.
      await this.#clock.sleep(since + retryPauseMs - this.#clock.monotonicMs(), { signal });
      while (!(await this.#readyWithin(retryPauseMs, signal))) {
        this.#logger.debug({ address: this.target, err: await this.#problem() }, 'Still connecting');
      }
      this.#listener = await this.#socketFile();
      this.#setState('ready');
      this.#logger.info({ address: this.target }, 'Connected again');
      this.#onReconnected();
    }
  }

  /** Dials once after a connection has ended that had held since `since`. False: the driver counts as lost. */
  async #renew(since: number): Promise<boolean> {
    const endedAtMs = this.#clock.monotonicMs();
    if (endedAtMs - since < retryPauseMs) return false;
    this.#setState('renewing');
    while (!this.#dial()) {
      const left = endedAtMs + retryPauseMs - this.#clock.monotonicMs();
      if (left <= 0 || this.#channelState(false) === connectivityState.TRANSIENT_FAILURE) return false;
      await untilAborted(this.#stateChange(left), this.#closing.signal);
    }
    const listener = await this.#socketFile();
    if (listener === undefined || listener !== this.#listener) return false;
    if (this.#brokenAtMs >= endedAtMs - brokenSlackMs) return false;
    this.#onRenewed(); // first, so that no call is made before it
    this.#setState('ready');
    this.#logger.debug({ address: this.target }, 'The driver closed the connection, connected again at once');
    return true;
  }
}
