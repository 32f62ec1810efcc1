import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { ServiceError } from '@grpc/grpc-js';
import type { SandboxClient } from '../api/client.ts';
import { resources } from '../control-plane/objects.ts';
import {
  type DriverFacts,
  isUnavailable,
  type NodeFacts,
  readDriverFacts,
  readNodeFacts,
  unreadyReason,
} from './driver-client.ts';
import { type GivenNode, nodeFactsOf, type NodeSocket } from './given-nodes.ts';
import { registerDriver } from './register-driver.ts';

/** Which driver, and what is known of it besides what it says. */
export interface RegistrarOptions {
  readonly driverSocket: string;
  readonly nodes?: readonly GivenNode[];
  readonly nodeSockets?: readonly NodeSocket[];
  readonly classParameters?: Readonly<Record<string, string>>;
  readonly sidecarFlags?: readonly string[];
  readonly report: (text: string) => void;
}

/** Waits until the driver and its node plugins are ready, and registers it. Safe to repeat. @returns what the driver says. */
export type Register = (signal: AbortSignal, limitMs?: number) => Promise<DriverFacts>;

/** @throws when a node plugin is given for a node that does not exist. */
export function registrar(client: SandboxClient, options: RegistrarOptions): Register {
  const { driverSocket, nodes = [], nodeSockets = [], classParameters = {}, sidecarFlags = [], report } = options;
  const stranger = nodeSockets.find(({ node }) => node !== undefined && !client.get(resources.nodes, { name: node }));
  if (stranger !== undefined) throw new Error(`--node-csi-address: there is no node ${stranger.node ?? ''}`);
  return async (signal, limitMs) => {
    const wait = { signal, report, limitMs };
    const driver = await whenReady(driverSocket, () => registering(driverSocket, readDriverFacts), wait);
    const factsOf = nodeFactsOf(driver, nodes, await pluginFacts(nodeSockets, wait));
    const hasCapacity = publishesCapacity(driver, sidecarFlags);
    await registering(driverSocket, () => registerDriver(client, { driver, factsOf, hasCapacity, classParameters }));
    return driver;
  };
}

/** Whether the sidecar publishes the capacity of the driver: unless its flags say no. */
export function publishesCapacity({ controller }: DriverFacts, sidecarFlags: readonly string[]): boolean {
  return controller.has('GET_CAPACITY') && !sidecarFlags.some((flag) => /^--?enable-capacity=(0|f)/i.test(flag));
}

/** By node; under an empty text that for all nodes. */
async function pluginFacts(nodeSockets: readonly NodeSocket[], wait: DriverWait): Promise<Map<string, NodeFacts>> {
  const plugins = new Map<string, NodeFacts>();
  for (const { node = '', socketPath } of nodeSockets) {
    plugins.set(node, await whenReady(socketPath, () => registering(socketPath, readNodeFacts), wait));
  }
  return plugins;
}

/** Errors say which driver cannot be registered; their codes stay. */
async function registering<T>(socketPath: string, step: (socketPath: string) => T | Promise<T>): Promise<T> {
  try {
    return await step(socketPath);
  } catch (error) {
    const { message, code } = error as ServiceError;
    throw Object.assign(new Error(`the driver at ${socketPath} cannot be registered: ${message}`, { cause: error }), {
      code,
    });
  }
}

/** How a driver is waited for. */
interface DriverWait {
  readonly signal: AbortSignal;
  /** Takes a line for each new reason to wait. */
  readonly report: (text: string) => void;
  /** Limit in milliseconds; default none. */
  readonly limitMs?: number | undefined;
}

const pollMs = 200;

/**
 * Waits until the driver is ready and `read` gets its responses; a call that fails with UNAVAILABLE is repeated.
 *
 * @throws what `read` throws otherwise, and when the limit is over, with the reason of the wait.
 */
async function whenReady<T>(
  socketPath: string,
  read: () => Promise<T>,
  { signal, report, limitMs }: DriverWait,
): Promise<T> {
  const limit = limitMs === undefined ? undefined : performance.now() + limitMs;
  let reported: string | undefined;
  for (;;) {
    const outcome = await attempt(socketPath, read);
    if ('value' in outcome) return outcome.value;
    const { reason } = outcome;
    if (limit !== undefined && performance.now() > limit) {
      throw new Error(`no CSI driver was ready at ${socketPath} within ${(limitMs ?? 0) / 1000} s: ${reason}`);
    }
    const kind = reason.replaceAll(/\d+/g, ''); // some texts of grpc-js have a time in them
    if (kind !== reported) report(`Waiting for a CSI driver at ${socketPath}: ${reason}. Ctrl-C gives up.`);
    reported = kind;
    await delay(pollMs, undefined, { signal });
  }
}

async function attempt<T>(socketPath: string, read: () => Promise<T>): Promise<{ value: T } | { reason: string }> {
  const reason = existsSync(socketPath) ? await unreadyReason(socketPath) : 'there is no such socket yet';
  if (reason !== undefined) return { reason };
  try {
    return { value: await read() };
  } catch (error) {
    if (isUnavailable(error)) return { reason: (error as Error).message };
    throw error;
  }
}
