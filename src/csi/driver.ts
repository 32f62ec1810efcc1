import { isDeepStrictEqual } from 'node:util';
import { joinSignals, untilAborted } from '../base/abort.ts';
import type { Clock, Timer } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { CsiCallError, grpcCodes } from './call-error.ts';
import { CsiConnection } from './connection.ts';
import { CallProgress } from './call-progress.ts';
import { type CsiCalls, csiCalls } from './csi-calls.ts';
import { loadCsi } from './csi-proto.ts';
import {
  type DriverCapabilities,
  type NodeInfo,
  probeUntilReady,
  readCapabilities,
  readDriverInfo,
  readNodeInfo,
} from './driver-info.ts';
import { replacedPlugin } from './migration/in-tree-plugins.ts';
import type { CallObserver, CallOptions, CallSettings } from './unary-call.ts';

export interface DriverOptions {
  /** Socket address: an absolute path or `unix:///path`. */
  address: string;
  /** Deadline of each call, in milliseconds. */
  timeoutMs: number;
  /** Max size of a response, in bytes. Default 4 MiB, as in the Go sidecar. */
  maxResponseBytes?: number;
  /** Query NodeGetInfo, too: for node deployment. Default false. */
  askNodeInfo?: boolean;
  clock: Clock;
  logger: Logger;
  /** Each finished call, with the driver's name as soon as it is known. */
  onCall?: (call: Parameters<NonNullable<CallSettings['onCall']>>[0] & { driverName: string | undefined }) => void;
  /** Follow each call from its beginning. Default none. */
  observers?: readonly CallObserver[];
  /** Max milliseconds that a lost driver may stay disconnected. Default: no limit. */
  awayLimitMs?: number;
  /**
   * The process cannot go on: another driver responds on the socket, or the driver stayed disconnected for longer than
   * the limit. Called once.
   */
  onGone: (error: Error) => void;
  /** Ends every wait. */
  signal: AbortSignal;
}

/** Pause between two attempts to query a driver that reconnected, in milliseconds. */
const queryPauseMs = 1000;

/**
 * The driver behind a socket: connected, probed, its name and capabilities known. When the connection is lost it is
 * re-established and the driver queried again; until then calls about volumes fail with code Unavailable, so that none
 * reaches another driver. When the driver closes a connection that is idle or old, such calls wait for the next one, on which it
 * must respond to the queries as before.
 */
export class Driver implements AsyncDisposable {
  readonly name: string;
  readonly calls: CsiCalls;
  /** Which of the calls the driver has read. */
  readonly progress: CallProgress;
  readonly #unguarded: CsiCalls;
  readonly #connection: CsiConnection;
  #vendorVersion: string;
  #capabilities: DriverCapabilities;
  #nodeInfo: NodeInfo | undefined;
  readonly #reconnectListeners = new Set<() => void>();
  /** Whether name and capabilities are those of the driver behind the present connection. */
  #known = true;
  /** Queries the driver behind a renewed connection; undefined once it is known whether it is the same. */
  #recheck: Promise<void> | undefined;
  /** Aborts when the connection is lost; a new one for each connection. */
  #lost = new AbortController();
  /** Runs while the driver is disconnected, if that has a limit. */
  #awayTimer: Timer | undefined;

