/**
 * `npm run bench:memory`: what the sidecar needs when a cluster already holds many bound claims, and how long it holds
 * its event loop. The pairs are written into etcd while the controller manager is stopped. Flags:
 *
 *   --pairs N         claims, and as many volumes (default 50000)
 *   --program 'CMD'   what to run, default the bundle with the flags of the image
 *   --peer 'CMD'      another sidecar on the same content
 */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { startControlPlane } from '../test/support/control-plane/control-plane.ts';
import { startDriver } from '../test/support/driver-process.ts';
import { attachToCluster } from '../test/support/kubernetes-cluster.ts';
import { bundled, removeFolder } from './bench-cluster.ts';
import { boundPair } from './bound-pair.ts';
import { putObjects, type StoredObject } from './etcd-objects.ts';
import { buildProbe, heldText } from './event-loop.ts';
import { type FilledStartOptions, measureFilledStart, settleMs } from './filled-start.ts';
import { memoryText } from './process-usage.ts';

const { values } = parseArgs({
  options: {
    pairs: { type: 'string', default: '50000' },
    program: { type: 'string', default: bundled },
    peer: { type: 'string' },
  },
});
const driverName = 'bench.csi.example.com';

async function main(): Promise<void> {
  const pairs = Number(values.pairs);
  await using plane = await startControlPlane();
  await plane.stopControllerManager();
  const attached = await attachToCluster(plane.adminKubeconfig);
  const folder = await mkdtemp(path.join(tmpdir(), 'bench-'));
  const driver = await startDriver({ driverName, folder });
  try {
    const bytes = await putObjects(plane.etcdUrl, storedPairs(pairs));
    console.log(
      `${pairs} bound pairs, ${(bytes / pairs / 2).toFixed(0)} bytes of JSON an object, Node ${process.version}`,
    );
    const kubeconfig = await attached.sidecarKubeconfig();
    const probe = await buildProbe(folder);
    const cluster = { csiAddress: driver.address, kubeconfig };
    await measure('ours', { ...cluster, program: values.program, probe });
    if (values.peer !== undefined) await measure('peer', { ...cluster, program: values.peer, probe: undefined });
  } finally {
    await driver.stop();
    await attached.stop();
    await removeFolder(folder);
  }
}

function* storedPairs(pairs: number): Generator<StoredObject> {
  for (let index = 0; index < pairs; index++) {
    const { claim, volume } = boundPair(index, driverName);
    const { namespace, name } = claim.metadata;
    yield { key: `persistentvolumeclaims/${namespace}/${name}`, object: claim };
    yield { key: `persistentvolumes/${volume.metadata.name}`, object: volume };
  }
}

async function measure(name: string, options: Omit<FilledStartOptions, 'patienceMs'>): Promise<void> {
  const patienceMs = 120_000 + 2 * Number(values.pairs);
  const { readySeconds, cpuSeconds, settled, peakMb, held } = await measureFilledStart({ ...options, patienceMs });
  console.log(`
${name}
  caches ready     ${readySeconds.toFixed(1)} s after the start of the process
  CPU              ${cpuSeconds.toFixed(1)} s until ${settleMs / 1000} s later
  memory           ${memoryText(settled)}, settled; ${peakMb.toFixed(0)} MB resident at the peak`);
  if (held === undefined) return;
  console.log(`  event loop       held for ${heldText(held.start)} at the start, ${heldText(held.resync)} at a resync`);
}

await main();
