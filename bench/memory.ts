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
import { type ControlPlane, startControlPlane } from '../test/support/control-plane/control-plane.ts';
import { startDriver } from '../test/support/driver-process.ts';
import { attachToCluster } from '../test/support/kubernetes-cluster.ts';
import { bundled, removeFolder } from './bench-cluster.ts';
import { boundPair } from './bound-pair.ts';
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
/** Pairs in one etcd transaction; two puts each, 128 puts are allowed. */
const batch = 60;

async function main(): Promise<void> {
  const pairs = Number(values.pairs);
  await using plane = await startControlPlane();
  await plane.stopControllerManager();
  const attached = await attachToCluster(plane.adminKubeconfig);
  const folder = await mkdtemp(path.join(tmpdir(), 'bench-'));
  const driver = await startDriver({ driverName, folder });
  try {
    const bytes = await load(plane, pairs);
    console.log(
      `${pairs} bound pairs, ${(bytes / pairs / 2).toFixed(0)} bytes of JSON an object, Node ${process.version}`,
    );
    const kubeconfig = await attached.sidecarKubeconfig();
    const cluster = { csiAddress: driver.address, kubeconfig };
    await measure('ours', { ...cluster, program: values.program });
    if (values.peer !== undefined) await measure('peer', { ...cluster, program: values.peer });
    await printStalls({ ...cluster, program: values.program, probe: await buildProbe(folder) });
  } finally {
    await driver.stop();
    await attached.stop();
    await removeFolder(folder);
  }
}

/** Writes the pairs where the API server keeps them. @returns bytes of JSON. */
async function load({ etcdUrl }: ControlPlane, pairs: number): Promise<number> {
  let bytes = 0;
  const put = (key: string, object: object): object => {
    const value = Buffer.from(JSON.stringify(object));
    bytes += value.length;
    return { requestPut: { key: Buffer.from(key).toString('base64'), value: value.toString('base64') } };
  };
  for (let from = 0; from < pairs; from += batch) {
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
  }
  return bytes;
}

type Options = Omit<FilledStartOptions, 'patienceMs' | 'probe'>;
const patienceMs = 120_000 + 2 * Number(values.pairs);

async function measure(name: string, options: Options): Promise<void> {
  const start = await measureFilledStart({ ...options, patienceMs, probe: undefined });
  console.log(`
${name}
  caches ready     ${start.readySeconds.toFixed(1)} s after the start of the process
  CPU              ${start.cpuSeconds.toFixed(1)} s until ${settleMs / 1000} s later
  memory           ${memoryText(start.settled)}, settled; ${start.peakMb.toFixed(0)} MB resident at the peak`);
}

/** In a run of their own: the probe takes memory and CPU too. */
async function printStalls(options: Options & { probe: string }): Promise<void> {
  const { held } = await measureFilledStart({ ...options, patienceMs });
  if (held === undefined) return;
  console.log(`
ours, with the probe
  event loop       held for ${heldText(held.start)} at the start, ${heldText(held.resync)} at a resync`);
}

await main();
