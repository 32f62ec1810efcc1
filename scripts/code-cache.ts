/**
 * `npm run build:cache`: the compiled code of the bundle, beside it, so that it starts faster. The bundle provisions and
 * deletes one volume on the sandbox: all functions that this needs are in the file then. To be run by the very Node.js
 * that the bundle will run on; every other one passes the file over.
 *
 *   node scripts/code-cache.ts [FILE]   default dist/csi-provisioner.bundle.cjs
 */
import { rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { sampleDriverName, startCluster } from '../sandbox/cluster/cluster.ts';
import { BundledProgram, compiledCodeFile } from '../src/base/bundled-program.ts';
import { type ApiObject, KubeApi } from './kube-api.ts';

const bundle = path.resolve(process.argv[2] ?? path.join(import.meta.dirname, '../dist/csi-provisioner.bundle.cjs'));
const recorder = path.join(import.meta.dirname, 'recorded-run.ts');
const patienceMs = 60_000;

async function main(): Promise<void> {
  await rm(compiledCodeFile(bundle), { force: true });
  const cluster = await startCluster({ sidecarProgram: [recorder, bundle], sidecarFlags: ['--leader-election'] });
  try {
    await provisionOnce(new KubeApi(cluster.url));
  } finally {
    await cluster[Symbol.asyncDispose](); // the sidecar ends and writes the file
  }
  if (!new BundledProgram(bundle).isCached) throw new Error(`${compiledCodeFile(bundle)} is refused by its maker`);
  const { size } = await stat(compiledCodeFile(bundle));
  console.log(`${path.relative('.', compiledCodeFile(bundle))}: ${(size / 1000).toFixed(0)} kB`);
}

/** A claim becomes a volume, and both are deleted. */
async function provisionOnce(api: KubeApi): Promise<void> {
  const [name, namespace] = ['recorded', 'default'];
  const metadata = { name, namespace };
  await api.create('storageclasses', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name },
    provisioner: sampleDriverName,
  });
  await api.create('persistentvolumeclaims', {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata,
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: name, resources: { requests: { storage: '1Mi' } } },
  });
  await until('the claim is bound', async () => {
    const claim = await api.get<ApiObject & { status?: { phase?: string } }>('persistentvolumeclaims', name, namespace);
    return claim?.status?.phase === 'Bound';
  });
  await api.delete('persistentvolumeclaims', name, namespace);
  await until('the volume is gone', async () => (await api.list('persistentvolumes')).length === 0);
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + patienceMs;
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`not within ${patienceMs / 1000} s: ${what}`);
    await delay(20);
  }
}

await main();
