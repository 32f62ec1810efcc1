/**
 * `npm run bench`: what provisioning and deleting cost, on the real control plane where its programs are found or can
 * be built, else on the sandbox.
 */
import { execFile } from 'node:child_process';
import { cpus, tmpdir } from 'node:os';
import { mkdtemp } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Option } from 'commander';
import { scriptCommand, wholeNumber } from '../scripts/script-command.ts';
import { showing } from '../scripts/terminal-progress.ts';
import { type PersistentVolume, persistentVolumes } from '../src/provision/objects.ts';
import { type DriverProcess, startDriver } from '../test/support/driver-process.ts';
import { type StartedProcess, startProcess } from '../test/support/started-process.ts';
import { type BenchCluster, bundled, inParallel, removeFolder, startBenchCluster, until } from './bench-cluster.ts';
import { createClaim, createClass, deleteClaim } from './claims.ts';
import { buildProbe, heldText, longestStall } from './event-loop.ts';
import { cpuMs, memoryText, type MemoryUsage, memoryUsage, peakMb } from './process-usage.ts';
import { perItem } from './slope.ts';

const values = scriptCommand('npm run bench --', 'What provisioning and deleting cost.')
  .option('--claims <N>', 'claims in the larger of two runs, the other has a quarter of them', wholeNumber(2), 200)
  .addOption(new Option('--target <T>', 'cluster').choices(['kubernetes', 'sandbox']).default('kubernetes'))
  .option('--program <CMD>', 'what to run as the sidecar; default: the bundle as the image runs it')
  .option('--peer <CMD>', 'another sidecar, run the same way on the same cluster and driver; ratios are printed')
  .option('--turns <N>', 'with a peer: runs of each that count, in alternating order', wholeNumber(), 2)
  .option('--peer-flags <F>', 'further flags for the peer, such as a raised client-side rate limit', '')
  .parse()
  .opts<{
    claims: number;
    target: 'kubernetes' | 'sandbox';
    program?: string;
    peer?: string;
    turns: number;
    peerFlags: string;
  }>();
const { claims: claimCount, target, turns, program = bundled } = values;

/** What one sidecar needed. */
interface Result {
  firstVolumeMs: number;
  /** CPU of the start, up to 3 s after its volume. */
  startCpuMs: number;
  claimsPerSecond: number;
  deletesPerSecond: number;
  /** Of the larger run, with what is needed even for no claim. */
  cpuMsPerClaim: number;
  cpuMsPerDelete: number;
  /** What one claim more costs. */
  cpuMsPerFurtherClaim: number;
  cpuMsPerFurtherDelete: number;
  idle: MemoryUsage;
  after: MemoryUsage;
  peakMb: number;
  createRequests: Map<string, number> | undefined;
  deleteRequests: Map<string, number> | undefined;
}

const fewerCount = Math.max(1, Math.floor(claimCount / 4));
const driverName = 'bench.csi.example.com';
const className = 'bench';
/** Width of the benchmark's own requests: wide enough to keep the sidecar busy, small enough to leave it the CPU. */
const width = 20;

async function main(): Promise<void> {
  await using cluster = await startBenchCluster(target);
  const folder = await mkdtemp(path.join(tmpdir(), 'bench-'));
  const driver = await startDriver({ driverName, folder });
  try {
    await createClass(cluster, className, driverName);
    console.log(
      `${claimCount} claims on ${cluster.name}, hostpath driver, ${cpus().length} CPUs, Node ${process.version}`,
    );
    if (values.peer === undefined) {
      const ours = await measure(cluster, driver, 'ours', program);
      print('ours', ours);
      await printStalls(cluster, driver, folder);
      await printFloors(cluster, driver, ours);
    } else {
      const [ours, peer] = await inTurns(cluster, driver, [program, `${values.peer} ${values.peerFlags}`]);
      print('ours', ours);
      print('peer', peer);
      printRatio(ours, peer);
      await printStalls(cluster, driver, folder);
      await printFloors(cluster, driver, ours);
    }
  } finally {
    await driver.stop();
    await removeFolder(folder);
  }
}

/** In alternating order, since the later run finds a warmer cluster. */
async function inTurns(
  cluster: BenchCluster,
  driver: DriverProcess,
  programs: readonly [string, string],
): Promise<[Result, Result]> {
  const results: [Result[], Result[]] = [[], []];
  await measure(cluster, driver, 'warm-up', programs[0]);
  for (let turn = 0; turn < turns; turn++) {
    for (const index of turn % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      const result = await measure(cluster, driver, `turn-${turn}-${index}`, programs[index]);
      results[index].push(result);
      console.log(
        `turn ${turn + 1}, ${['ours', 'peer'][index]}: ${result.claimsPerSecond.toFixed(1)} claims per second`,
      );
    }
  }
  return [mean(results[0]), mean(results[1])];
}

