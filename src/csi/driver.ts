import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { CsiConnection } from './connection.ts';
import { type CsiCalls, csiCalls } from './csi-calls.ts';
import { loadCsi } from './csi-proto.ts';
import { type DriverCapabilities, readCapabilities, readDriverInfo } from './driver-info.ts';
import { probeUntilReady } from './probe.ts';
import type { CallSettings } from './unary-call.ts';

export interface DriverOptions {
  /** Socket address: an absolute path or `unix:///path`. */
  address: string;
  /** Deadline of each call, in milliseconds. */
  timeoutMs: number;
  clock: Clock;
  logger: Logger;
  /** Each finished call, with the driver's name as soon as it is known. */
  onCall?: (call: Parameters<NonNullable<CallSettings['onCall']>>[0] & { driverName: string | undefined }) => void;
  /** After a lost connection another driver answers on the socket: nothing that is known of the old one holds. */
  onNameChanged: (error: Error) => void;
  /** Ends every wait. */
  signal: AbortSignal;
}

/**
 * The driver behind a socket, ready to work: connected, probed, its name and capabilities known. When it goes away it
 * is waited for and asked anew; meanwhile calls fail with code Unavailable.
 */
export class Driver implements AsyncDisposable {
  readonly name: string;
  readonly vendorVersion: string;
  readonly calls: CsiCalls;
  readonly #connection: CsiConnection;
  #capabilities: DriverCapabilities;

  private constructor(parts: {
    name: string;
    vendorVersion: string;
    calls: CsiCalls;
    connection: CsiConnection;
    capabilities: DriverCapabilities;
  }) {
    this.name = parts.name;
    this.vendorVersion = parts.vendorVersion;
    this.calls = parts.calls;
    this.#connection = parts.connection;
    this.#capabilities = parts.capabilities;
  }

  /**
   * Waits for the driver, for as long as it takes, and asks who it is and what it can do.
   *
   * @throws {CsiAddressError} at once for an address that is no unix socket; {Error} when the probe or a question
   * fails; the signal's reason when it aborts.
   */
  static async connect(options: DriverOptions): Promise<Driver> {
    const { address, timeoutMs, clock, logger, signal, onCall } = options;
    let driver: Driver | undefined;
    const connection = new CsiConnection({
      address,
      clock,
      logger,
      onReconnected: () => void driver?.askAnew(options),
    });
    try {
      const calls = csiCalls(loadCsi(), {
        connection,
        timeoutMs,
        clock,
        logger,
        onCall: (call) => onCall?.({ ...call, driverName: driver?.name }),
      });
      await connection.connect({ limitMs: Infinity, signal });
      await probeUntilReady({ calls, clock, logger, signal });
      const { name, vendorVersion } = await readDriverInfo(calls, { signal });
      logger.info({ driver: name, vendorVersion }, 'Detected CSI driver');
      const capabilities = await readCapabilities(calls, { signal });
      driver = new Driver({ name, vendorVersion, calls, connection, capabilities });
      return driver;
    } catch (error) {
      await connection[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** What the driver last said it can do. */
  get capabilities(): DriverCapabilities {
    return this.#capabilities;
  }

  /** Whether calls can reach the driver now. */
  get connected(): boolean {
    return this.#connection.state === 'ready';
  }

  /** The driver listens again: it may be another version, or another driver. Never rejects. */
  private async askAnew({ clock, logger, signal, onNameChanged }: DriverOptions): Promise<void> {
    try {
      await probeUntilReady({ calls: this.calls, clock, logger, signal });
      const { name } = await readDriverInfo(this.calls, { signal });
      if (name !== this.name) {
        onNameChanged(
          new Error(`the driver on ${this.#connection.target} changed its name from ${this.name} to ${name}`),
        );
        return;
      }
      this.#capabilities = await readCapabilities(this.calls, { signal });
    } catch (error) {
      if (!signal.aborted) logger.warn({ err: error }, 'The driver came back and could not be asked; its calls go on');
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection[Symbol.asyncDispose]();
  }
}
