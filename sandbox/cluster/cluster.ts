/**
 * A whole small storage cluster: the sandbox in this process, and beside it as processes of their own the sidecar and a
 * CSI driver, the sample one or somebody's own.
 */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { textLogger } from '../../src/base/text-logger.ts';
import type { SandboxClient } from '../api/client.ts';
import { Sandbox } from '../sandbox.ts';
import type { SandboxOptions } from '../sandbox.ts';
import { ChildProgram } from './child-program.ts';
import type { CallFault } from '../proxy/call-fault.ts';
import { CallProxy } from '../proxy/call-proxy.ts';
import { FaultSource } from '../proxy/fault-source.ts';
import { readDriverFacts, unreadyReason } from './driver-client.ts';
import type { DriverFacts } from './driver-client.ts';
import { watchDriver } from './driver-watch.ts';
import { KeptProgram } from './kept-program.ts';
import { sampleDriverArguments, sidecarFile } from './programs.ts';
import { registerDriver } from './register-driver.ts';
import { grantSidecarPermissions, sidecarAccount } from './sidecar-permissions.ts';

/** The name of the sample driver. */
export const sampleDriverName = 'hostpath.csi.k8s.io';

/** Everything about a cluster that can be chosen. */
export interface ClusterOptions {
  /** Path of the socket of a driver that runs already or will; the sample driver is started if absent. */
  readonly driverSocket?: string;
  /** Of the API and its controllers. */
  readonly sandbox?: SandboxOptions;
  /** Folder for the logs; by default in the temporary folder that goes with the cluster. */
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
  /** Aborts the start. */
  readonly signal?: AbortSignal;
  /** Takes what people want to know as it happens: what is waited for, and which process died. */
  readonly report?: (text: string) => void;
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
  readonly logFiles: readonly string[];
  /** Where the sample driver keeps its volumes, a folder each; undefined with a driver of somebody's own. */
  readonly volumesFolder: string | undefined;
}

const pollMs = 200;

/** Starts everything and waits until it works. @throws when a part ends at once; nothing is left running then. */
export async function startCluster(options: ClusterOptions = {}): Promise<LocalCluster> {
  const { report = () => undefined, signal = new AbortController().signal } = options;
  const folder = await mkdtemp(path.join(tmpdir(), 'csi-'));
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const logFolder = path.resolve(options.logFolder ?? folder);
  await mkdir(logFolder, { recursive: true });
  const logFile = (what: string): string => path.join(logFolder, `${what}.log`);

  const sandbox = cleanup.use(
    await Sandbox.start({
      kubeconfigPath: path.join(folder, 'kubeconfig'),
      nodes: options.driverSocket === undefined ? 2 : 1,
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
  const register = async (stop: AbortSignal): Promise<DriverFacts> => {
    await waitForDriver(driverSocket, { signal: stop, report });
    try {
      const facts = await readDriverFacts(driverSocket);
      registerDriver(client, facts);
      return facts;
    } catch (error) {
      const { message } = error as Error;
      throw new Error(`the driver at ${driverSocket} cannot be registered: ${message}`, { cause: error });
    }
  };
  const driver = await register(signal);
  cleanup.use(watchDriver({ socketPath: driverSocket, register, report }));
  const { faults = [], faultFile } = options;
  let calledSocket = driverSocket;
  if (faults.length > 0 || faultFile !== undefined) {
    calledSocket = path.join(folder, 'proxy.sock');
    const source = new FaultSource({ faults, file: faultFile });
    cleanup.use(await CallProxy.start({ driverSocket, socketPath: calledSocket, faults: source, report }));
  }
  await keep(async (stop) => {
    const { sidecarProgram = [sidecarFile()], sidecarFlags = [], sidecarEnv = {} } = options;
    const connections = [`--csi-address=${calledSocket}`, `--kubeconfig=${sidecarKubeconfig}`];
    const sidecar = new ChildProgram({
      what: 'sidecar',
      args: [...sidecarProgram, ...connections, ...sidecarFlags],
      logFile: logFile('sidecar'),
      env: sidecarEnv,
    });
    return await started(sidecar, sidecar.logs('Started provisioner controller'), stop);
  });
  const owned = cleanup.move();
  return {
    folder,
    url: sandbox.url,
    kubeconfig: sandbox.kubeconfig,
    client,
    driver,
    driverSocket,
    logFiles: [logFile('sidecar'), ...(options.driverSocket === undefined ? [logFile('driver')] : [])],
    volumesFolder: options.driverSocket === undefined ? path.join(stateFolder, 'volumes') : undefined,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
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

async function waitForDriver(
  socketPath: string,
  { signal, report }: { signal: AbortSignal; report: (text: string) => void },
): Promise<void> {
  let reported: string | undefined;
  for (;;) {
    const reason = existsSync(socketPath) ? await unreadyReason(socketPath) : 'there is no such socket yet';
    if (reason === undefined) return;
    const kind = reason.replaceAll(/\d+/g, ''); // some texts of grpc-js have a time in them
    if (kind !== reported) report(`Waiting for a CSI driver at ${socketPath}: ${reason}. Ctrl-C gives up.`);
    reported = kind;
    await delay(pollMs, undefined, { signal });
  }
}