/** The requests are those of the last run. */
function mean(results: readonly Result[]): Result {
  const of = (get: (result: Result) => number): number =>
    results.reduce((sum, result) => sum + get(result), 0) / results.length;
  const memory = (get: (result: Result) => MemoryUsage): MemoryUsage => ({
    residentMb: of((result) => get(result).residentMb),
    anonymousMb: of((result) => get(result).anonymousMb),
    proportionalMb: of((result) => get(result).proportionalMb),
  });
  return {
    firstVolumeMs: of((result) => result.firstVolumeMs),
    startCpuMs: of((result) => result.startCpuMs),
    claimsPerSecond: of((result) => result.claimsPerSecond),
    deletesPerSecond: of((result) => result.deletesPerSecond),
    cpuMsPerClaim: of((result) => result.cpuMsPerClaim),
    cpuMsPerDelete: of((result) => result.cpuMsPerDelete),
    cpuMsPerFurtherClaim: of((result) => result.cpuMsPerFurtherClaim),
    cpuMsPerFurtherDelete: of((result) => result.cpuMsPerFurtherDelete),
    idle: memory((result) => result.idle),
    after: memory((result) => result.after),
    peakMb: of((result) => result.peakMb),
    createRequests: results.at(-1)?.createRequests,
    deleteRequests: results.at(-1)?.deleteRequests,
  };
}

async function measure(cluster: BenchCluster, driver: DriverProcess, prefix: string, program: string): Promise<Result> {
  await createClaim(cluster, `${prefix}-first`, className); // it waits for the sidecar: the time to the first volume
  const spawnedMs = performance.now();
  const sidecar = await start(cluster, driver, program);
  try {
    await until('the first volume', () => cluster.volumeNames.size > 0, 60_000);
    const firstVolumeMs = performance.now() - spawnedMs;
    await until('the first claim', () => cluster.boundClaims.has(`default/${prefix}-first`));
    await delay(3000); // idle
    const { pid } = sidecar;
    const [startCpuMs, idle] = [cpuMs(pid), memoryUsage(pid)];
    const fewer = await comeAndGo(cluster, pid, `${prefix}-fewer`, fewerCount);
    const all = await comeAndGo(cluster, pid, prefix, claimCount);
    const [after, peak] = [memoryUsage(pid), peakMb(pid)];
    await deleteClaim(cluster, `${prefix}-first`);
    await until('the last volume gone', () => cluster.volumeNames.size === 0);
    const [claims, deletes] = [perItem(fewer.create, all.create), perItem(fewer.remove, all.remove)];
    return {
      firstVolumeMs,
      startCpuMs,
      claimsPerSecond: claimCount / all.create.seconds,
      deletesPerSecond: claimCount / all.remove.seconds,
      cpuMsPerClaim: claims.average,
      cpuMsPerDelete: deletes.average,
      cpuMsPerFurtherClaim: claims.slope,
      cpuMsPerFurtherDelete: deletes.slope,
      idle,
      after,
      peakMb: peak,
      createRequests: all.create.requests,
      deleteRequests: all.remove.requests,
    };
  } catch (error) {
    console.error(sidecar.log().slice(-4000));
    throw error;
  } finally {
    await sidecar.stop();
  }
}

/** Starts a sidecar on the cluster and the driver. */
async function start(
  cluster: BenchCluster,
  driver: DriverProcess,
  program: string,
  nodeOptions?: string,
): Promise<StartedProcess> {
  const [command = '', ...words] = program.split(' ').filter((word) => word !== '');
  return await startProcess({
    program: command,
    args: [...words, `--csi-address=${driver.address}`, `--kubeconfig=${cluster.sidecarKubeconfig}`],
    env: { KUBECONFIG: undefined, NODE_OPTIONS: nodeOptions },
  });
}

/** Claims are created and, once all are bound, deleted. */
async function comeAndGo(cluster: BenchCluster, pid: number, prefix: string, count: number) {
  const before = { bound: cluster.boundClaims.size, volumes: cluster.volumeNames.size };
  const boundText = (): string => `${prefix}: ${cluster.boundClaims.size - before.bound} of ${count} claims bound`;
  const create = await showing(boundText, () =>
    phase(cluster, pid, count, async () => {
      await inParallel(count, width, (index) => createClaim(cluster, `${prefix}-${index}`, className));
      await until('all claims bound', () => cluster.boundClaims.size === before.bound + count);
    }),
  );
  const leftText = (): string => `${prefix}: ${cluster.volumeNames.size - before.volumes} of ${count} volumes left`;
  const remove = await showing(leftText, () =>
    phase(cluster, pid, count, async () => {
      await inParallel(count, width, (index) => deleteClaim(cluster, `${prefix}-${index}`));
      await until('all volumes gone', () => cluster.volumeNames.size === before.volumes);
    }),
  );
  await until('all claims gone', () => cluster.boundClaims.size === before.bound);
  return { create, remove };
}