  private constructor(parts: {
    name: string;
    vendorVersion: string;
    calls: CsiCalls;
    progress: CallProgress;
    connection: CsiConnection;
    capabilities: DriverCapabilities;
    nodeInfo: NodeInfo | undefined;
  }) {
    this.name = parts.name;
    this.#vendorVersion = parts.vendorVersion;
    this.#unguarded = withUnsentRetry(parts.calls);
    this.calls = withUnsentRetry(this.#guarded(parts.calls));
    this.progress = parts.progress;
    this.#connection = parts.connection;
    this.#capabilities = parts.capabilities;
    this.#nodeInfo = parts.nodeInfo;
  }

  /**
   * Waits for the driver without a limit, then queries its name and capabilities.
   *
   * @throws {CsiAddressError} at once for an address that is no unix socket; {Error} when the probe or a query
   * fails; the signal's reason when it aborts.
   */
  static async connect(options: DriverOptions): Promise<Driver> {
    const { address, timeoutMs, maxResponseBytes, askNodeInfo = false, clock, logger, signal, onCall } = options;
    let driver: Driver | undefined;
    let driverName: string | undefined;
    const connection = new CsiConnection({
      address,
      maxResponseBytes,
      clock,
      logger,
      onLost: () => {
        progress.disconnected();
        driver?.onLost(options);
      },
      onRenewed: () => {
        progress.disconnected();
        driver?.onRenewed(options);
      },
      onReconnected: () => void driver?.queryAgain(options),
    });
    const progress: CallProgress = new CallProgress({
      clock,
      check: () => checks.getPluginInfo().catch(() => undefined),
    });
    const settings = { connection, timeoutMs, clock, logger, progress };
    // neither in the metrics nor traced, as it is for no volume
    const checks = csiCalls(loadCsi(), settings);
    try {
      const calls = csiCalls(loadCsi(), {
        ...settings,
        onCall: (call) => onCall?.({ ...call, driverName }),
        observers: options.observers,
      });
      await connection.connect({ limitMs: Infinity, signal });
      const queries = withUnsentRetry(calls);
      await probeUntilReady({ calls: queries, clock, logger, signal });
      const { name, vendorVersion } = await readDriverInfo(queries, { signal });
      driverName = name;
      logger.info({ driver: name, vendorVersion }, 'Detected CSI driver');
      const plugin = replacedPlugin(name);
      if (plugin !== undefined) {
        logger.info({ plugin: plugin.name }, 'Supports migration from in-tree plugin');
        await probeUntilReady({ calls: queries, clock, logger, signal }); // the calls before it will not be in the metrics
      }
      const capabilities = await readCapabilities(queries, { signal });
      const nodeInfo = askNodeInfo ? await readNodeInfo(queries, { signal }) : undefined;
      driver = new Driver({ name, vendorVersion, calls, progress, connection, capabilities, nodeInfo });
      return driver;
    } catch (error) {
      await connection[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The version that the driver last reported. */
  get vendorVersion(): string {
    return this.#vendorVersion;
  }

  /** The capabilities that the driver last reported. */
  get capabilities(): DriverCapabilities {
    return this.#capabilities;
  }

  /** The driver's last NodeGetInfo; undefined without `askNodeInfo`. */
  get nodeInfo(): NodeInfo | undefined {
    return this.#nodeInfo;
  }

  /** Whether calls about volumes can reach the driver, now or once a connection that it closed is replaced. */
  get connected(): boolean {
    return this.#known && (this.#connection.state === 'ready' || this.#connection.state === 'renewing');
  }

  /** Calls the listener each time the driver is back after a loss, or has changed, and was queried, until the result is disposed. */
  onReconnected(listener: () => void): Disposable {
    this.#reconnectListeners.add(listener);
    return { [Symbol.dispose]: () => void this.#reconnectListeners.delete(listener) };
  }

  private onLost({ awayLimitMs = Infinity, clock, onGone }: DriverOptions): void {
    this.#known = false;
    this.#lost.abort(new Error('the driver went away'));
    this.#lost = new AbortController();
    if (awayLimitMs === Infinity) return;
    // A driver that reconnects and is lost again before it was queried still counts as disconnected.
    this.#awayTimer ??= clock.after(awayLimitMs, () => onGone(new Error('Lost connection to CSI driver, exiting')));
  }

  /** The connection was replaced after the driver had closed it: listeners are not called unless the driver has changed. */
  private onRenewed(options: DriverOptions): void {
    const recheck = this.#isUnchanged(options).then((unchanged) => {
      if (this.#recheck === recheck) this.#recheck = undefined;
      if (unchanged) return;
      this.onLost(options);
      void this.queryAgain(options);
    });
    this.#recheck = recheck;
  }

  /** Whether the driver responds to the queries as before; also true once it is lost again, as that is handled elsewhere. Never rejects. */
  async #isUnchanged({ askNodeInfo = false, clock, logger, signal }: DriverOptions): Promise<boolean> {
    using joined = joinSignals([signal, this.#lost.signal], { clock });
    const until = { signal: joined.signal };
    try {
      const { name, vendorVersion } = await readDriverInfo(this.#unguarded, until);
      if (name !== this.name || vendorVersion !== this.#vendorVersion) return false;
      if (!isDeepStrictEqual(await readCapabilities(this.#unguarded, until), this.#capabilities)) return false;
      return !askNodeInfo || isDeepStrictEqual(await readNodeInfo(this.#unguarded, until), this.#nodeInfo);
    } catch (error) {
      if (!joined.signal.aborted) logger.debug({ err: error }, 'The driver could not be queried on its new connection');
      return joined.signal.aborted;
    }
  }

  #setConnected(): void {
    this.#known = true;
    this.#awayTimer?.cancel();
    this.#awayTimer = undefined;
  }

  /**
   * The driver listens again: it may be another version, or another driver. Queries it until it responds or is lost
   * again. Never rejects.
   */
  private async queryAgain({ askNodeInfo = false, clock, logger, signal, onGone }: DriverOptions): Promise<void> {
    using joined = joinSignals([signal, this.#lost.signal], { clock });
    const until = { signal: joined.signal };
    for (;;) {
      try {
        await probeUntilReady({ calls: this.#unguarded, clock, logger, ...until });
        const { name, vendorVersion } = await readDriverInfo(this.#unguarded, until);
        if (name !== this.name) {
          this.#awayTimer?.cancel();
          onGone(new Error(`the driver on ${this.#connection.target} changed its name from ${this.name} to ${name}`));
          return;
        }
        const capabilities = await readCapabilities(this.#unguarded, until);
        if (askNodeInfo) this.#nodeInfo = await readNodeInfo(this.#unguarded, until);
        this.#capabilities = capabilities;
        this.#vendorVersion = vendorVersion;
        this.#setConnected();
        logger.info({ driver: name, vendorVersion }, 'The driver came back');
        break;
      } catch (error) {
        if (joined.signal.aborted) return;
        logger.warn({ err: error }, 'The driver came back but could not be queried, retrying');
        await clock.sleep(queryPauseMs, until).catch(() => undefined); // the next attempt sees the signal
      }
    }
    for (const listener of [...this.#reconnectListeners]) {
      try {
        listener();
      } catch (error) {
        logger.error({ err: error }, 'A listener failed after the driver came back');
      }
    }
  }

  /** The calls that must not reach a driver whose name is not verified. */
  #guarded(calls: CsiCalls): CsiCalls {
    const checked = async <T>(call: () => Promise<T>, { signal, recheck }: CallOptions = {}): Promise<T> => {
      let hasWaited = false;
      while (!this.#takesCalls && this.connected && signal?.aborted !== true) {
        await this.#settled(signal);
        hasWaited = true;
      }
      // From here to the HTTP/2 stream nothing waits for an event: a connection that is ready now takes the request.
      if (!this.#takesCalls)
        throw new CsiCallError(grpcCodes.Unavailable, 'the CSI driver is not connected', { sent: false });
      if (hasWaited) recheck?.();
      return await call();
    };
    return {
      ...calls,
      createVolume: (request, options) => checked(() => calls.createVolume(request, options), options),
      deleteVolume: (request, options) => checked(() => calls.deleteVolume(request, options), options),
      getCapacity: (request, options) => checked(() => calls.getCapacity(request, options), options),
      listVolumes: (request, options) => checked(() => calls.listVolumes(request, options), options),
      controllerGetVolume: (request, options) => checked(() => calls.controllerGetVolume(request, options), options),
    };
  }

  get #takesCalls(): boolean {
    return this.#known && this.#recheck === undefined && this.#connection.isReady;
  }

  /** Waits until the connection is either replaced, with the same driver behind it, or lost. */
  async #settled(signal: AbortSignal | undefined): Promise<void> {
    const settled = Promise.all([this.#connection.settled(), this.#recheck]);
    await (signal === undefined ? settled : untilAborted(settled, signal).catch(() => undefined));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#awayTimer?.cancel();
    this.progress[Symbol.dispose]();
    await this.#connection[Symbol.asyncDispose]();
  }
}

/**
 * Retries a call once that the driver has not begun to process, such as one that it received after its GOAWAY: the next connection takes
 * it. See gRPC, "Transparent Retries".
 */
function withUnsentRetry(calls: CsiCalls): CsiCalls {
  const repeated = Object.entries(calls).map(([name, call]: [string, (...given: object[]) => Promise<unknown>]) => [
    name,
    async (...given: object[]): Promise<unknown> => {
      try {
        return await call(...given);
      } catch (error) {
        if (!(error instanceof CsiCallError) || error.sent || error.codeName !== 'Unavailable') throw error;
        const options: CallOptions | undefined = given.at(-1);
        options?.recheck?.();
        return await call(...given);
      }
    },
  ]);
  return Object.fromEntries(repeated) as CsiCalls;
}
