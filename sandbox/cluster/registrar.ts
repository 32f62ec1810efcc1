import type { ServiceError } from '@grpc/grpc-js';
import type { SandboxClient } from '../api/client.ts';
import { resources } from '../control-plane/objects.ts';
import { type DriverFacts, type NodeFacts, readDriverFacts, readNodeFacts } from './driver-client.ts';
import { type DriverWait, whenReady } from './driver-wait.ts';
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
