/**
 * `npm run bench`: what provisioning and deleting cost, on the real control plane where its programs are found or can
 * be built, else on the sandbox. Flags:
 *
 *   --claims N        claims in one run (default 200)
 *   --target T        kubernetes (default) or sandbox
 *   --program 'CMD'   what to run as the sidecar, default the bundle as the image runs it
 *   --peer 'CMD'      another sidecar, run the same way on the same cluster and driver; ratios are printed
 *   --peer-flags 'F'  further flags for the peer, such as a raised client-side rate limit
 */
import { execFile } from 'node:child_process';
import { cpus, tmpdir } from 'node:os';
import { mkdtemp } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import { type PersistentVolume, persistentVolumes } from '../src/provision/objects.ts';
import { type DriverProcess, startDriver } from '../test/support/driver-process.ts';
import { startProcess } from '../test/support/started-process.ts';
import { type BenchCluster, bundled, inParallel, removeFolder, startBenchCluster, until } from './bench-cluster.ts';
import { createClaim, createClass, deleteClaim } from './claims.ts';
import { cpuMs, peakMb, residentMb } from './process-usage.ts';

const { values } = parseArgs({
  options: {
    claims: { type: 'string', default: '200' },
    target: { type: 'string', default: 'kubernetes' },
    program: { type: 'string', default: bundled },
    peer: { type: 'string' },
    'peer-flags': { type: 'string', default: '' },
  },
});

/** What one sidecar needed. */
interface Result {
  firstVolumeMs: number;
  claimsPerSecond: number;
  deletesPerSecond: number;
  cpuMsPerClaim: number;
  cpuMsPerDelete: number;
  idleMb: number;
  afterMb: number;
  peakMb: number;
  createRequests: Map<string, number> | undefined;
  deleteRequests: Map<string, number> | undefined;
}

const claimCount = Number(values.claims);
const driverName = 'bench.csi.example.com';
const className = 'bench';
/** Width of the benchmark's own requests: wide enough to keep the sidecar busy, small enough to leave it the CPU. */
const width = 20;

async function main(): Promise<void> {
  const target = values.target === 'sandbox' ? 'sandbox' : 'kubernetes';
  await using cluster = await startBenchCluster(target);
  const folder = await mkdtemp(path.join(tmpdir(), 'bench-'));
  const driver = await startDriver({ driverName, folder });
  try {
    await createClass(cluster, className, driverName);
    console.log(
      `${claimCount} claims on ${cluster.name}, hostpath driver, ${cpus().length} CPUs, Node ${process.version}`,
    );
    const ours = await measure(cluster, driver, 'ours', values.program, '');
    print('ours', ours);
    await printFloor(cluster, driver, ours);
    if (values.peer !== undefined) {
      const peer = await measure(cluster, driver, 'peer', values.peer, values['peer-flags']);
      print('peer', peer);
      printRatio(ours, peer);
    }
  } finally {
    await driver.stop();
    await removeFolder(folder);
  }
}

async function measure(
  cluster: BenchCluster,
  driver: DriverProcess,
  prefix: string,
  program: string,
  flags: string,
): Promise<Result> {
  await createClaim(cluster, `${prefix}-first`, className); // it waits for the sidecar: the time to the first volume
  const [command = '', ...words] = [...program.split(' '), ...flags.split(' ')].filter((word) => word !== '');
  const spawnedMs = performance.now();
  const sidecar = await startProcess({
    program: command,
    args: [...words, `--csi-address=${driver.address}`, `--kubeconfig=${cluster.sidecarKubeconfig}`],
    env: { KUBECONFIG: undefined },
  });
  try {
    await until('the first volume', () => cluster.volumeNames.size > 0, 60_000);
    const firstVolumeMs = performance.now() - spawnedMs;
    await until('the first claim', () => cluster.boundClaims.has(`default/${prefix}-first`));
    await delay(3000); // idle
    const { pid } = sidecar;
    const idleMb = residentMb(pid);
    const create = await phase(cluster, pid, async () => {
      await inParallel(claimCount, width, (index) => createClaim(cluster, `${prefix}-${index}`, className));
      await until('all claims bound', () => cluster.boundClaims.size === claimCount + 1);
    });
    const remove = await phase(cluster, pid, async () => {
      await inParallel(claimCount, width, (index) => deleteClaim(cluster, `${prefix}-${index}`));
      await until('all volumes gone', () => cluster.volumeNames.size === 1);
    });
    const afterMb = residentMb(pid);
    const peak = peakMb(pid);
    await deleteClaim(cluster, `${prefix}-first`);
    await until('the last volume gone', () => cluster.volumeNames.size === 0);
    return {
      firstVolumeMs,
      claimsPerSecond: claimCount / create.seconds,
      deletesPerSecond: claimCount / remove.seconds,
      cpuMsPerClaim: create.cpuMs / claimCount,
      cpuMsPerDelete: remove.cpuMs / claimCount,
      idleMb,
      afterMb,
      peakMb: peak,
      createRequests: create.requests,
      deleteRequests: remove.requests,
    };
  } catch (error) {
    console.error(sidecar.log().slice(-4000));
    throw error;
  } finally {
    await sidecar.stop();
  }
}

