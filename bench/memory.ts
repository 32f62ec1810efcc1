/**
 * `npm run bench:memory`: what the sidecar needs when a cluster already holds many bound claims, and how long it holds
 * its event loop. The pairs are written into etcd while the controller manager is stopped.
 */
import { scriptCommand, wholeNumber } from '../scripts/script-command.ts';
import { showing } from '../scripts/terminal-progress.ts';
import { findPrograms } from '../test/support/control-plane/programs.ts';
import { goHelp, otherSidecar } from '../test/support/go-sidecar/go-sidecar.ts';
import { bundled } from '../test/support/program-file.ts';
import { Stage } from '../test/support/stage.ts';
import { driverName } from './bench-stage.ts';
import { boundPair } from '../test/support/bound-pair.ts';
import { putObjects, type StoredObject } from '../test/support/etcd-objects.ts';
import { buildProbe, heldText } from './event-loop.ts';
import { type FilledStartOptions, measureFilledStart, settleMs } from './filled-start.ts';
import { memoryText } from '../scripts/process-usage.ts';

const values = scriptCommand('npm run bench:memory --', 'Memory and event loop on a cluster with many bound claims.')
  .option('--pairs <N>', 'claims, and as many volumes', wholeNumber(), 50_000)
  .option('--handle-length <N>', "characters of a volume's handle, at least 40", wholeNumber(), 40)
  .option('--program <CMD>', 'what to run; default: the bundle with the flags of the image')
  .option('--peer <CMD>', `another sidecar on the same content; ${goHelp}`)
  .parse()
  .opts<{ pairs: number; handleLength: number; program?: string; peer?: string }>();
const { pairs, handleLength, program = bundled } = values;

async function main(): Promise<void> {
  const peer = await otherSidecar(values.peer);
  await findPrograms(); // compiles them the first time, with a progress line of its own
  await using stage = await showing(
    () => 'starting the control plane',
    () => Stage.open({ name: 'bench', cluster: { target: 'kubernetes' } }),
  );
  await stage.cluster.controllerManager?.stop();
  const driver = await stage.startDriver(driverName);
  const bytes = await writePairs(stage.cluster.etcdUrl ?? '');
  console.log(
    `${pairs} bound pairs, ${(bytes / pairs / 2).toFixed(0)} bytes of JSON an object, Node ${process.version}`,
  );
  const cluster = { csiAddress: driver.address, kubeconfig: stage.kubeconfig };
  await measure('ours', { ...cluster, program });
  if (peer !== undefined) await measure('peer', { ...cluster, program: peer });
  await printStalls({ ...cluster, program, probe: await buildProbe(stage.folder) });
}

/** Writes the pairs where the API server keeps them. @returns bytes of JSON. */
async function writePairs(etcdUrl: string): Promise<number> {
  let written = 0;
  function* objects(): Generator<StoredObject> {
    for (; written < pairs; written++) {
      const { claim, volume } = boundPair(written, driverName, handleLength);
      const { namespace, name } = claim.metadata;
      yield { key: `persistentvolumeclaims/${namespace}/${name}`, object: claim };
      yield { key: `persistentvolumes/${volume.metadata.name}`, object: volume };
    }
  }
  return await showing(
    () => `${written} of ${pairs} pairs written`,
    () => putObjects(etcdUrl, objects()),
  );
}

type Options = Omit<FilledStartOptions, 'patienceMs' | 'probe'>;
const patienceMs = 120_000 + 2 * pairs;

async function measure(name: string, options: Options): Promise<void> {
  const start = await showing(
    () => `${name}: starts and settles`,
    () => measureFilledStart({ ...options, patienceMs, probe: undefined }),
  );
  console.log(`
${name}
  caches ready     ${start.readySeconds.toFixed(1)} s after the start of the process
  CPU              ${start.cpuSeconds.toFixed(1)} s until ${settleMs / 1000} s later
  memory           ${memoryText(start.settled)}, settled; ${start.peakMb.toFixed(0)} MB resident at the peak`);
}

/** In a run of their own: the probe takes memory and CPU too. */
async function printStalls(options: Options & { probe: string }): Promise<void> {
  const { held } = await showing(
    () => 'ours, with the probe: starts and settles',
    () => measureFilledStart({ ...options, patienceMs }),
  );
  if (held === undefined) return;
  console.log(`
ours, with the probe
  event loop       blocked for ${heldText(held.start)} at the start, ${heldText(held.resync)} at a resync`);
}

await main();
