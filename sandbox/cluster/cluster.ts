/**
 * A whole small storage cluster: the sandbox in this process, and beside it as processes of their own the sidecar and a
 * CSI driver, the sample one or somebody's own.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { textLogger } from '../../src/base/text-logger.ts';
import type { SandboxClient } from '../api/client.ts';
import type { NodeSketch } from '../control-plane/create-nodes.ts';
import { grantObjects } from '../granted-account.ts';
import type { CallFault } from '../proxy/call-fault.ts';
import { CallProxy, type ObservedCall } from '../proxy/call-proxy.ts';
import { FaultSource } from '../proxy/fault-source.ts';
import { Sandbox, type SandboxOptions } from '../sandbox.ts';
import { ChildProgram } from './child-program.ts';
import type { DriverFacts } from './driver-client.ts';
import { watchDriver } from './driver-watch.ts';
import { leftovers } from './explain-leftovers.ts';
import type { GivenNode, NodeSocket } from './given-nodes.ts';
import { KeptProgram } from './kept-program.ts';
import { sampleDriverArguments, sidecarFile } from './programs.ts';
import { publishesCapacity, registrar } from './registrar.ts';
import { sidecarManifests } from './sidecar-manifests.ts';

/** The name of the sample driver. */
export const sampleDriverName = 'hostpath.csi.k8s.io';

/** Everything about a cluster that can be chosen. */
export interface ClusterOptions {
  /** Path of the socket of a driver that runs already or will; the sample driver is started if absent. */
  readonly driverSocket?: string;
  /** Limit in milliseconds for the wait for that driver; default none. */
  readonly waitMs?: number | undefined;
  /** The nodes by name and topology; by default as `sandbox.nodes`. */
  readonly nodes?: readonly GivenNode[];
  /** Sockets of node plugins, where they are not the driver's. */
  readonly nodeSockets?: readonly NodeSocket[];
  /** Runs a sidecar with `--node-deployment` for each of these sockets, which name their nodes, instead of one. */
  readonly nodeDeployment?: boolean;
  /** Of both classes that are made for the driver. */
  readonly classParameters?: Readonly<Record<string, string>>;
  /** Of the API and its controllers. */
  readonly sandbox?: SandboxOptions;
  /** Folder for the logs; by default a temporary one that goes with the cluster. */
  readonly logFolder?: string;
  /** What to run as the sidecar: a script and its arguments. The sidecar beside this sandbox if absent. */
  readonly sidecarProgram?: readonly string[];
  /** Further flags for the sidecar. */
  readonly sidecarFlags?: readonly string[];
  /** Added to the sidecar's environment. */
  readonly sidecarEnv?: Readonly<Record<string, string>>;
  /** What goes wrong between the sidecar and the driver. Default: nothing. */
  readonly faults?: readonly CallFault[];
  /** A file with further faults, read again when it changes. */
  readonly faultFile?: string | undefined;
  /** Takes each call of a sidecar that has reached a driver, at its end. Default: nothing does. */
  readonly observe?: ((call: ObservedCall, sidecar: SidecarPlace) => void) | undefined;
  /** Aborts the start. */
  readonly signal?: AbortSignal;
  /** Takes what people want to know as it happens: what is waited for, and which process died. */
  readonly report?: (text: string) => void;
  /** Told what is being waited for until all is there. Default: nobody. */
  readonly progress?: (text: string) => void;
}

/** A running cluster. */
export interface LocalCluster extends AsyncDisposable {
  /** Folder of everything that is not placed elsewhere; removed at the end. */
  readonly folder: string;
  readonly url: string;
  readonly kubeconfig: string;
  /** The API as an administrator, in this process. */
  readonly client: SandboxClient;
  readonly driver: DriverFacts;
  readonly driverSocket: string;
  /** In a temporary folder of their own that is removed at the end, unless one was given. */
  readonly logFiles: readonly string[];
  /** Claims that are not bound and volumes that could not be deleted, as `csi-provisioner why` names them. */
  leftovers(): string[];
  /** Leaves the logs where they are. */
  keepLogs(): void;
  /** Where the sample driver keeps its volumes, a folder each; undefined with a driver of somebody's own. */
  readonly volumesFolder: string | undefined;
}

