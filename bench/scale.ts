/**
 * `npm run bench:scale`: how memory, start and event loop grow with the number of bound pairs, up to a million. A server
 * of the benchmark (`bench/list-server.ts`) generates the lists, so no cluster has to hold them.
 */
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Option } from 'commander';
import { scriptCommand, wholeNumber } from '../scripts/script-command.ts';
import { showing } from '../scripts/terminal-progress.ts';
import { kubeconfigText } from '../sandbox/kubeconfig.ts';
import { startDriver } from '../test/support/driver-process.ts';
import { startAnnounced } from '../test/support/started-process.ts';
import { bundled } from '../test/support/program-file.ts';
import { driverName } from './bench-stage.ts';
import { buildProbe, heldText } from './event-loop.ts';
import { type FilledStart, type FilledStartOptions, measureFilledStart } from './filled-start.ts';

const listForms = ['streamed', 'paged'];
const values = scriptCommand('npm run bench:scale --', 'Memory, start and event loop with up to a million bound pairs.')
  .option('--pairs <A,B,C>', 'claims, and as many volumes', numbers, [50_000, 200_000, 500_000, 1_000_000])
  .addOption(
    new Option('--lists <L>', 'as the events of a watch, or 500 objects in a response')
      .choices(listForms)
      .default('streamed'),
  )
  .addOption(new Option('--coding <C>').choices(['protobuf', 'json']).default('protobuf'))
  .option('--program <CMD>', 'what to run; default: the bundle with the flags of the image')
  .parse()
  .opts<{ pairs: number[]; lists: string; coding: string; program?: string }>();
const { program = bundled } = values;

function numbers(text: string): number[] {
  return text.split(',').map(wholeNumber());
}

async function main(): Promise<void> {
  await using root = await mkdtempDisposable(path.join(tmpdir(), 'bench-'));
  const folder = root.path;
  const driver = await startDriver({ driverName, folder });
  try {
    const kubeconfig = path.join(folder, 'kubeconfig');
    const probe = await buildProbe(folder);
    console.log(`Lists ${values.lists}, ${values.coding}, Node ${process.version}`);
    for (const pairs of values.pairs) {
      const patienceMs = 120_000 + 2 * pairs;
      const sidecar = { program, csiAddress: driver.address, kubeconfig, probe, patienceMs };
      const measured = await showing(
        () => `${pairs} pairs: starts and settles`,
        () => measure(pairs, sidecar),
      );
      print(pairs, measured);
    }
  } finally {
    await driver.stop();
  }
}

async function measure(pairs: number, sidecar: FilledStartOptions): Promise<FilledStart> {
  const { process: server, announced } = await startAnnounced<{ url: string }>({
    program: process.execPath,
    args: [
      path.join(import.meta.dirname, 'list-server.ts'),
      `--pairs=${pairs}`,
      `--driver=${driverName}`,
      `--lists=${values.lists}`,
      `--coding=${values.coding}`,
    ],
  });
  try {
    await writeFile(sidecar.kubeconfig, kubeconfigText(announced));
    return await measureFilledStart(sidecar);
  } finally {
    await server.stop('SIGKILL');
  }
}

function print(pairs: number, { readySeconds, cpuSeconds, settled, peakMb, held }: FilledStart): void {
  const bytes = ((settled.residentMb * 1e6) / pairs).toFixed(0);
  console.log(`
${pairs} bound pairs
  caches ready     ${readySeconds.toFixed(1)} s after the start, ${cpuSeconds.toFixed(1)} s of CPU until settled
  resident memory  ${settled.residentMb.toFixed(0)} MB settled, ${peakMb.toFixed(0)} MB at the peak; ${bytes} bytes a pair
  event loop       blocked for ${held === undefined ? '?' : `${heldText(held.start)} at the start, ${heldText(held.resync)} at a resync`}`);
}

await main();
