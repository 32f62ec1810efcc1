import { credentials, makeClientConstructor, status } from '@grpc/grpc-js';
import type { ServiceError } from '@grpc/grpc-js';
import { csiServices } from '../csi-services.ts';

/** What a driver says of itself and of the node it runs on. */
export interface DriverFacts {
  readonly name: string;
  readonly version: string;
  /** Names of the controller's RPC capabilities; empty without a controller service. */
  readonly controller: ReadonlySet<string>;
  /** Whether volumes can be expanded, by the controller or on the node. */
  readonly expands: boolean;
  /** Whether its volumes can be used in some segments of the cluster only. */
  readonly hasTopology: boolean;
  /** Undefined for a driver whose socket has no node service, as with a controller plugin of its own. */
  readonly node: NodeFacts | undefined;
}

/** What a node plugin says of its node. */
export interface NodeFacts {
  readonly id: string;
  readonly segments: Readonly<Record<string, string>>;
}

const callTimeoutMs = 10_000;

/** Why the driver at the path of a socket is not ready; undefined once its Probe says that it is. Never rejects. */
export async function unreadyReason(socketPath: string): Promise<string | undefined> {
  using driver = new DriverClient(socketPath);
  try {
    const { ready } = await driver.call<{ ready?: { value?: boolean } }>('Identity', 'Probe');
    // an absent value means ready, `false` of proto3 is left out
    return ready === undefined || ready.value === true ? undefined : 'Probe: the driver is not ready yet';
  } catch (error) {
    return isUnimplemented(error) ? undefined : (error as Error).message;
  }
}

/** Reads from a driver that is ready what a kubelet and the sidecar read. @throws {ServiceError} naming the call. */
export async function readDriverFacts(socketPath: string): Promise<DriverFacts> {
  using driver = new DriverClient(socketPath);
  const { name = '', vendor_version: version = '' } = await driver.call<{ name?: string; vendor_version?: string }>(
    'Identity',
    'GetPluginInfo',
  );
  if (name === '') throw new Error('GetPluginInfo: the driver has no name');
  const controller = await driver.capabilities('Controller', 'ControllerGetCapabilities');
  const onNode = await driver.capabilities('Node', 'NodeGetCapabilities');
  const plugin = await driver.capabilities('Identity', 'GetPluginCapabilities');
  return {
    name,
    version,
    controller,
    expands: controller.has('EXPAND_VOLUME') || onNode.has('EXPAND_VOLUME'),
    hasTopology: plugin.has('VOLUME_ACCESSIBILITY_CONSTRAINTS'),
    node: await driver.nodeFacts(),
  };
}

/** What the node service of a driver that is ready says. @throws {ServiceError} also where there is no such service. */
export async function readNodeFacts(socketPath: string): Promise<NodeFacts> {
  using driver = new DriverClient(socketPath);
  const node = await driver.nodeFacts();
  if (node === undefined) throw new Error('NodeGetInfo: there is no node service');
  return node;
}

interface Capability {
  rpc?: { type?: string };
  service?: { type?: string };
}

interface NodeInfo {
  node_id?: string;
  accessible_topology?: { segments?: Record<string, string> };
}

/** Whether a call failed as the driver cannot be reached or is not ready: the next one may succeed. */
export function isUnavailable(error: unknown): boolean {
  return (error as ServiceError).code === status.UNAVAILABLE;
}

function isUnimplemented(error: unknown): boolean {
  return (error as ServiceError).code === status.UNIMPLEMENTED;
}

type Unary = (request: object, options: object, done: (error: ServiceError | null, response?: object) => void) => void;

class DriverClient implements Disposable {
  readonly #socketPath: string;
  readonly #open: { close(): void }[] = [];

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  call<Response>(service: string, method: string): Promise<Response> {
    const definition = csiServices()[`csi.v1.${service}`];
    if (definition === undefined) throw new Error(`csi.proto has no service ${service}`);
    const client = new (makeClientConstructor(definition, service))(
      `unix:${this.#socketPath}`,
      credentials.createInsecure(),
    );
    this.#open.push(client);
    return new Promise((resolve, reject) => {
      const unary = (client as unknown as Record<string, Unary>)[method];
      unary?.call(client, {}, { deadline: Date.now() + callTimeoutMs }, (error, response) => {
        if (error === null) resolve(response as Response);
        else reject(Object.assign(error, { message: `${method}: ${error.message}` }));
      });
    });
  }

  /** As `call`; undefined for a method or service that the driver does not have. */
  async optional<Response>(service: string, method: string): Promise<Response | undefined> {
    try {
      return await this.call<Response>(service, method);
    } catch (error) {
      if (isUnimplemented(error)) return undefined;
      throw error;
    }
  }

  async capabilities(service: string, method: string): Promise<Set<string>> {
    const response = await this.optional<{ capabilities?: Capability[] }>(service, method);
    return new Set((response?.capabilities ?? []).map(({ rpc, service: offered }) => (rpc ?? offered)?.type ?? ''));
  }

  async nodeFacts(): Promise<NodeFacts | undefined> {
    const info = await this.optional<NodeInfo>('Node', 'NodeGetInfo');
    return info && { id: info.node_id ?? '', segments: info.accessible_topology?.segments ?? {} };
  }

  [Symbol.dispose](): void {
    for (const client of this.#open) client.close();
  }
}
