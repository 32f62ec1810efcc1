/**
 * A small Kubernetes in one process: the API over real HTTP, the controllers that provisioning depends on, and a few
 * nodes. For demos, driver authors and tests; not a cluster, since nothing runs in its pods.
 */
import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../src/base/clock.ts';
import type { Clock } from '../src/base/clock.ts';
import { silentLogger } from '../src/base/logger.ts';
import type { Logger } from '../src/base/logger.ts';
import { ApiServer } from './api/api-server.ts';
import type { ApiServerOptions } from './api/api-server.ts';
import type { AccessRequest, AuthorizationOptions } from './api/authorization.ts';
import { createNodes } from './control-plane/create-nodes.ts';
import type { NodeDriver, NodeSketch } from './control-plane/create-nodes.ts';
import { startControlPlane } from './control-plane/control-plane.ts';
import type { ControlPlaneOptions } from './control-plane/control-plane.ts';
import { type Account, grantManifest, userOf } from './granted-account.ts';
import { isSandboxKubeconfig, kubeconfigText } from './kubeconfig.ts';
import { replaceFile } from './replace-file.ts';

/** Everything about a sandbox that can be chosen. */
export interface SandboxOptions {
  readonly logger?: Logger;
  readonly clock?: Clock;
  /** Of the API server; logger and clock are those of the sandbox. */
  readonly api?: Omit<ApiServerOptions, 'logger' | 'clock'>;
  /** Of the controllers. */
  readonly controlPlane?: Omit<ControlPlaneOptions, 'client' | 'logger' | 'clock'>;
  /** Authorization as a cluster's, which needs TLS; otherwise everybody may do everything. */
  readonly rbac?: boolean;
  /** Path of a manifest in YAML whose service account gets a kubeconfig, with the rights that it has there; implies `rbac`. */
  readonly rbacManifest?: string;
  /** Takes each request for a resource that the account of `rbacManifest` was refused. Default: nothing does. */
  readonly onForbidden?: (request: AccessRequest) => void;
  /** How many nodes there are (`node-1` in zone `a`, `node-2` in zone `b`, alternating), or which; 2 by default. */
  readonly nodes?: number | readonly NodeSketch[];
  /** Drivers to register on every node as a kubelet would; none by default, and then there is no CSINode. */
  readonly drivers?: readonly NodeDriver[];
  /** Where to write the kubeconfig; by default into a temporary folder that goes with the sandbox. */
  readonly kubeconfigPath?: string;
}

/** A running sandbox: made by `Sandbox.start`, ended by `close` or `await using`. */
export class Sandbox implements AsyncDisposable {
  readonly api: ApiServer;
  readonly url: string;
  readonly port: number;
  /** Path of the kubeconfig file. */
  readonly kubeconfig: string;
  /** Path of the kubeconfig of the account of `rbacManifest`, which goes with the sandbox; undefined without one. */
  readonly accountKubeconfig: string | undefined;
  readonly #resources: AsyncDisposableStack;

  private constructor(
    resources: AsyncDisposableStack,
    parts: Pick<Sandbox, 'api' | 'url' | 'port' | 'kubeconfig' | 'accountKubeconfig'>,
  ) {
    this.#resources = resources;
    this.api = parts.api;
    this.url = parts.url;
    this.port = parts.port;
    this.kubeconfig = parts.kubeconfig;
    this.accountKubeconfig = parts.accountKubeconfig;
  }

