/** Runs main.ts against the sandbox: SANDBOX=.../csi-provisioner/sandbox/main.ts node --test */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import {
  connect,
  Informer,
  KubeClient,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  type StorageClass,
  storageClasses,
} from 'csi-provisioner';

const sandbox = process.env['SANDBOX'] ?? '../csi-provisioner/sandbox/main.ts';

test('a claim becomes a folder', { timeout: 60_000 }, async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'hostpath-test-'));
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const kubeconfig = path.join(folder, 'kubeconfig');
  const start = (...args: string[]) => {
    const env = { ...process.env, KUBECONFIG: kubeconfig };
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], env });
    const ended = once(child, 'close');
    cleanup.defer(async () => {
      child.kill();
      await ended;
    });
    return child;
  };
  await once(start(sandbox, `--kubeconfig=${kubeconfig}`).stdout, 'data'); // its one line says that it is ready
  start(path.join(import.meta.dirname, 'main.ts'), folder);

  await using transport = connect({ kubeconfig });
  const client = new KubeClient({ transport, fieldManager: 'test' });
  await client.create<StorageClass>(storageClasses, {
    metadata: { name: 'folders' },
    provisioner: 'hostpath.example.com',
  });
  await client.create<PersistentVolumeClaim>(persistentVolumeClaims, {
    metadata: { name: 'letters', namespace: 'default' },
    spec: {
      storageClassName: 'folders',
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '5Gi' } },
    },
  });

  const bound = Promise.withResolvers<PersistentVolumeClaim>();
  const claims = new Informer<PersistentVolumeClaim>({ transport, resource: persistentVolumeClaims });
  const check = (claim: PersistentVolumeClaim) => {
    if (claim.status?.phase === 'Bound') bound.resolve(claim);
  };
  claims.addHandler({ onAdd: check, onUpdate: (_old, claim) => check(claim) });
  const stop = new AbortController();
  const watching = claims.run(stop.signal);
  const { spec } = await bound.promise;
  stop.abort();
  await watching;

  assert.ok(existsSync(path.join(folder, spec.volumeName ?? '')));
});
