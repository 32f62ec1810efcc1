/** A cluster with one driver behind a proxy, one sidecar at a time, and the objects that the story makes. */
/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import { randomBytes } from 'node:crypto';
import { readFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { connectAdmin, type Admin } from '../../test/support/admin.ts';
import type { Cluster } from '../../test/support/cluster.ts';
import { installKinds, volumeSnapshotContentKind, volumeSnapshotKind } from '../../test/support/custom-kinds.ts';
import { eventually } from '../../test/support/eventually.ts';
import { startKubernetes } from '../../test/support/kubernetes-cluster.ts';
import { startSandbox } from '../../test/support/sandbox-cluster.ts';
import { startSidecar } from '../../test/support/sidecar-process.ts';
import type { StartedProcess } from '../../test/support/started-process.ts';
import { CsiProxy } from './csi-proxy.ts';
import { CsiClient, type Message } from './csi-wire.ts';
import { startTriedDriver } from './driver-program.ts';
import type { DriverProfile } from './drivers.ts';

export interface Candidate {
  name: 'ours' | 'peer';
  /** Words separated by spaces. */
  command: string;
}

export interface StageOptions {
  candidate: Candidate;
  profile: DriverProfile;
  /** Words that start the driver. */
  driverCommand: readonly string[];
  target: 'sandbox' | 'kubernetes';
  /** Takes the log of each process that has ended. */
  keepLog: (title: string, text: string) => void;
}

export interface Stage extends AsyncDisposable {
  options: StageOptions;
  admin: Admin;
  proxy: CsiProxy;
  /** The driver itself, past the proxy. */
  driver: CsiClient;
  info: DriverInfo;
  /** Namespace of the sidecar's leases. */
  sidecarNamespace: string;
  /** The sidecar that was started last. */
  sidecar: () => StartedProcess;
  /** Starts it, in place of one that has ended, and waits until it works. */
  start: () => Promise<void>;
  /** What differs between any two runs, with what stands for it; the story adds to it. */
  names: Map<string, string>;
}

/** What the driver says of itself. */
export interface DriverInfo {
  name: string;
  version: string;
  /** Such as `CREATE_DELETE_VOLUME` and `VOLUME_ACCESSIBILITY_CONSTRAINTS`. */
  capabilities: ReadonlySet<string>;
  segments: Record<string, string>;
  nodeId: string;
}

export const namespace = 'tried';
export const nodeName = 'node-1';

const driverName = 'tried.csi.example.com';
const readyLine = 'Started provisioner controller';
const components = ['attachments', 'leader-election', 'topology', 'capacity', 'snapshots', 'attributes-classes'];
const flags = ['--timeout=5s', '--retry-interval-start=250ms', '-v=5', '--leader-election'];
const capacityFlags = [
  '--enable-capacity',
  '--capacity-ownerref-level=-1',
  '--capacity-poll-interval=1s',
  '--capacity-for-immediate-binding',
];

/** Opens a cluster of its own with the driver and the first sidecar. */
export async function openStage(options: StageOptions): Promise<Stage> {
  await using cleanup = new AsyncDisposableStack();
  const cluster = options.target === 'kubernetes' ? await startKubernetes() : await startSandbox();
  cleanup.defer(() => cluster.stop());
  const admin = connectAdmin(cluster.adminKubeconfig);
  for (const component of components) await cluster.grantSidecar(await rights(component));
  await installKinds(cluster, admin, [volumeSnapshotKind, volumeSnapshotContentKind]);
  const folder = await mkdtemp(path.join(tmpdir(), 'try-driver-'));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const { proxy, driver } = await startDriver(options, folder, cleanup);
  const info = await readInfo(driver);
  await makeCluster(admin, info);
  const start = sidecarStarter(options, cluster, { address: `unix://${folder}/csi.sock`, info });
  const sidecars: StartedProcess[] = [];
  cleanup.defer(async () => {
    await Promise.all(sidecars.map((each) => each.stop('SIGKILL')));
  });
  const stage: Stage = {
    options,
    admin,
    proxy,
    driver,
    info,
    sidecarNamespace: cluster.sidecarNamespace,
    sidecar: () => sidecars.at(-1)!,
    async start() {
      sidecars.push(await start());
      await working(stage.sidecar());
    },
    names: new Map([
      [hostname(), '<host>'],
      [folder, '<folder>'],
    ]),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
  const owned = cleanup.move();
  return stage;
}

async function rights(component: string): Promise<string> {
  return await readFile(path.join(import.meta.dirname, `../../deploy/components/${component}/rbac.yaml`), 'utf8');
}

async function startDriver(
  { profile, driverCommand, keepLog, candidate }: StageOptions,
  folder: string,
  cleanup: AsyncDisposableStack,
): Promise<{ proxy: CsiProxy; driver: CsiClient }> {
  const place = { socket: `${folder}/driver.sock`, folder: `${folder}/driver`, driverName };
  await mkdir(place.folder);
  const process = await startTriedDriver(profile, driverCommand, place);
  void process.ending().then((how) => keepLog(`driver for ${candidate.name}: ${how}`, process.log()));
  cleanup.defer(() => process.stop('SIGKILL'));
  const address = `unix://${place.socket}`;
  const driver = cleanup.use(new CsiClient(address));
  return { driver, proxy: cleanup.use(await CsiProxy.start(`unix://${folder}/csi.sock`, address)) };
}

async function readInfo(driver: CsiClient): Promise<DriverInfo> {
  const { name, vendor_version: version = '' } = await driver.call('GetPluginInfo');
  const plugin = await driver.call('GetPluginCapabilities');
  const controller = await driver.call('ControllerGetCapabilities');
  const node = await driver.call('NodeGetInfo').catch((): Message => ({}));
  return {
    name: String(name),
    version: version as string,
    capabilities: new Set([...typesOf(plugin), ...typesOf(controller)]),
    segments: ((node['accessible_topology'] as Message | undefined)?.['segments'] ?? {}) as Record<string, string>,
    nodeId: (node['node_id'] as string | undefined) ?? nodeName,
  };
}

function typesOf({ capabilities }: Message): string[] {
  const list = (capabilities ?? []) as Record<string, { type?: string }>[];
  return list.flatMap((capability) => Object.values(capability).map(({ type }) => type ?? ''));
}

/** A node with the driver on it, and a namespace for the claims. */
async function makeCluster({ core, storage }: Admin, { name, segments, nodeId }: DriverInfo): Promise<void> {
  await core.createNamespace({ body: { metadata: { name: namespace } } });
  await core.createNode({ body: { metadata: { name: nodeName, labels: segments } } });
  const topologyKeys = Object.keys(segments);
  await storage.createCSINode({
    body: { metadata: { name: nodeName }, spec: { drivers: [{ name, nodeID: nodeId, topologyKeys }] } },
  });
}

function sidecarStarter(
  { candidate, profile, keepLog }: StageOptions,
  cluster: Cluster,
  { address, info }: { address: string; info: DriverInfo },
): () => Promise<StartedProcess> {
  const run = randomBytes(2).toString('hex');
  return async () => {
    const sidecar = await startSidecar({
      program: candidate.command,
      csiAddress: address,
      kubeconfig: await cluster.sidecarKubeconfig(),
      namespace: cluster.sidecarNamespace,
      flags: [
        ...flags,
        `--leader-election-namespace=${cluster.sidecarNamespace}`,
        ...profile.sidecarFlags,
        ...(info.capabilities.has('GET_CAPACITY') ? capacityFlags : []),
      ],
    });
    void sidecar.ending().then((how) => keepLog(`${candidate.name} ${run}: ${how}`, sidecar.log()));
    return sidecar;
  };
}

async function working(sidecar: StartedProcess): Promise<void> {
  const hopeless = (): string | undefined => (sidecar.running() ? undefined : `it has ended:\n${sidecar.log()}`);
  await eventually(
    () => {
      if (!sidecar.log().includes(readyLine)) throw new Error(`the sidecar does not work:\n${sidecar.log()}`);
    },
    { hopeless },
  );
}
