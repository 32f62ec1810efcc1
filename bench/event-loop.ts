import path from 'node:path';
import { build } from 'esbuild';
import type { StartedProcess } from '../test/support/started-process.ts';
import { until } from '../test/support/stage.ts';

/** The longest time that an event loop was held, of the clock and of the CPU. */
export interface Held {
  heldMs: number;
  cpuMs: number;
}

/** Writes the probe into a folder. @returns the value of NODE_OPTIONS that loads it. */
export async function buildProbe(folder: string): Promise<string> {
  const probe = path.join(folder, 'probe.mjs');
  await build({ entryPoints: [path.join(import.meta.dirname, 'event-loop-probe.ts')], outfile: probe });
  return `--import=${probe}`;
}

/** Queries the probe in a process: the maximum since its start or the last query. */
export async function longestStall(process: StartedProcess): Promise<Held> {
  const lines = (): string[] => process.log().match(/(?<=^event loop ).*$/gm) ?? [];
  const before = lines().length;
  globalThis.process.kill(process.pid, 'SIGUSR2');
  await until('what the probe saw', () => lines().length > before, 10_000);
  return JSON.parse(lines().at(-1) ?? '') as Held;
}

/** As `12 ms (9 ms of CPU)`. */
export function heldText({ heldMs, cpuMs }: Held): string {
  return `${heldMs.toFixed(0)} ms (${cpuMs.toFixed(0)} ms of CPU)`;
}
