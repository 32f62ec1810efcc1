/**
 * `npm run bench:memory`: what the sidecar needs when a cluster already holds many bound claims, and how long it holds
 * its event loop. The pairs are written into etcd while the controller manager is stopped.
 */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { scriptCommand, wholeNumber } from '../scripts/script-command.ts';
import { showing } from '../scripts/terminal-progress.ts';
import { startControlPlane } from '../test/support/control-plane/control-plane.ts';
import { findPrograms } from '../test/support/control-plane/programs.ts';
import { startDriver } from '../test/support/driver-process.ts';
import { goHelp, otherSidecar } from '../test/support/go-sidecar/go-sidecar.ts';
import { attachToCluster } from '../test/support/kubernetes-cluster.ts';
import { bundled, removeFolder } from './bench-cluster.ts';
import { boundPair } from './bound-pair.ts';
import { putObjects, type StoredObject } from './etcd-objects.ts';
import { buildProbe, heldText } from './event-loop.ts';
import { type FilledStartOptions, measureFilledStart, settleMs } from './filled-start.ts';
import { memoryText } from './process-usage.ts';

const values = scriptCommand('npm run bench:memory --', 'Memory and event loop on a cluster with many bound claims.')
  .option('--pairs <N>', 'claims, and as many volumes', wholeNumber(), 50_000)
  .option('--handle-length <N>', "characters of a volume's handle, at least 40", wholeNumber(), 40)
  .option('--program <CMD>', 'what to run; default: the bundle with the flags of the image')
  .option('--peer <CMD>', `another sidecar on the same content; ${goHelp}`)
  .parse()
  .opts<{ pairs: number; handleLength: number; program?: string; peer?: string }>();
const { pairs, handleLength, program = bundled } = values;
const driverName = 'bench.csi.example.com';

async function main(): Promise<void> {
  const peer = await otherSidecar(values.peer);
  const binDir = await findPrograms(); // compiles them the first time, with a progress line of its own
  await using plane = await showing(
    () => 'starting the control plane',
    () => startControlPlane({ binDir }),
  );
  await plane.stopControllerManager();
  const attached = await attachToCluster(plane.adminKubeconfig);
  const folder = await mkdtemp(path.join(tmpdir(), 'bench-'));
  const driver = await startDriver({ driverName, folder });
  try {
    const bytes = await writePairs(plane.etcdUrl);
    console.log(
      `${pairs} bound pairs, ${(bytes / pairs / 2).toFixed(0)} bytes of JSON an object, Node ${process.version}`,
    );
    const cluster = { csiAddress: driver.address, kubeconfig: await attached.sidecarKubeconfig() };
    await measure('ours', { ...cluster, program });
    if (peer !== undefined) await measure('peer', { ...cluster, program: peer });
    await printStalls({ ...cluster, program, probe: await buildProbe(folder) });
  } finally {
    await driver.stop();
    await attached.stop();
    await removeFolder(folder);
  }
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
