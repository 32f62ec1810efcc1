/** Runs main.ts against the sandbox: node --test */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { startSandbox, testProvisioner } from 'csi-provisioner/testing';

const main = path.join(import.meta.dirname, 'main.ts');

test('a claim becomes a folder, which goes with the claim', async () => {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), 'hostpath-test-'));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const sandbox = cleanup.use(await startSandbox());
  const env = { ...process.env, KUBECONFIG: sandbox.kubeconfig };
  const program = spawn(process.execPath, [main, folder], { stdio: 'inherit', env });
  cleanup.defer(async () => {
    program.kill();
    await once(program, 'exit');
  });
  await sandbox.storageClass({ name: 'folders', provisioner: 'hostpath.example.com' });

  const claim = sandbox.claim({ name: 'letters', storageClassName: 'folders', storage: '5Gi' });
  const { metadata } = await claim.bound();
  assert.ok(existsSync(path.join(folder, metadata.name)));
  await claim.delete();
  await sandbox.volume(metadata.name).gone();
  assert.ok(!existsSync(path.join(folder, metadata.name)));
});

testProvisioner(({ folder }) => [process.execPath, main, folder], {
  provisionerName: 'hostpath.example.com',
  listStorage: ({ folder }) => readdir(folder),
  storageOf: ({ spec }) => path.basename(spec.hostPath?.path ?? ''),
  recorded: false, // it has no plans; images.ts has
});
