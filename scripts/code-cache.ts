/**
 * `npm run build:cache`: the compiled code of the bundle, beside it, so that it starts faster. It holds the functions that
 * scripts/code-cache/ahead.txt lists, and is the same file on every machine that has the same Node.js. To be made by the very Node.js
 * that the bundle will run on; every other one passes the file over.
 *
 *   node scripts/code-cache.ts [FILE]   default dist/csi-provisioner.bundle.cjs
 *   node scripts/code-cache.ts --record rewrites the list: the bundle provisions and deletes one volume on the sandbox, with each
 *                                       set of flags, and the functions that are called meanwhile are listed
 *   node scripts/code-cache.ts --check  fails when fewer than nine in ten of these functions are listed, for one of these sets
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import { type ClusterOptions, sampleDriverName, startCluster } from '../sandbox/cluster/cluster.ts';
import { BundledProgram, compiledCodeFile } from '../src/base/bundled-program.ts';
import { bundleFunctions, functionsAt, type FunctionRange } from './code-cache/bundle-functions.ts';
import { functionList, writeFunctionList } from './code-cache/function-list.ts';
import { type ApiObject, KubeApi } from './kube-api.ts';

const { values, positionals } = parseArgs({
  options: { record: { type: 'boolean', default: false }, check: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const bundle = path.resolve(positionals[0] ?? path.join(import.meta.dirname, '../dist/csi-provisioner.bundle.cjs'));
const script = (name: string): string => path.join(import.meta.dirname, 'code-cache', name);
/**
 * Without them two processes write different bytes: names have random hashes, and where memory is used again after a garbage
 * collection, its old content is in the gaps between objects.
 */
const compilerFlags = ['--hash-seed=1', '--min-semi-space-size=256', '--max-semi-space-size=256'];
const leastListed = 0.9;
/** The flag sets that are recorded: those of most drivers, and those of a driver of node-local volumes. */
const recordedFlagSets: readonly Pick<ClusterOptions, 'sidecarFlags' | 'sidecarEnv'>[] = [
  {
    sidecarFlags: ['--leader-election', '--http-endpoint=127.0.0.1:0', '--extra-create-metadata', '--strict-topology'],
  },
  { sidecarFlags: ['--node-deployment', '--immediate-topology=false'], sidecarEnv: { NODE_NAME: 'node-1' } },
];
const patienceMs = 60_000;

async function main(): Promise<void> {
  if (values.record) await writeFunctionList(await calledFunctions());
  else if (values.check) await check();
  else await compile();
}

async function compile(): Promise<void> {
  await rm(compiledCodeFile(bundle), { force: true });
  await promisify(execFile)(process.execPath, [...compilerFlags, script('compile.ts'), path.basename(bundle)], {
    cwd: path.dirname(bundle), // the bytes depend on the name that V8 gets
  });
  if (!new BundledProgram(bundle).isCached) throw new Error(`${compiledCodeFile(bundle)} is refused by its maker`);
  const { size } = await stat(compiledCodeFile(bundle));
  console.log(`${path.relative('.', compiledCodeFile(bundle))}: ${(size / 1000).toFixed(0)} kB`);
}

async function check(): Promise<void> {
  const listed = await functionList();
  for (const flags of recordedFlagSets) {
    const called = await calledWith(flags);
    const share = called.filter((name) => listed.has(name)).length / called.length;
    console.log(`${(share * 100).toFixed(1)} % of ${called.length} functions are compiled ahead`);
    if (share < leastListed) throw new Error('scripts/code-cache/ahead.txt is stale: npm run build:cache -- --record');
  }
}

/** The names of the functions that the recorded sidecars call to provision and delete one volume each. */
async function calledFunctions(): Promise<string[]> {
  const names = new Set<string>();
  for (const options of recordedFlagSets) for (const name of await calledWith(options)) names.add(name);
  return [...names];
}

async function calledWith(options: Pick<ClusterOptions, 'sidecarFlags' | 'sidecarEnv'>): Promise<string[]> {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), 'code-cache-'));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const ranges = path.join(folder, 'ranges.json');
  const sidecarProgram = [script('recorded-run.ts'), ranges, bundle];
  const cluster = await startCluster({ sidecarProgram, ...options });
  try {
    await provisionOnce(new KubeApi(cluster.url));
  } finally {
    await cluster[Symbol.asyncDispose](); // the sidecar ends and writes the file
  }
  const called = JSON.parse(await readFile(ranges, 'utf8')) as FunctionRange[];
  return [...new Set(functionsAt(await bundleFunctions(bundle), called).map(({ name }) => name))];
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
