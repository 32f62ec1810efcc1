/** The load of `npm run bench`: claims come, become bound and go, and what that took of a sidecar. */
import { setTimeout as delay } from 'node:timers/promises';
import { showing } from '../scripts/terminal-progress.ts';
import type { DriverProcess } from '../test/support/driver-process.ts';
import { type StartedProcess, startProcess } from '../test/support/started-process.ts';
import { type BenchCluster, inParallel, until } from './bench-cluster.ts';
import { createClaim, deleteClaim } from './claims.ts';
import { cpuMs, machineCpuMs, type MemoryUsage, memoryUsage, peakMb } from './process-usage.ts';
import { perItem } from './slope.ts';

/** Width of the benchmark's own requests: wide enough to keep the sidecar busy, small enough to leave it the CPU. */
export const width = 20;

/** On what a sidecar is measured. */
export interface LoadOptions {
  cluster: BenchCluster;
  driver: DriverProcess;
  className: string;
  /** Of the larger of two loads. */
  claimCount: number;
  /** Of the smaller one. */
  fewerCount: number;
}

/** What one sidecar needed. */
export interface Result {
  firstVolumeMs: number;
  /** CPU of the start, up to 3 s after its volume. */
  startCpuMs: number;
  /** From the first claim to the moment in which all volumes were saved. */
  volumesPerSecond: number;
  /** CPU of the sidecar until then. */
  savedCpuMs: number;
  /** CPU of everything else on the machine until then. */
  savedOtherCpuMs: number;
  /** Until all claims were bound. */
  boundSeconds: number;
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

/**
 * Runs a sidecar under both loads.
 *
 * @param prefix - of the names of the claims; no two runs on a cluster may share one.
 */
export async function measure(options: LoadOptions, prefix: string, program: string): Promise<Result> {
  const { cluster, className, claimCount, fewerCount } = options;
  await createClaim(cluster, `${prefix}-first`, className); // it waits for the sidecar: the time to the first volume
  const spawnedMs = performance.now();
  const sidecar = await start(options, program);
  try {
    await until('the first volume', () => cluster.volumeNames.size > 0, 60_000);
    const firstVolumeMs = performance.now() - spawnedMs;
    await until('the first claim', () => cluster.boundClaims.has(`default/${prefix}-first`));
    await delay(3000); // idle
    const { pid } = sidecar;
    const [startCpuMs, idle] = [cpuMs(pid), memoryUsage(pid)];
    const fewer = await comeAndGo(options, pid, `${prefix}-fewer`, fewerCount);
    const all = await comeAndGo(options, pid, prefix, claimCount);
    const [after, peak] = [memoryUsage(pid), peakMb(pid)];
    await deleteClaim(cluster, `${prefix}-first`);
    await until('the last volume gone', () => cluster.volumeNames.size === 0);
    const [claims, deletes] = [perItem(fewer.create, all.create), perItem(fewer.remove, all.remove)];
    return {
      firstVolumeMs,
      startCpuMs,
      volumesPerSecond: claimCount / all.saved.seconds,
      savedCpuMs: all.saved.cpuMs,
      savedOtherCpuMs: all.saved.otherCpuMs,
      boundSeconds: all.create.seconds,
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
export async function start(
  { cluster, driver }: LoadOptions,
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
export async function comeAndGo({ cluster, className }: LoadOptions, pid: number, prefix: string, count: number) {
  const before = { bound: cluster.boundClaims.size, volumes: cluster.volumeNames.size };
  const boundText = (): string => `${prefix}: ${cluster.boundClaims.size - before.bound} of ${count} claims bound`;
  let saved = { seconds: Number.NaN, cpuMs: Number.NaN, otherCpuMs: Number.NaN };
  const create = await showing(boundText, () =>
    phase(cluster, pid, count, async () => {
      const [startedMs, cpuBefore, machineBefore] = [performance.now(), cpuMs(pid), machineCpuMs()];
      const allSaved = async (): Promise<void> => {
        await until('all volumes saved', () => cluster.volumeNames.size === before.volumes + count);
        const [used, all] = [cpuMs(pid) - cpuBefore, machineCpuMs() - machineBefore];
        saved = { seconds: (performance.now() - startedMs) / 1000, cpuMs: used, otherCpuMs: all - used };
      };
      const allBound = async (): Promise<void> => {
        await inParallel(count, width, (index) => createClaim(cluster, `${prefix}-${index}`, className));
        await until('all claims bound', () => cluster.boundClaims.size === before.bound + count);
      };
      await Promise.all([allBound(), allSaved()]);
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
  return { create, remove, saved };
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
