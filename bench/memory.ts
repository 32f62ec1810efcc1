/**
 * `npm run bench:memory`: what the sidecar needs when a cluster already holds many bound claims, and how long it holds
 * its event loop. The pairs are written into etcd while the controller manager is stopped.
 */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { scriptCommand, wholeNumber } from '../scripts/script-command.ts';
import { showing } from '../scripts/terminal-progress.ts';
import { type ControlPlane, startControlPlane } from '../test/support/control-plane/control-plane.ts';
import { findPrograms } from '../test/support/control-plane/programs.ts';
import { startDriver } from '../test/support/driver-process.ts';
import { attachToCluster } from '../test/support/kubernetes-cluster.ts';
import { bundled, removeFolder } from './bench-cluster.ts';
import { boundPair } from './bound-pair.ts';
import { buildProbe, heldText } from './event-loop.ts';
import { type FilledStartOptions, measureFilledStart, settleMs } from './filled-start.ts';
import { memoryText } from './process-usage.ts';

const values = scriptCommand('npm run bench:memory --', 'Memory and event loop on a cluster with many bound claims.')
  .option('--pairs <N>', 'claims, and as many volumes', wholeNumber(), 50_000)
  .option('--program <CMD>', 'what to run; default: the bundle with the flags of the image')
  .option('--peer <CMD>', 'another sidecar on the same content')
  .parse()
  .opts<{ pairs: number; program?: string; peer?: string }>();
const { pairs, program = bundled } = values;
const driverName = 'bench.csi.example.com';
/** Pairs in one etcd transaction; two puts each, 128 puts are allowed. */
const batch = 60;

async function main(): Promise<void> {
  const binDir = await findPrograms(); // which compiles them at first, and says so itself
  await using plane = await showing(
    () => 'starting the control plane',
    () => startControlPlane({ binDir }),
  );
  await plane.stopControllerManager();
  const attached = await attachToCluster(plane.adminKubeconfig);
  const folder = await mkdtemp(path.join(tmpdir(), 'bench-'));
  const driver = await startDriver({ driverName, folder });
  try {
    const bytes = await load(plane);
    console.log(
      `${pairs} bound pairs, ${(bytes / pairs / 2).toFixed(0)} bytes of JSON an object, Node ${process.version}`,
    );
    const kubeconfig = await attached.sidecarKubeconfig();
    const probe = await buildProbe(folder);
    const cluster = { csiAddress: driver.address, kubeconfig };
    await measure('ours', { ...cluster, program, probe });
    if (values.peer !== undefined) await measure('peer', { ...cluster, program: values.peer, probe: undefined });
  } finally {
    await driver.stop();
    await attached.stop();
    await removeFolder(folder);
  }
}

/** Writes the pairs where the API server keeps them. @returns bytes of JSON. */
async function load({ etcdUrl }: ControlPlane): Promise<number> {
  let [bytes, from] = [0, 0];
  const put = (key: string, object: object): object => {
    const value = Buffer.from(JSON.stringify(object));
    bytes += value.length;
    return { requestPut: { key: Buffer.from(key).toString('base64'), value: value.toString('base64') } };
  };
  const putBatch = async (): Promise<void> => {
    const success: object[] = [];
    for (let index = from; index < Math.min(from + batch, pairs); index++) {
      const { claim, volume } = boundPair(index, driverName);
      const { namespace, name } = claim.metadata;
      success.push(put(`/registry/persistentvolumeclaims/${namespace}/${name}`, claim));
      success.push(put(`/registry/persistentvolumes/${volume.metadata.name}`, volume));
    }
    const answer = await fetch(`${etcdUrl}/v3/kv/txn`, { method: 'POST', body: JSON.stringify({ success }) });
    const text = await answer.text();
    if (!answer.ok || !text.includes('"succeeded":true')) throw new Error(`etcd answered ${answer.status}: ${text}`);
  };
  await showing(
    () => `${from} of ${pairs} pairs written`,
    async () => {
      for (; from < pairs; from += batch) await putBatch();
    },
  );
  return bytes;
}

async function measure(name: string, options: Omit<FilledStartOptions, 'patienceMs'>): Promise<void> {
  const patienceMs = 120_000 + 2 * pairs;
  const { readySeconds, cpuSeconds, settled, peakMb, held } = await showing(
    () => `${name}: starts and settles`,
    () => measureFilledStart({ ...options, patienceMs }),
  );
  console.log(`
${name}
  caches ready     ${readySeconds.toFixed(1)} s after the start of the process
  CPU              ${cpuSeconds.toFixed(1)} s until ${settleMs / 1000} s later
  memory           ${memoryText(settled)}, settled; ${peakMb.toFixed(0)} MB resident at the peak`);
  if (held === undefined) return;
  console.log(`  event loop       held for ${heldText(held.start)} at the start, ${heldText(held.resync)} at a resync`);
}

await main();