/** Runs a piece of load; what comes late (events) is waited for, and counts. */
async function phase(cluster: BenchCluster, pid: number, load: () => Promise<void>) {
  const [fromMs, cpuBefore, startedMs] = [Date.now(), cpuMs(pid), performance.now()];
  await load();
  const seconds = (performance.now() - startedMs) / 1000;
  await delay(2000);
  const used = cpuMs(pid) - cpuBefore;
  return { seconds, cpuMs: used, requests: await cluster.requests(fromMs, Date.now()) };
}

async function printFloor(cluster: BenchCluster, driver: DriverProcess, ours: Result): Promise<void> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    path.join(import.meta.dirname, 'floor.ts'),
    `--kubeconfig=${cluster.sidecarKubeconfig}`,
    `--address=${driver.address}`,
    `--driver=${driverName}`,
    `--claims=${claimCount}`,
  ]);
  const { seconds, cpuMs: used } = JSON.parse(stdout) as { seconds: number; cpuMs: number };
  const perClaim = used / claimCount;
  console.log(`\nfloor: a bare script, one CreateVolume and three POSTs per claim
  claims per second  ${(claimCount / seconds).toFixed(0)}
  CPU per claim      ${perClaim.toFixed(2)} ms; ours is ${(ours.cpuMsPerClaim / perClaim).toFixed(2)} times that`);
  await inParallel(claimCount, width, (index) =>
    cluster.client.delete(persistentVolumes, { name: `floor-${index}` } satisfies Partial<
      PersistentVolume['metadata']
    >),
  );
  await until('the floor volumes gone', () => cluster.volumeNames.size === 0);
}

function print(name: string, result: Result): void {
  console.log(`
${name}
  first volume       ${result.firstVolumeMs.toFixed(0)} ms after the start of the process
  claims per second  ${result.claimsPerSecond.toFixed(1)}
  deletes per second ${result.deletesPerSecond.toFixed(1)}
  CPU per claim      ${result.cpuMsPerClaim.toFixed(2)} ms
  CPU per delete     ${result.cpuMsPerDelete.toFixed(2)} ms
  resident memory    ${result.idleMb.toFixed(0)} MB idle, ${result.afterMb.toFixed(0)} MB after, ${result.peakMb.toFixed(0)} MB at the peak
  requests per claim  ${requestText(result.createRequests)}
  requests per delete ${requestText(result.deleteRequests)}`);
}

function requestText(requests: Map<string, number> | undefined): string {
  if (requests === undefined) return 'not recorded here';
  return [...requests]
    .toSorted(([, a], [, b]) => b - a)
    .map(([what, count]) => `${what} ${(count / claimCount).toFixed(2)}`)
    .join(', ');
}

function printRatio(ours: Result, peer: Result): void {
  const ratio = (key: keyof Result): string => (Number(ours[key]) / Number(peer[key])).toFixed(2);
  console.log(`\nours / peer: claims per second ${ratio('claimsPerSecond')}, deletes per second ${ratio('deletesPerSecond')}, \
CPU per claim ${ratio('cpuMsPerClaim')}, CPU per delete ${ratio('cpuMsPerDelete')}, idle memory ${ratio('idleMb')}`);
}

await main();
