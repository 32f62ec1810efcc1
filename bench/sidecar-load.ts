/** The load of `npm run bench`: claims come, become bound and go, and what that took of a sidecar. */
import { setTimeout as delay } from 'node:timers/promises';
import { showing } from '../scripts/terminal-progress.ts';
import { inParallel, until } from '../test/support/stage.ts';
import type { StartedProcess } from '../test/support/started-process.ts';
import { type BenchStage, className, width } from './bench-stage.ts';
import { cpuMs, machineCpuMs, type MemoryUsage, memoryUsage, peakMb } from '../scripts/process-usage.ts';
import { perItem } from './statistics.ts';

/** On what a sidecar is measured. */
export interface LoadOptions {
  stage: BenchStage;
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
  const { stage, claimCount, fewerCount } = options;
  await stage.createClaim({ name: `${prefix}-first` }, className); // it waits for the sidecar: the time to the first volume
  const spawnedMs = performance.now();
  const sidecar = await start(stage, program);
  try {
    await until('the first volume', () => stage.volumeNames.size > 0, 60_000);
    const firstVolumeMs = performance.now() - spawnedMs;
    await until('the first claim', () => stage.boundClaims.has(`default/${prefix}-first`));
    await delay(3000); // idle
    const { pid } = sidecar;
    const [startCpuMs, idle] = [cpuMs(pid), memoryUsage(pid)];
    const fewer = await comeAndGo(options, pid, `${prefix}-fewer`, fewerCount);
    const all = await comeAndGo(options, pid, prefix, claimCount);
    const [after, peak] = [memoryUsage(pid), peakMb(pid)];
    await stage.deleteClaim({ name: `${prefix}-first` });
    await until('the last volume gone', () => stage.volumeNames.size === 0);
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

/** Starts a sidecar on the stage's driver. */
export async function start(stage: BenchStage, program: string, nodeOptions?: string): Promise<StartedProcess> {
  return await stage.startSidecar({
    program,
    csiAddress: stage.driver.address,
    environment: { NODE_OPTIONS: nodeOptions },
  });
}

/** Claims are created and, once all are bound, deleted. */
export async function comeAndGo({ stage }: LoadOptions, pid: number, prefix: string, count: number) {
  const before = { bound: stage.boundClaims.size, volumes: stage.volumeNames.size };
  const boundText = (): string => `${prefix}: ${stage.boundClaims.size - before.bound} of ${count} claims bound`;
  let saved = { seconds: Number.NaN, cpuMs: Number.NaN, otherCpuMs: Number.NaN };
  const create = await showing(boundText, () =>
    phase(stage, pid, count, async () => {
      const [startedMs, cpuBefore, machineBefore] = [performance.now(), cpuMs(pid), machineCpuMs()];
      const allSaved = async (): Promise<void> => {
        await until('all volumes saved', () => stage.volumeNames.size === before.volumes + count);
        const [used, all] = [cpuMs(pid) - cpuBefore, machineCpuMs() - machineBefore];
        saved = { seconds: (performance.now() - startedMs) / 1000, cpuMs: used, otherCpuMs: all - used };
      };
      const allBound = async (): Promise<void> => {
        await inParallel(count, width, (index) => stage.createClaim({ name: `${prefix}-${index}` }, className));
        await until('all claims bound', () => stage.boundClaims.size === before.bound + count);
      };
      await Promise.all([allBound(), allSaved()]);
    }),
  );
  const leftText = (): string => `${prefix}: ${stage.volumeNames.size - before.volumes} of ${count} volumes left`;
  const remove = await showing(leftText, () =>
    phase(stage, pid, count, async () => {
      await inParallel(count, width, (index) => stage.deleteClaim({ name: `${prefix}-${index}` }));
      await until('all volumes gone', () => stage.volumeNames.size === before.volumes);
    }),
  );
  await until('all claims gone', () => stage.boundClaims.size === before.bound);
  return { create, remove, saved };
}

/** Runs a piece of load; what comes late (events) is waited for, and counts. */
async function phase(stage: BenchStage, pid: number, count: number, load: () => Promise<void>) {
  const [fromMs, cpuBefore, startedMs] = [Date.now(), cpuMs(pid), performance.now()];
  await load();
  const seconds = (performance.now() - startedMs) / 1000;
  await delay(2000);
  const used = cpuMs(pid) - cpuBefore;
  return { count, seconds, cpuMs: used, requests: await stage.requests(fromMs, Date.now()) };
}
