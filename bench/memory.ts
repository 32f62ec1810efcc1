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
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type ControlPlane, startControlPlane } from '../test/support/control-plane/control-plane.ts';
import { startDriver } from '../test/support/driver-process.ts';
import { attachToCluster } from '../test/support/kubernetes-cluster.ts';
import { type StartedProcess, startProcess } from '../test/support/started-process.ts';
import { build } from 'esbuild';
import { bundled, removeFolder, until } from './bench-cluster.ts';
import { boundPair } from './bound-pair.ts';
import { cpuMs, peakMb, residentMb } from './process-usage.ts';

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
const settleMs = 20_000;
/** Then the resync that the probe brings forward takes up to this long. */
const resyncMs = 15_000;

async function main(): Promise<void> {
  const pairs = Number(values.pairs);
  await using plane = await startControlPlane();
  await plane.stopControllerManager();
  const cluster = await attachToCluster(plane.adminKubeconfig);
  const folder = await mkdtemp(path.join(tmpdir(), 'bench-'));
  const driver = await startDriver({ driverName, folder });
  try {
    const bytes = await load(plane, pairs);
    console.log(
      `${pairs} bound pairs, ${(bytes / pairs / 2).toFixed(0)} bytes of JSON an object, Node ${process.version}`,
    );
    const kubeconfig = await cluster.sidecarKubeconfig();
    const probe = path.join(folder, 'probe.mjs');
    await build({ entryPoints: [path.join(import.meta.dirname, 'event-loop-probe.ts')], outfile: probe });
    await measure('ours', values.program, driver.address, kubeconfig, `--import=${probe}`);
    if (values.peer !== undefined) await measure('peer', values.peer, driver.address, kubeconfig);
  } finally {
    await driver.stop();
    await cluster.stop();
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

/** @param nodeOptions - of the program; undefined: it is no Node.js program, and its event loop is not measured. */
async function measure(
  name: string,
  program: string,
  address: string,
  kubeconfig: string,
  nodeOptions?: string,
): Promise<void> {
  const [command = '', ...words] = program.split(' ');
  const startedMs = performance.now();
  const sidecar = await startProcess({
    program: command,
    args: [...words, `--csi-address=${address}`, `--kubeconfig=${kubeconfig}`, '-v=3'],
    env: { KUBECONFIG: undefined, NODE_OPTIONS: nodeOptions },
  });
  try {
    await until('the caches ready', () => sidecar.log().includes('Started provisioner controller'), 120_000);
    const readyS = (performance.now() - startedMs) / 1000;
    await delay(settleMs);
    console.log(`
${name}
  caches ready     ${readyS.toFixed(1)} s after the start of the process
  CPU              ${(cpuMs(sidecar.pid) / 1000).toFixed(1)} s until ${settleMs / 1000} s later
  resident memory  ${residentMb(sidecar.pid).toFixed(0)} MB settled, ${peakMb(sidecar.pid).toFixed(0)} MB at the peak`);
    if (nodeOptions === undefined) return;
    const atStart = await eventLoop(sidecar, 1);
    await delay(resyncMs);
    const atResync = await eventLoop(sidecar, 2);
    console.log(`  event loop       held for ${atStart} at the start, ${atResync} at a resync`);
  } catch (error) {
    console.error(sidecar.log().slice(-4000));
    throw error;
  } finally {
    await sidecar.stop();
  }
}

/** Queries the probe for the n-th time (from 1). @returns the maximum time, of the clock and of the CPU. */
async function eventLoop(sidecar: StartedProcess, n: number): Promise<string> {
  process.kill(sidecar.pid, 'SIGUSR2');
  const lines = (): string[] => sidecar.log().match(/(?<=^event loop ).*$/gm) ?? [];
  await until('what the probe saw', () => lines().length === n, 10_000);
  const held = JSON.parse(lines()[n - 1] ?? '') as { heldMs: number; cpuMs: number };
  return `${held.heldMs.toFixed(0)} ms (${held.cpuMs.toFixed(0)} ms of CPU)`;
}

await main();
