/**
 * The sample CSI driver of the sandbox: volumes are directories (or sparse files) in a state directory. A peer of the
 * sidecar on the other side of a socket: for demos, for tests with injected faults, and as an example for driver
 * authors.
 */
import { lstatSync, mkdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { systemClock } from '../../src/base/clock.ts';
import type { Capabilities } from './capabilities.ts';
import type { HostpathDriver } from './hostpath-driver.ts';
import { openState } from './hostpath-state.ts';
import { PendingOperations } from './pending-operations.ts';
import type { ServedTopology } from './segments.ts';
import { hostpathServices } from './services.ts';

/** What a driver is started with; `parseFlags` makes it from a command line. */
export interface DriverOptions {
  /** Absolute. */
  socketPath: string;
  /** Made when missing. One driver at a time. */
  stateDir: string;
  driverName: string;
  /** The first is the node this process runs on; volumes can be attached to all of them. */
  nodeIds: readonly string[];
  /** Room of each topology segment, in bytes. */
  capacityBytes: bigint;
  /** Empty: no topology. */
  topology: ServedTopology;
  /** Keys that ControllerModifyVolume accepts. */
  mutableParameters: readonly string[];
  capabilities: Capabilities;
  /** Whether volume ids begin with the name of the request. */
  namedIds: boolean;
  /** How long a connection may last before the driver closes it, in milliseconds; undefined: for ever. */
  maxConnectionAgeMs: number | undefined;
  /** Whether calls go to `calls.jsonl` in the state directory. */
  callLog: boolean;
}

/** A driver that listens. */
interface RunningDriver {
  /** As a CSI address: `unix:///path.sock`. */
  readonly address: string;
  /** Ends calls in work (those that wait on a fault at once, others after a second) and removes the socket. */
  close(): Promise<void>;
}

/**
 * Starts the driver in this process.
 *
 * @throws {SocketPathError} when the socket's path is taken.
 * @throws when the state directory cannot be read.
 */
export async function startDriver(options: DriverOptions): Promise<RunningDriver> {
  const { socketPath, stateDir } = options;
  const stop = new AbortController();
  await clearSocketPath(socketPath);
  const driver: HostpathDriver = {
    ...options,
    state: openState(stateDir),
    pending: new PendingOperations(),
    reservations: new Set(),
  };
  const { maxConnectionAgeMs } = options;
  const server = new Server(
    maxConnectionAgeMs === undefined ? {} : { 'grpc.max_connection_age_ms': maxConnectionAgeMs },
  );
  const services = hostpathServices(driver, {
    faultsFile: path.join(stateDir, 'faults.json'),
    callLogFile: options.callLog ? path.join(stateDir, 'calls.jsonl') : undefined,
    clock: systemClock,
    stop: stop.signal,
  });
  for (const { definition, implementation } of services) server.addService(definition, implementation);
  const { promise: bound, resolve, reject } = Promise.withResolvers<undefined>();
  server.bindAsync(`unix:${socketPath}`, ServerCredentials.createInsecure(), (error) => {
    if (error === null) resolve(undefined);
    else reject(error);
  });
  await bound;
  return {
    address: `unix://${socketPath}`,
    close: async () => {
      stop.abort(new Error('the driver is closing'));
      await shutDown(server);
      rmSync(socketPath, { force: true });
    },
  };
}

/** Lets calls in work end for a second, then aborts them. */
async function shutDown(server: Server): Promise<void> {
  const ended = new Promise<void>((resolve) => {
    server.tryShutdown(() => resolve());
  });
  await Promise.race([ended, delay(1000, undefined, { ref: false })]);
  server.forceShutdown();
  await ended;
}

/** The socket's path cannot be used; the message says why. */
class SocketPathError extends Error {
  override readonly name = 'SocketPathError';
}

/**
 * Makes way for a socket: makes its folder and removes what a process that is gone left behind.
 *
 * @throws {SocketPathError} when somebody listens there, or something else than a socket is in the way.
 */
async function clearSocketPath(socketPath: string): Promise<void> {
  mkdirSync(path.dirname(socketPath), { recursive: true });
  const found = lstatSync(socketPath, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isSocket()) throw new SocketPathError(`${socketPath} exists and is not a socket`);
  if (await responds(socketPath)) throw new SocketPathError(`another process listens on ${socketPath}`);
  rmSync(socketPath, { force: true });
}

async function responds(socketPath: string): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const socket = connect(socketPath, () => resolve(true));
  socket.once('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') resolve(false);
    else reject(new SocketPathError(`${socketPath}: ${error.message}`, { cause: error }));
  });
  try {
    return await promise;
  } finally {
    socket.destroy();
  }
}