/** Starts everything and waits until it works. @throws when a part ends at once; nothing is left running then. */
export async function startCluster(options: ClusterOptions = {}): Promise<LocalCluster> {
  const { report = () => undefined, progress = () => undefined, signal = new AbortController().signal } = options;
  const folder = await mkdtemp(path.join(tmpdir(), 'csi-'));
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const logs = cleanup.use(await LogFolder.open(options.logFolder));
  const logFile = (what: string): string => path.join(logs.path, `${what}.log`);

  const sandbox = cleanup.use(
    await Sandbox.start({
      kubeconfigPath: path.join(folder, 'kubeconfig'),
      nodes: sketches(options),
      logger: textLogger({ level: 'error', write: report }),
      ...options.sandbox,
    }),
  );
  const client = sandbox.api.client('system:admin');
  let sidecarKubeconfig = sandbox.kubeconfig;
  if (options.sandbox?.rbac === true) {
    await grantSidecarPermissions(client);
    sidecarKubeconfig = path.join(folder, 'sidecar-kubeconfig');
    await sandbox.writeAccountKubeconfig(sidecarKubeconfig, sidecarAccount);
  }

  const driverSocket = options.driverSocket ?? path.join(folder, 'csi.sock');
  const stateFolder = path.join(folder, 'state');
  const keep = async (start: (stop: AbortSignal) => Promise<ChildProgram>): Promise<KeptProgram> =>
    cleanup.use(await KeptProgram.start({ start, report }, signal));
  if (options.driverSocket === undefined) {
    progress('starting the sample driver');
    await keep(async (stop) => {
      const flags = [
        `--csi-address=${driverSocket}`,
        `--state-dir=${stateFolder}`,
        `--driver-name=${sampleDriverName}`,
      ];
      const args = [...sampleDriverArguments(), ...flags];
      const child = new ChildProgram({ what: 'driver', args, logFile: logFile('driver') });
      return await started(child, child.firstLine(), stop);
    });
  }
  const { nodeSockets = [] } = options;
  const register = registrar(client, { ...options, driverSocket, report });
  const driver = await register(signal, options.waitMs);
  if (isWithoutTopology(driver, options)) report(topologyAdvice);
  for (const socketPath of new Set([driverSocket, ...nodeSockets.map((each) => each.socketPath)])) {
    cleanup.use(watchDriver({ socketPath, register, report }));
  }
  const { faults = [], faultFile, observe, sidecarProgram = [sidecarFile()], sidecarFlags = [] } = options;
  const source = new FaultSource({ faults, file: faultFile });
  const isSpoiled = faults.length > 0 || faultFile !== undefined;
  const capacity = publishesCapacity(driver, sidecarFlags) ? capacityFlags : [];
  const sidecars = sidecarPlaces(options, driverSocket);
  for (const [index, place] of sidecars.entries()) {
    let calledSocket = place.driverSocket;
    if (isSpoiled || observe !== undefined) {
      calledSocket = path.join(folder, `proxy-${index}.sock`);
      const { driverSocket } = place;
      const proxy = { driverSocket, socketPath: calledSocket, faults: source, report };
      cleanup.use(await CallProxy.start({ ...proxy, observe: observe && ((call) => observe(call, place)) }));
    }
    const { what, node } = place;
    progress(`starting the ${what}`);
    const connections = [`--csi-address=${calledSocket}`, `--kubeconfig=${sidecarKubeconfig}`];
    const onNode = node === undefined ? {} : { NODE_NAME: node };
    await keep(async (stop) => {
      const sidecar = new ChildProgram({
        what,
        args: [...sidecarProgram, ...connections, ...capacity, ...place.flags, ...sidecarFlags],
        logFile: logFile(what),
        env: { NAMESPACE: sidecarAccount.namespace, ...onNode, ...options.sidecarEnv },
      });
      return await started(sidecar, sidecar.logs('Started provisioner controller'), stop);
    });
  }
  const owned = cleanup.move();
  return {
    folder,
    url: sandbox.url,
    kubeconfig: sandbox.kubeconfig,
    client,
    driver,
    driverSocket,
    logFiles: [
      ...sidecars.map(({ what }) => logFile(what)),
      ...(options.driverSocket === undefined ? [logFile('driver')] : []),
    ],
    volumesFolder: options.driverSocket === undefined ? path.join(stateFolder, 'volumes') : undefined,
    leftovers: () => leftovers(client),
    keepLogs: () => logs.keep(),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** A sidecar, and where it runs. */
export interface SidecarPlace {
  /** `sidecar`, or `sidecar-NODE`. */
  readonly what: string;
  /** Undefined: it serves all nodes. */
  readonly node: string | undefined;
  readonly driverSocket: string;
  readonly flags: readonly string[];
}

function sidecarPlaces({ nodeDeployment, nodeSockets = [] }: ClusterOptions, driverSocket: string): SidecarPlace[] {
  if (nodeDeployment !== true) return [{ what: 'sidecar', node: undefined, driverSocket, flags: [] }];
  return nodeSockets.map(({ node = '', socketPath }) => ({
    what: `sidecar-${node}`,
    node,
    driverSocket: socketPath,
    flags: ['--node-deployment'],
  }));
}

/** The program once it is ready; ended when it does not get there. */
async function started(child: ChildProgram, ready: Promise<unknown>, signal: AbortSignal): Promise<ChildProgram> {
  await using starting = new AsyncDisposableStack();
  starting.use(child);
  const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  await Promise.race([ready, aborted]);
  signal.throwIfAborted();
  starting.move();
  return child;
}

/** The flags that publish capacity; objects without an owner, as the sidecar has no Pod. */
const capacityFlags = ['--enable-capacity', '--capacity-ownerref-level=-1'];

const topologyAdvice =
  'The driver has VOLUME_ACCESSIBILITY_CONSTRAINTS, but no node service at its socket: its volumes get no topology. Give ' +
  'the socket of its node plugin with --node-csi-address, or the topology itself with --node NAME=KEY=VALUE,...';

function isWithoutTopology(driver: DriverFacts, { nodes = [], nodeSockets = [] }: ClusterOptions): boolean {
  if (!driver.hasTopology || driver.node !== undefined || nodeSockets.length > 0) return false;
  return nodes.every(({ segments }) => Object.keys(segments).length === 0);
}

function sketches({ driverSocket, nodes }: ClusterOptions): number | NodeSketch[] {
  if (nodes !== undefined) return nodes.map(({ name, segments }) => ({ name, labels: { ...segments } }));
  return driverSocket === undefined ? 2 : 1;
}

/** Where the logs are: a folder that was given, or a temporary one, removed at the end unless it is kept. */
class LogFolder implements AsyncDisposable {
  readonly path: string;
  #isKept: boolean;

  private constructor(folder: string, isKept: boolean) {
    this.path = folder;
    this.#isKept = isKept;
  }

  /** Makes it where it is missing. */
  static async open(given: string | undefined): Promise<LogFolder> {
    if (given === undefined) return new LogFolder(await mkdtemp(path.join(tmpdir(), 'csi-logs-')), false);
    await mkdir(given, { recursive: true });
    return new LogFolder(path.resolve(given), true);
  }

  keep(): void {
    this.#isKept = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isKept) await rm(this.path, { recursive: true, force: true });
  }
}

/** The account that `deploy/base/rbac.yaml` makes for the sidecar. */
const sidecarAccount = { namespace: 'default', name: 'csi-provisioner' } as const;

/** Grants the sidecar the permissions that our manifests grant it in a cluster. Safe to repeat. */
async function grantSidecarPermissions(client: SandboxClient): Promise<void> {
  await grantObjects(client, sidecarManifests());
}