  /**
   * Starts everything; resolves when the API responds. Nodes that an earlier process left are kept.
   *
   * @throws if the port is taken, a file of somebody's own is at the kubeconfig's path, or a manifest grants nothing; nothing is left
   * running then.
   */
  static async start(options: SandboxOptions = {}): Promise<Sandbox> {
    const { logger = silentLogger, clock = systemClock } = options;
    if (options.kubeconfigPath !== undefined) await refuseForeignFile(options.kubeconfigPath);
    await using starting = new AsyncDisposableStack();
    const { rbacManifest, onForbidden = () => undefined } = options;
    const isRbac = options.rbac === true || rbacManifest !== undefined;
    let account: Account | undefined;
    const refused = (request: AccessRequest): void => {
      if (account !== undefined && request.user.name === userOf(account)) onForbidden(request);
    };
    const api = starting.use(
      new ApiServer({
        ...options.api,
        ...(isRbac && clusterAccess({ onForbidden: refused })),
        ...(rbacManifest !== undefined && { watchList: false }), // which needs no right to list, as older clusters do
        logger,
        clock,
      }),
    );
    const client = (user: string): ReturnType<ApiServer['client']> => api.client(user);
    if (rbacManifest !== undefined) account = await grantManifest(client('system:admin'), rbacManifest);
    createNodes({
      client: client('system:admin'),
      clock,
      nodes: nodeSketches(options.nodes ?? 2).filter(
        ({ name }) => client('system:admin').get(nodes, { name }) === undefined,
      ),
      ...(options.drivers === undefined ? {} : { drivers: options.drivers }),
    });
    const { url, port } = await api.start();
    starting.use(startControlPlane({ ...options.controlPlane, client, logger, clock }));
    const kubeconfig = options.kubeconfigPath ?? (await temporaryPath(starting));
    await replaceFile(kubeconfig, kubeconfigText({ url, ...adminSecrets(api, options.api) }), { mode: 0o600 });
    const accountKubeconfig = account && (await temporaryPath(starting));
    const sandbox = new Sandbox(starting.move(), { api, url, port, kubeconfig, accountKubeconfig });
    if (account !== undefined) await sandbox.writeAccountKubeconfig(accountKubeconfig ?? '', account);
    return sandbox;
  }

  /**
   * Writes a kubeconfig for a service account that exists, with a token for as long as the sandbox runs.
   *
   * @throws when there is no such account.
   */
  async writeAccountKubeconfig(path: string, account: Account): Promise<void> {
    const { api, url } = this;
    const accounts = { group: '', version: 'v1', plural: 'serviceaccounts' };
    const found = api.client('system:admin').get(accounts, account);
    if (found === undefined) throw new Error(`there is no service account ${account.namespace}/${account.name}`);
    const token = api.authentication.mint(account.namespace, account.name, found.metadata.uid ?? '', Infinity);
    const ca = api.ca === undefined ? {} : { ca: api.ca };
    await replaceFile(path, kubeconfigText({ url, token, namespace: account.namespace, ...ca }), { mode: 0o600 });
  }

  /** Stops the controllers, then the API. Safe to repeat. */
  async close(): Promise<void> {
    await this.#resources.disposeAsync();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

const nodes = { group: '', version: 'v1', plural: 'nodes' };
const zones = ['a', 'b'];

function nodeSketches(nodes: number | readonly NodeSketch[]): readonly NodeSketch[] {
  if (typeof nodes !== 'number') return nodes;
  return Array.from({ length: nodes }, (_, index) => ({
    name: `node-${index + 1}`,
    zone: zones[index % zones.length] ?? 'a',
  }));
}

/** TLS, since clients send no token without; what who shows none may see is in the bootstrap roles. */
function clusterAccess(
  options: Pick<AuthorizationOptions, 'onForbidden'>,
): Required<Pick<ApiServerOptions, 'tls' | 'auth'>> {
  return { tls: true, auth: { tokens: {}, anonymous: true, authorization: { mode: 'rbac', ...options } } };
}

/**
 * The first token of the server, else over TLS a new one for an administrator: kubectl asks its user for a password
 * otherwise.
 */
function adminSecrets(api: ApiServer, options: SandboxOptions['api']): { ca?: string; token?: string } {
  const given = Object.keys(options?.auth?.tokens ?? {})[0];
  if (api.ca === undefined) return given === undefined ? {} : { token: given };
  const token = given ?? randomBytes(32).toString('base64url');
  if (given === undefined) api.authentication.grant(token, { name: 'kubernetes-admin', groups: ['system:masters'] });
  return { ca: api.ca, token };
}

/** A kubeconfig of somebody's own is never overwritten; one that an earlier sandbox left is. A pipe must not be read. */
async function refuseForeignFile(path: string): Promise<void> {
  const isFile = statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  if (!isFile || isSandboxKubeconfig(await readFile(path, 'utf8'))) return;
  throw new Error(`--kubeconfig: ${path} is there and not from a sandbox; it stays as it is: name another file`);
}

async function temporaryPath(stack: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sandbox-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  return join(folder, 'kubeconfig');
}