/** How long the same load holds the event loop, in a process of its own: the probe that sees it takes CPU itself. */
async function printStalls(cluster: BenchCluster, driver: DriverProcess, folder: string): Promise<void> {
  const sidecar = await start(cluster, driver, program, await buildProbe(folder));
  try {
    await until('the start', () => sidecar.log().includes('Started provisioner controller'), 60_000);
    await delay(3000);
    const atStart = await longestStall(sidecar);
    await comeAndGo(cluster, sidecar.pid, 'stalls', claimCount);
    console.log(
      `  event loop          blocked for ${heldText(atStart)} at the start, ${heldText(await longestStall(sidecar))} under load`,
    );
  } finally {
    await sidecar.stop();
  }
}

/** Runs a piece of load; what comes late (events) is waited for, and counts. */
async function phase(cluster: BenchCluster, pid: number, count: number, load: () => Promise<void>) {
  const [fromMs, cpuBefore, startedMs] = [Date.now(), cpuMs(pid), performance.now()];
  await load();
  const seconds = (performance.now() - startedMs) / 1000;
  await delay(2000);
  const used = cpuMs(pid) - cpuBefore;
  return { count, seconds, cpuMs: used, requests: await cluster.requests(fromMs, Date.now()) };
}

async function printFloors(cluster: BenchCluster, driver: DriverProcess, ours: Result): Promise<void> {
  console.log('\nfloor: a bare script, one CreateVolume and three POSTs per claim');
  const paced = await floor(cluster, driver, ours.claimsPerSecond);
  const saturated = await floor(cluster, driver, Infinity);
  const ratio = (ours.cpuMsPerFurtherClaim / paced.cpuMsPerClaim).toFixed(2);
  console.log(`  at our pace         ${floorText(paced)}; a further claim of ours takes ${ratio} times that
  as fast as it goes  ${floorText(saturated)}`);
}

interface Floor {
  claimsPerSecond: number;
  cpuMsPerClaim: number;
}

function floorText({ claimsPerSecond, cpuMsPerClaim }: Floor): string {
  return `${claimsPerSecond.toFixed(0)} claims per second, ${cpuMsPerClaim.toFixed(2)} ms of CPU per claim`;
}

/** @param perSecond - claims begun in a second; `Infinity`: whenever an earlier one has ended. */
async function floor(cluster: BenchCluster, driver: DriverProcess, perSecond: number): Promise<Floor> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    path.join(import.meta.dirname, 'floor.ts'),
    `--kubeconfig=${cluster.sidecarKubeconfig}`,
    `--address=${driver.address}`,
    `--driver=${driverName}`,
    `--claims=${claimCount}`,
    `--per-second=${perSecond}`,
  ]);
  const { seconds, cpuMs: used } = JSON.parse(stdout) as { seconds: number; cpuMs: number };
  await inParallel(claimCount, width, (index) =>
    cluster.client.delete(persistentVolumes, { name: `floor-${index}` } satisfies Partial<
      PersistentVolume['metadata']
    >),
  );
  await until('the floor volumes gone', () => cluster.volumeNames.size === 0);
  return { claimsPerSecond: claimCount / seconds, cpuMsPerClaim: used / claimCount };
}

function print(name: string, result: Result): void {
  console.log(`
${name}
  first volume        ${result.firstVolumeMs.toFixed(0)} ms after the start of the process
  CPU of the start    ${result.startCpuMs.toFixed(0)} ms
  claims per second   ${result.claimsPerSecond.toFixed(1)}
  deletes per second  ${result.deletesPerSecond.toFixed(1)}
  CPU per claim       ${result.cpuMsPerFurtherClaim.toFixed(2)} ms from ${fewerCount} to ${claimCount}, ${result.cpuMsPerClaim.toFixed(2)} ms on average
  CPU per delete      ${result.cpuMsPerFurtherDelete.toFixed(2)} ms from ${fewerCount} to ${claimCount}, ${result.cpuMsPerDelete.toFixed(2)} ms on average
  memory idle         ${memoryText(result.idle)}
  memory after        ${memoryText(result.after)}; ${result.peakMb.toFixed(0)} MB resident at the peak
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
  const ratio = (of: (result: Result) => number): string => (of(ours) / of(peer)).toFixed(2);
  console.log(`\nours / peer: claims per second ${ratio((of) => of.claimsPerSecond)}, deletes per second ${ratio((of) => of.deletesPerSecond)}, \
CPU per claim ${ratio((of) => of.cpuMsPerFurtherClaim)}, CPU per delete ${ratio((of) => of.cpuMsPerFurtherDelete)} (from ${fewerCount} to ${claimCount}), \
idle memory ${ratio((of) => of.idle.residentMb)}, first volume ${ratio((of) => of.firstVolumeMs)}, CPU of the start ${ratio((of) => of.startCpuMs)}`);
}

await main();
