/** A CSI driver over a real unix socket that answers by script and remembers every call. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Server,
  ServerCredentials,
  status,
  type handleUnaryCall,
  type Metadata,
  type ServerOptions,
} from '@grpc/grpc-js';
import { loadCsi } from '../../../src/csi/csi-proto.ts';
import { grpcService } from '../grpc-service.ts';
import { patienceMs } from '../patience.ts';

/** One call as it arrived. */
export interface RecordedCall {
  /** Method name without service, such as `CreateVolume`. */
  method: string;
  request: Record<string, unknown>;
  metadata: Metadata;
  /** The `:authority` it was sent to. */
  host: string;
  /** When the caller stops waiting: a date, or infinity. */
  deadline: Date | number;
  /** Aborts when the caller goes away. */
  cancelled: AbortSignal;
}

/** A failure to answer with: gRPC code and text. */
export class DriverFailure extends Error {
  readonly code: status;

  constructor(code: status, details: string) {
    super(details);
    this.code = code;
  }
}

/** A message, a failure, or something that makes one of them later. */
export type Answer = object | DriverFailure | ((call: RecordedCall) => object | Promise<object>);

export interface RecordingDriverOptions {
  /** Default `d.example.com`. */
  name?: string | undefined;
  /** Default CONTROLLER_SERVICE. */
  plugin?: string[] | undefined;
  /** Default CREATE_DELETE_VOLUME. */
  controller?: (string | number)[] | undefined;
  /** Socket to listen on; default: a new one in a temporary folder that goes with the driver. */
  socketPath?: string | undefined;
  /** Of the gRPC server, such as the age at which it closes a connection. */
  serverOptions?: ServerOptions;
}

const csi = loadCsi();

/** Capability answers that a driver may change while it runs. */
export class RecordingDriver implements AsyncDisposable {
  readonly socketPath: string;
  readonly calls: RecordedCall[] = [];
  readonly #server: Server;
  readonly #folder: string | undefined;
  readonly #defaults = new Map<string, Answer>();
  readonly #script = new Map<string, Answer[]>();
  readonly #waiters = new Set<() => void>();

  private constructor(options: RecordingDriverOptions, socketPath: string, folder: string | undefined) {
    this.socketPath = socketPath;
    this.#folder = folder;
    this.#server = new Server(options.serverOptions);
    const { Identity, Controller, Node } = csi.v1;
    for (const service of [Identity, Controller, Node].map(grpcService)) {
      const methods = Object.keys(service);
      this.#server.addService(service, Object.fromEntries(methods.map((method) => [method, this.#handler(method)])));
    }
    const { name = 'd.example.com', plugin = ['CONTROLLER_SERVICE'], controller = ['CREATE_DELETE_VOLUME'] } = options;
    this.always('Probe', { ready: { value: true } });
    this.always('GetPluginInfo', { name, vendor_version: '1.2.3' });
    this.always('GetPluginCapabilities', { capabilities: plugin.map((type) => ({ service: { type } })) });
    this.always('ControllerGetCapabilities', { capabilities: controller.map((type) => ({ rpc: { type } })) });
    this.always('DeleteVolume', {});
    this.always('CreateVolume', ({ request }: RecordedCall) => {
      const { capacity_range, volume_content_source } = request as {
        capacity_range?: { required_bytes?: string };
        volume_content_source?: object;
      };
      return {
        volume: {
          volume_id: 'vol-1',
          capacity_bytes: capacity_range?.required_bytes ?? 0,
          content_source: volume_content_source,
        },
      };
    });
  }

  static async start(options: RecordingDriverOptions = {}): Promise<RecordingDriver> {
    const folder = options.socketPath === undefined ? await mkdtemp(join(tmpdir(), 'csi-driver-')) : undefined;
    const driver = new RecordingDriver(options, options.socketPath ?? join(folder ?? '', 'csi.sock'), folder);
    await new Promise<void>((resolve, reject) => {
      driver.#server.bindAsync(`unix://${driver.socketPath}`, ServerCredentials.createInsecure(), (error) =>
        error === null ? resolve() : reject(error),
      );
    });
    return driver;
  }

  /** What a method answers whenever its script is empty. */
  always(method: string, answer: Answer): void {
    this.#defaults.set(method, answer);
  }

  /** Answers for the next calls of a method, in order. */
  next(method: string, ...answers: Answer[]): void {
    this.#script.set(method, [...(this.#script.get(method) ?? []), ...answers]);
  }

  /** Calls of one method so far. */
  callsOf(method: string): RecordedCall[] {
    return this.calls.filter((call) => call.method === method);
  }

  /** Resolves once a method has been called `count` times. */
  async called(method: string, count = 1): Promise<void> {
    while (this.callsOf(method).length < count) {
      await new Promise<void>((resolve) => this.#waiters.add(resolve));
    }
  }

  /** Drops all connections and stops listening, as a crash would. */
  kill(): void {
    this.#server.forceShutdown();
  }

  /** Asks the clients to leave their connections (GOAWAY), as at an age, and lets the calls under way end. */
  retireConnections(): void {
    this.#server.drain(`unix://${this.socketPath}`, patienceMs);
  }

  /** Stops listening and lets the calls under way end, as a program does that is stopped. */
  stop(): void {
    this.#server.tryShutdown(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill();
    if (this.#folder !== undefined) await rm(this.#folder, { recursive: true, force: true });
  }

  #handler(method: string): handleUnaryCall<Record<string, unknown>, object> {
    return (call, callback) => {
      const gone = new AbortController();
      call.on('cancelled', () => gone.abort());
      const recorded = {
        method,
        request: call.request,
        metadata: call.metadata,
        host: call.getHost(),
        deadline: call.getDeadline(),
        cancelled: gone.signal,
      };
      this.calls.push(recorded);
      for (const wake of this.#waiters) wake();
      this.#waiters.clear();
      this.#answer(recorded).then(
        (message) => callback(null, message),
        (error: unknown) => {
          const failure = error instanceof DriverFailure ? error : new DriverFailure(status.UNKNOWN, String(error));
          callback({ code: failure.code, details: failure.message });
        },
      );
    };
  }

  /** Async, so that what a script throws becomes a rejection. */
  async #answer(call: RecordedCall): Promise<object> {
    const answer = this.#script.get(call.method)?.shift() ?? this.#defaults.get(call.method);
    if (answer === undefined) throw new DriverFailure(status.UNIMPLEMENTED, `${call.method} is not implemented`);
    if (answer instanceof DriverFailure) throw answer;
    return await (typeof answer === 'function'
      ? (answer as (call: RecordedCall) => Promise<object>)(call)
      : Promise.resolve(answer));
  }
}
