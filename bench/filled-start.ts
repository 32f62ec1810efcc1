import { setTimeout as delay } from 'node:timers/promises';
import { startSidecar, type SidecarProcessOptions } from '../test/support/sidecar-process.ts';
import { untilReady } from '../test/support/stage.ts';
import { type Held, longestStall } from './event-loop.ts';
import { cpuMs, memoryUsage, type MemoryUsage, peakMb } from '../scripts/process-usage.ts';

/** Until memory is measured, in milliseconds. */
export const settleMs = 20_000;
/** Then the resync that the probe brings forward takes up to this long. */
const resyncMs = 15_000;

/** What a sidecar needed to start on a cluster that holds many pairs. */
export interface FilledStart {
  readySeconds: number;
  /** Until `settleMs` after that. */
  cpuSeconds: number;
  settled: MemoryUsage;
  peakMb: number;
  /** Undefined for a program that is not Node.js. */
  held: { start: Held; resync: Held } | undefined;
}

export interface FilledStartOptions extends Pick<SidecarProcessOptions, 'program' | 'csiAddress' | 'kubeconfig'> {
  /** NODE_OPTIONS with the probe; undefined: it is no Node.js program. */
  probe: string | undefined;
  /** Max time until its caches are filled, in milliseconds. */
  patienceMs: number;
}

/** Starts a sidecar, waits until its caches are filled and all is settled, and ends it. @throws with its log. */
export async function measureFilledStart(options: FilledStartOptions): Promise<FilledStart> {
  const { probe, patienceMs } = options;
  const startedMs = performance.now();
  const sidecar = await startSidecar({
    ...options,
    namespace: 'default',
    flags: ['-v=3'],
    environment: { NODE_OPTIONS: probe },
  });
  try {
    await untilReady(sidecar, patienceMs);
    const readySeconds = (performance.now() - startedMs) / 1000;
    await delay(settleMs);
    const usage = {
      readySeconds,
      cpuSeconds: cpuMs(sidecar.pid) / 1000,
      settled: memoryUsage(sidecar.pid),
      peakMb: peakMb(sidecar.pid),
    };
    if (probe === undefined) return { ...usage, held: undefined };
    const start = await longestStall(sidecar);
    await delay(resyncMs);
    return { ...usage, held: { start, resync: await longestStall(sidecar) } };
  } finally {
    await sidecar.stop();
  }
}
