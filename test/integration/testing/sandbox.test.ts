/** The sandbox of the kit for tests, without a provisioner: the test plays its part. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { type PersistentVolume, persistentVolumes } from '../../../src/index.ts';
import { startSandbox, testProvisioner, type TestSandbox } from '../../../src/testing/kit.ts';

describe('startSandbox', () => {
  let sandbox: TestSandbox;
  before(async () => {
    sandbox = await startSandbox({ patienceMs: 20_000 });
    await sandbox.storageClass({ name: 'by-hand', provisioner: 'hand.example.com' });
  });
  after(() => sandbox.close());

  const volume = (name: string, storageClassName = 'by-hand'): PersistentVolume => ({
    metadata: { name },
    spec: {
      storageClassName,
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      hostPath: { path: `/srv/${name}` },
    },
  });

  test('waits until a claim is Bound, and returns its volume', async () => {
    const claim = sandbox.claim({ storageClassName: 'by-hand' });
    await claim.created();
    await sandbox.client.create(persistentVolumes, volume('pv-1'));
    assert.equal((await claim.bound()).metadata.name, 'pv-1');
    assert.equal((await sandbox.claim(claim.name).bound()).metadata.name, 'pv-1');
    await claim.delete();
    await claim.gone();
    assert.equal(await claim.current(), undefined);
  });

  test('says of a claim that is not Bound in time which events it has', async () => {
    const claim = sandbox.claim({ storageClassName: 'by-hand' });
    await assert.rejects(
      claim.bound({ withinMs: 3000 }),
      /the claim default\/claim-\d+ is Pending, not Bound \(still so after 3 s\)\. Its events:\n {2}Normal ExternalProvisioning: /,
    );
  });

  test('says what the API server has against a claim', async () => {
    const claim = sandbox.claim({ name: 'Not_a_name' });
    await assert.rejects(claim.bound(), /Not_a_name.*Invalid value/s);
  });

  test('waits until a volume is gone', async () => {
    await sandbox.client.create(persistentVolumes, volume('pv-2', 'none'));
    await assert.rejects(sandbox.volume('pv-2').gone({ withinMs: 500 }), /pv-2 is still there, /);
    await sandbox.client.delete(persistentVolumes, { name: 'pv-2' });
    await sandbox.volume('pv-2').gone();
  });

  test('takes everything along when it is closed', async () => {
    const other = await startSandbox({ nodes: 0 });
    await other[Symbol.asyncDispose]();
    assert.equal(existsSync(other.kubeconfig), false);
    await assert.rejects(fetch(other.url), { message: 'fetch failed' });
    await other.close(); // once more
  });
});

describe('testProvisioner', () => {
  const options = { provisionerName: 'a.example.com', listStorage: () => [], storageOf: () => '' };

  test('refuses options that cannot work, by their names', () => {
    assert.throws(() => testProvisioner(['a'], { ...options, kills: 0 }), /kills must be/);
    assert.throws(() => testProvisioner(['a'], { ...options, settleMs: NaN }), /settleMs must be.*NaN/);
    assert.throws(
      () => testProvisioner(['a'], { ...options, listStorage: undefined as never }),
      /listStorage must be a function/,
    );
  });
});
