/** What `npm run bench` prints of its measurements. */
import { memoryText, type MemoryUsage } from '../scripts/process-usage.ts';
import type { Result } from './sidecar-load.ts';

/** Claims of the larger load and of the smaller one. */
export interface Counts {
  claimCount: number;
  fewerCount: number;
}

/** Of several runs; the requests are those of the last one. */
export function mean(results: readonly Result[]): Result {
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
    volumesPerSecond: of((result) => result.volumesPerSecond),
    savedCpuMs: of((result) => result.savedCpuMs),
    savedOtherCpuMs: of((result) => result.savedOtherCpuMs),
    boundSeconds: of((result) => result.boundSeconds),
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

export function print(name: string, result: Result, { claimCount, fewerCount }: Counts): void {
  console.log(`
${name}
  first volume        ${result.firstVolumeMs.toFixed(0)} ms after the start of the process
  CPU of the start    ${result.startCpuMs.toFixed(0)} ms
  volumes per second  ${result.volumesPerSecond.toFixed(1)} saved; until then ${savedCpuText(result, claimCount)}
  claims per second   ${result.claimsPerSecond.toFixed(1)} bound
  deletes per second  ${result.deletesPerSecond.toFixed(1)}
  CPU per claim       ${result.cpuMsPerFurtherClaim.toFixed(2)} ms from ${fewerCount} to ${claimCount}, ${result.cpuMsPerClaim.toFixed(2)} ms on average
  CPU per delete      ${result.cpuMsPerFurtherDelete.toFixed(2)} ms from ${fewerCount} to ${claimCount}, ${result.cpuMsPerDelete.toFixed(2)} ms on average
  memory idle         ${memoryText(result.idle)}
  memory after        ${memoryText(result.after)}; ${result.peakMb.toFixed(0)} MB resident at the peak
  requests per claim  ${requestText(result.createRequests, claimCount)}
  requests per delete ${requestText(result.deleteRequests, claimCount)}`);
}

/** The CPU that it took until all volumes were saved, in the sidecar and in all other processes. Where all CPUs are busy, the pace follows from the sum. */
function savedCpuText({ savedCpuMs, savedOtherCpuMs, volumesPerSecond }: Result, claimCount: number): string {
  const busy = (savedCpuMs + savedOtherCpuMs) / 1000 / (claimCount / volumesPerSecond);
  return `${(savedCpuMs / 1000).toFixed(1)} s of CPU in the sidecar, ${(savedOtherCpuMs / 1000).toFixed(1)} s in other processes, ${busy.toFixed(2)} CPUs busy`;
}

function requestText(requests: Map<string, number> | undefined, claimCount: number): string {
  if (requests === undefined) return 'not recorded here';
  return [...requests]
    .toSorted(([, a], [, b]) => b - a)
    .map(([what, count]) => `${what} ${(count / claimCount).toFixed(2)}`)
    .join(', ');
}
