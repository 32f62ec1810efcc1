/** A cluster with one driver behind a proxy, one sidecar at a time, and the objects that the story makes. */
/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import { mkdir } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { Admin } from '../../test/support/admin.ts';
import type { ClusterTarget } from '../../test/support/cluster.ts';
import { installKinds, volumeSnapshotContentKind, volumeSnapshotKind } from '../../test/support/custom-kinds.ts';
import { patienceMs } from '../../test/support/patience.ts';
import { type KeepLog, openStage, type Stage, untilReady } from '../../test/support/stage.ts';
import type { StartedProcess } from '../../test/support/started-process.ts';
import { CsiClient, CsiProxy, type Message } from './csi-proxy.ts';
import { startTriedDriver } from './driver-program.ts';
import type { DriverProfile } from './drivers.ts';

export interface Candidate {
  name: 'ours' | 'peer';
  /** Words separated by spaces. */
  command: string;
}

export interface TriedOptions {
  candidate: Candidate;
  profile: DriverProfile;
  /** Words that start the driver. */
  driverCommand: readonly string[];
  target: ClusterTarget;
  /** Takes the log of each process that has ended. */
  keepLog: KeepLog;
}

export type TriedStage = Stage & {
  options: TriedOptions;
  csi: CsiProxy;
  /** The driver itself, past the proxy. */
  driver: CsiClient;
  info: DriverInfo;
  /** The sidecar that was started last. */
  sidecar: () => StartedProcess;
  /** Starts it, in place of one that has ended, and waits until it works. */
  start: () => Promise<void>;
  /** What differs between any two runs, with what stands for it; the story adds to it. */
  names: Map<string, string>;
};

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
const components = ['attachments', 'leader-election', 'topology', 'capacity', 'snapshots', 'attributes-classes'];
const flags = ['--timeout=5s', '--retry-interval-start=250ms', '-v=5', '--leader-election'];
const capacityFlags = [
  '--enable-capacity',
  '--capacity-ownerref-level=-1',
  '--capacity-poll-interval=1s',
  '--capacity-for-immediate-binding',
];

/** Opens a cluster of its own with the driver. */
export async function openTriedStage(options: TriedOptions): Promise<TriedStage> {
  const { candidate, target, keepLog } = options;
  const rbac = components.map((component) => `components/${component}/rbac.yaml`);
  const how = { name: 'try-driver', cluster: { target }, rbac, keepLog };
  return await openStage(how, async (stage) => {
    await installKinds(stage.cluster, stage.admin, [volumeSnapshotKind, volumeSnapshotContentKind]);
    const socket = `${stage.folder}/csi.sock`;
    const { csi, driver } = await startDriver(options, stage, socket);
    const info = await readInfo(driver);
    await makeCluster(stage.admin, info);
    const sidecarFlags = [
      ...flags,
      `--leader-election-namespace=${stage.cluster.sidecarNamespace}`,
      ...options.profile.sidecarFlags,
      ...(info.capabilities.has('GET_CAPACITY') ? capacityFlags : []),
    ];
    let sidecar: StartedProcess | undefined;
    return {
      options,
      csi,
      driver,
      info,
      sidecar: () => sidecar!,
      start: async () => {
        const csiAddress = `unix://${socket}`;
        const { name: title, command: program } = candidate;
        sidecar = await stage.startSidecar({ title, program, csiAddress, flags: sidecarFlags });
        await untilReady(sidecar, patienceMs);
      },
      names: new Map([
        [hostname(), '<host>'],
        [stage.folder, '<folder>'],
      ]),
    };
  });
}

async function startDriver(
  { profile, driverCommand, keepLog, candidate }: TriedOptions,
  stage: Stage,
  socketPath: string,
): Promise<{ csi: CsiProxy; driver: CsiClient }> {
  const place = { socket: `${stage.folder}/driver.sock`, folder: `${stage.folder}/driver`, driverName };
  await mkdir(place.folder);
  const process = await startTriedDriver(profile, driverCommand, place);
  void process.ending().then((how) => keepLog(`driver for ${candidate.name}: ${how}`, process.log()));
  stage.defer(() => process.stop('SIGKILL'));
  const driver = new CsiClient(place.socket);
  stage.defer(() => driver[Symbol.dispose]());
  const csi = await CsiProxy.start(socketPath, place.socket);
  stage.defer(() => csi[Symbol.asyncDispose]());
  return { csi, driver };
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
