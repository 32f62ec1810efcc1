/** The driver's socket: one gRPC channel whose connectivity state is watched, so that a loss is noticed at once. */
import { Client, connectivityState, credentials, type ChannelOptions } from '@grpc/grpc-js';
import { untilAborted } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { connectionProblem } from './connection-problem.ts';
import { csiTarget, socketPath } from './csi-address.ts';
import { adjustHttp2Connect } from './http2-connect.ts';

/** Max size of a response, in bytes, unless the caller expects larger ones. */
const receiveLimitBytes = 4 * 1024 * 1024;
/** Pause between attempts while the socket is missing or refuses, in milliseconds. */
const retryPauseMs = 1000;
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
  /** Called at once when an established connection is gone. Calls in flight fail by themselves. */
  onLost?: () => void;
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

/** `new`: never connected. `lost`: connected before, trying again. */
export type ConnectionState = 'new' | 'ready' | 'lost' | 'closed';

/**
 * A connection to one driver over a unix socket: no TLS, no proxy, no pings, no idle limit, no retries of calls.
 * After the first success it reconnects by itself, about once a second, until it is disposed.
 */
export class CsiConnection implements AsyncDisposable {
  /** The address as `unix:///path`, for log lines. */
  readonly target: string;
  /** For `unaryCall`: calls made while the driver is disconnected fail with code Unavailable. */
  readonly client: Client;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #onLost: () => void;
  readonly #onReconnected: () => void;
  readonly #closing = new AbortController();
  #state: ConnectionState = 'new';
  #reconnecting: Promise<void> | undefined;

  /** @throws {CsiAddressError} when the address is no unix socket. Nothing is dialled yet. */
  constructor(options: CsiConnectionOptions) {
    const nothing = (): void => undefined;
    this.target = csiTarget(options.address);
    this.#logger = options.logger;
    this.#clock = options.clock;
    this.#onLost = options.onLost ?? nothing;
    this.#onReconnected = options.onReconnected ?? nothing;
    adjustHttp2Connect();
    this.client = new Client(this.target, credentials.createInsecure(), {
      ...channelOptions,
      ...(options.maxResponseBytes !== undefined && { 'grpc.max_receive_message_length': options.maxResponseBytes }),
    });
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Whether a call made now is sent at once. Becomes false with the connection, which is earlier than `onLost`. */
  get isReady(): boolean {
    return this.#state === 'ready' && this.#channelState(false) === connectivityState.READY;
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
    this.#state = 'ready';
    this.#watchForLoss();
  }

  /** Closes the channel; calls in flight fail. Safe to repeat. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
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
        this.#logger.error({ err: error, address: this.target }, 'Watching the connection failed');
      }
    });
  }

  async #reconnectForEver(): Promise<void> {
    const { signal } = this.#closing;
    for (;;) {
      const since = this.#clock.monotonicMs();
      while (this.#dial()) await untilAborted(this.#stateChange(Infinity), signal);
      this.#state = 'lost';
      this.#logger.error({ address: this.target }, 'Lost connection');
      this.#onLost();
      // At once after a connection that held; a driver that drops each one gets about one a second.
      await this.#clock.sleep(since + retryPauseMs - this.#clock.monotonicMs(), { signal });
      while (!(await this.#readyWithin(retryPauseMs, signal))) {
        this.#logger.debug({ address: this.target, err: await this.#problem() }, 'Still connecting');
      }
      this.#state = 'ready';
      this.#logger.info({ address: this.target }, 'Connected again');
      this.#onReconnected();
    }
  }
}
