import { appendFileSync, mkdirSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { kubeconfigText } from '../../sandbox/kubeconfig.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { connect } from '../../src/kube/client/connect.ts';
import { KubeClient } from '../../src/kube/client/kube-client.ts';
import type { Transport } from '../../src/kube/client/transport.ts';
import { loadKubeconfig } from '../../test/support/admin.ts';
import type { Cluster } from '../../test/support/cluster.ts';
import { startKubernetes } from '../../test/support/kubernetes-cluster.ts';
import { startSandbox } from '../../test/support/sandbox-cluster.ts';
import { startSidecar } from '../../test/support/sidecar-process.ts';
import { startAnnounced, type StartedProcess } from '../../test/support/started-process.ts';
import { type ApiOrigin, ApiProxy } from './api-proxy.ts';

/** A sidecar that is measured. */
export interface Candidate {
  name: 'ours' | 'peer';
  /** Words separated by spaces. */
  command: string;
  flags: readonly string[];
}

/** One scenario with one sidecar. */
export interface Run {
  candidate: Candidate;
  target: 'sandbox' | 'kubernetes';
  short: boolean;
  /** Called with the log of each sidecar when it has ended. */
  keepLog: (title: string, text: string) => void;
}

export interface Driver {
  name: string;
  /** `unix:///...`. */
  address: string;
}

export interface SidecarOptions {
  /** Default: the first one. */
  driver?: Driver | undefined;
  /** Path. Default: one that leads directly to the API server. */
  kubeconfig?: string | undefined;
  flags?: readonly string[];
  /** Default: that of the candidate. */
  command?: string;
}

/** A cluster of its own, with drivers and an administrator's access. */
export interface Stage extends AsyncDisposable {
  cluster: Cluster;
  client: KubeClient;
  transport: Transport;
  drivers: readonly Driver[];
  /** Path of the sidecar's kubeconfig. */
  kubeconfig: string;
  /** The API server as the sidecar reaches it. */
  origin: ApiOrigin;
  /** Starts the candidate; it is stopped when the stage is disposed. */
  start(options?: SidecarOptions): Promise<StartedProcess>;
  /** The sidecar's kubeconfig with another URL of the API server. @returns its path. */
  kubeconfigAt(url: string): Promise<string>;
  /** A proxy in front of the API server, and the path of the kubeconfig with which a sidecar uses it. */
  proxy(): Promise<{ proxy: ApiProxy; kubeconfig: string }>;
}

const electionRole = path.join(import.meta.dirname, '../../deploy/components/leader-election/rbac.yaml');
const driverProgram = path.join(import.meta.dirname, 'tenant-driver.ts');
/** A sidecar that takes longer to end is killed, in milliseconds. */
const endMs = 5000;

/**
 * Opens an empty cluster with drivers.
 *
 * @param options.drivers - the number of drivers; each sidecar that leads at the same time as others needs its own.
 * @param options.stops - whether the API server can be paused; the sandbox then uses no TLS.
 */
export async function openStage(run: Run, options: { drivers?: number; stops?: boolean } = {}): Promise<Stage> {
  const { drivers: driverCount = 1, stops = false } = options;
  await using cleanup = new AsyncDisposableStack();
  const cluster = run.target === 'kubernetes' ? await startKubernetes() : await startSandbox({ restartable: stops });
  cleanup.defer(() => cluster.stop());
  await cluster.grantSidecar(await readFile(electionRole, 'utf8'));
  const folder = await mkdtemp(path.join(tmpdir(), 'grey-'));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const drivers = Array.from({ length: driverCount }, (_, index) => ({
    name: `grey-${index}.csi.example.com`,
    address: `unix://${path.join(folder, `${index}.sock`)}`,
  }));
  const { process: driver } = await startAnnounced({
    program: process.execPath,
    args: [driverProgram, folder, ...drivers.map(({ name }) => name)],
  });
  cleanup.defer(() => driver.stop('SIGKILL'));
  const kubeconfig = await cluster.sidecarKubeconfig();
  const origin = originOf(kubeconfig);
  const transport = cleanup.use(
    connect({ kubeconfig: cluster.adminKubeconfig, environment: {}, userAgent: 'grey', logger: silentLogger }),
  );
  let files = 0;
  const newFile = async (text: string): Promise<string> => {
    const file = path.join(folder, `kubeconfig-${files++}`);
    await writeFile(file, text, { mode: 0o600 });
    return file;
  };
  const owned = cleanup.move();
  return {
    cluster,
    client: new KubeClient({ transport, fieldManager: 'grey' }),
    transport,
    drivers,
    kubeconfig,
    origin,
    async start(how = {}) {
      const sidecar = await startCandidate(run, { driver: drivers[0], kubeconfig, ...how }, cluster.sidecarNamespace);
      owned.defer(() => end(sidecar));
      return sidecar;
    },
    kubeconfigAt: async (url) => await newFile((await readFile(kubeconfig, 'utf8')).replaceAll(origin.url, url)),
    async proxy() {
      const proxy = owned.use(await ApiProxy.start(origin));
      return { proxy, kubeconfig: await newFile(kubeconfigText({ url: proxy.url })) };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function startCandidate(
  { candidate, keepLog }: Run,
  { driver, kubeconfig = '', flags = [], command = candidate.command }: SidecarOptions,
  namespace: string,
): Promise<StartedProcess> {
  const sidecar = await startSidecar({
    program: command,
    csiAddress: driver?.address ?? '',
    kubeconfig,
    namespace,
    flags: [...candidate.flags, ...flags],
  });
  const title = `${candidate.name} ${flags.join(' ')} (${sidecar.pid})`;
  void sidecar.ending().then((how) => keepLog(`${title}: ${how}`, sidecar.log()));
  return sidecar;
}

/** Stops a sidecar, in whatever state it is. */
async function end(sidecar: StartedProcess): Promise<void> {
  await Promise.race([sidecar.stop(), delay(endMs, undefined, { ref: false })]);
  await sidecar.stop('SIGKILL');
}

function originOf(kubeconfig: string): ApiOrigin {
  const config = loadKubeconfig(kubeconfig);
  const { server = '', caData } = config.getCurrentCluster() ?? {};
  return {
    url: server,
    ca: caData === undefined ? undefined : Buffer.from(caData, 'base64').toString(),
    token: config.getCurrentUser()?.token,
  };
}

/** Appends to a file in the folder, if there is one. */
export function logKeeper(folder: string | undefined): (scenario: string) => Run['keepLog'] {
  if (folder !== undefined) mkdirSync(folder, { recursive: true });
  return (scenario) => (title, text) => {
    if (folder !== undefined) appendFileSync(path.join(folder, `${scenario}.log`), `=== ${title}\n${text}\n`);
  };
}
