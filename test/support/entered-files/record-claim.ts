/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectAdmin, loadKubeconfig } from '../admin.ts';
import { startDriver } from '../driver-process.ts';
import { eventually } from '../eventually.ts';
import { startSandbox } from '../sandbox-cluster.ts';
import type { Entry } from './entered-files.ts';
import type { Report } from './recorded-sidecar.ts';

const program = join(import.meta.dirname, 'recorded-sidecar.ts');
const names = { driver: 'way.example.com', namespace: 'way', class: 'way' };

/**
 * What the sidecar enters while a claim becomes a volume, on the sandbox and the sample driver. Others were provisioned before, so that
 * nothing of the start is in it. Another one comes after it: once that is bound, all that followed from the first was entered, too.
 *
 * @param options.files - those that are to be waited for. @throws {Error} with those that are not entered.
 */
export async function recordClaim({ files }: { files: readonly string[] }): Promise<readonly Entry[]> {
  await using stack = new AsyncDisposableStack();
  const cluster = await startSandbox();
  stack.defer(() => cluster.stop());
  const folder = await mkdtemp(join(tmpdir(), 'way-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const driver = await startDriver({ driverName: names.driver, folder });
  stack.defer(() => driver.stop());
  const kubeconfig = await cluster.sidecarKubeconfig();
  const url = loadKubeconfig(kubeconfig).getCurrentCluster()?.server ?? '';
  const child = fork(program, [driver.address, url, `--kubeconfig=${kubeconfig}`], {
    env: { ...process.env, KUBECONFIG: undefined, POD_NAMESPACE: cluster.sidecarNamespace },
    execArgv: [], // not those of a test
    stdio: 'inherit',
  });
  stack.defer(() => end(child));
  const { core, storage } = connectAdmin(cluster.adminKubeconfig);
  await core.createNamespace({ body: { metadata: { name: names.namespace } } });
  await storage.createStorageClass({ body: { metadata: { name: names.class }, provisioner: names.driver } });
  const provision = async (name: string): Promise<void> => {
    const resources = { requests: { storage: '1Gi' } };
    const spec = { storageClassName: names.class, accessModes: ['ReadWriteOnce'], resources };
    const { namespace } = names;
    await core.createNamespacedPersistentVolumeClaim({ namespace, body: { metadata: { name }, spec } });
    await eventually(async () => {
      const { status } = await core.readNamespacedPersistentVolumeClaim({ namespace, name });
      if (status?.phase !== 'Bound') throw new Error(`claim ${name} is not bound\n${(await ask(child)).log}`);
    });
  };
  for (const name of ['before', 'also-before']) await provision(name);
  await ask(child, 'start');
  for (const name of ['recorded', 'after']) await provision(name);
  return await eventually(async () => {
    const { entries } = await ask(child);
    const entered = new Set(entries.map(({ file }) => file));
    const missing = files.filter((file) => !entered.has(file));
    if (missing.length > 0) throw new Error(`never entered: ${missing.join(', ')}`);
    return entries;
  });
}

/** @throws when the child has ended; what it wrote is on standard error. */
async function ask(child: ChildProcess, request: 'start' | 'report' = 'report'): Promise<Report> {
  const over = new AbortController();
  const ended = once(child, 'exit', { signal: over.signal }).then(() =>
    Promise.reject(new Error('the sidecar has ended')),
  );
  const response = once(child, 'message', { signal: over.signal });
  try {
    child.send(request);
    const [report] = (await Promise.race([response, ended])) as [Report];
    return report;
  } finally {
    over.abort();
    for (const promise of [ended, response]) promise.catch(() => undefined); // the race is over
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}
