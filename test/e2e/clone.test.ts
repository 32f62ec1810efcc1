import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import type { V1PersistentVolume } from '@kubernetes/client-node';
import { ifFound } from '../support/admin.ts';
import { openScene, type Scene } from '../support/scene.ts';

const finalizer = 'provisioner.storage.kubernetes.io/cloning-protection';

describe('a claim that clones another', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene();
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  const fileIn = (volume: V1PersistentVolume): string =>
    join(scene.driver.contentPath(volume.spec?.csi?.volumeHandle ?? ''), 'letter.txt');
  const cloneOf = (name: string) => ({ dataSource: { kind: 'PersistentVolumeClaim', name } });
  const finalizersOf = async (claimName: string): Promise<string[]> =>
    (await scene.readClaim(claimName)).metadata?.finalizers ?? [];
  const claimGone = async (name: string): Promise<void> => {
    await scene.eventually(async () => {
      const claim = await ifFound(scene.readClaim(name));
      if (claim !== undefined)
        throw new Error(`claim ${name} still has ${claim.metadata?.finalizers?.join(', ') ?? ''}`);
    });
  };

  test('gets its content, and lets go of it only when it is deleted', async () => {
    const className = await scene.createClass();
    await scene.createClaim({ name: 'original', className });
    const { volume: original } = await scene.bound('original');
    await writeFile(fileIn(original), 'Dear reader');
    assert.equal((await finalizersOf('original')).includes(finalizer), false);

    await scene.createClaim({ name: 'copy', className, size: '2Gi', spec: cloneOf('original') });
    const { volume: copy } = await scene.bound('copy');
    assert.equal(await readFile(fileIn(copy), 'utf8'), 'Dear reader');
    assert.notEqual(copy.spec?.csi?.volumeHandle, original.spec?.csi?.volumeHandle);
    assert.deepEqual(copy.spec?.capacity, { storage: '2Gi' });
    const [call] = (await scene.driver.calls('CreateVolume')).slice(-1);
    assert.deepEqual(call?.request.volume_content_source, {
      volume: { volume_id: original.spec?.csi?.volumeHandle },
    });
    assert.ok((await finalizersOf('original')).includes(finalizer)); // it stays for as long as the source does

    await scene.deleteClaim('original');
    await claimGone('original');
    await scene.volumeGone(original.metadata?.name ?? '');
    assert.equal(await readFile(fileIn(copy), 'utf8'), 'Dear reader');
  });

  test('keeps it from going while it is under way', async () => {
    const className = await scene.createClass();
    await scene.createClaim({ name: 'leaving', className });
    const { volume: leaving } = await scene.bound('leaving');
    await writeFile(fileIn(leaving), 'Farewell');
    await scene.driver.setFaults([{ method: 'CreateVolume', hold: true, times: 1 }]);
    await scene.createClaim({ name: 'remaining', className, spec: cloneOf('leaving') });
    await scene.eventually(async () => assert.equal((await scene.driver.faults())[0]?.times, 0)); // the call is there
    await scene.deleteClaim('leaving');
    const { metadata } = await scene.readClaim('leaving');
    assert.ok(metadata?.deletionTimestamp);
    assert.ok(metadata.finalizers?.includes(finalizer));
    await scene.driver.setFaults([]);
    const { volume: remaining } = await scene.bound('remaining');
    assert.equal(await readFile(fileIn(remaining), 'utf8'), 'Farewell');
    await claimGone('leaving');
    await scene.volumeGone(leaving.metadata?.name ?? '');
  });

  test('several times at once protects it without a conflict', async () => {
    const className = await scene.createClass();
    await scene.createClaim({ name: 'parent', className });
    const { volume: parent } = await scene.bound('parent');
    await writeFile(fileIn(parent), 'Family');
    const claims = await Promise.all(
      Array.from({ length: 5 }, () => scene.createClaim({ className, spec: cloneOf('parent') })),
    );
    for (const claim of claims) {
      const { volume } = await scene.bound(claim.metadata?.name ?? '');
      assert.equal(await readFile(fileIn(volume), 'utf8'), 'Family');
      const failed = (await scene.events(claim)).filter(({ reason }) => reason === 'ProvisioningFailed');
      assert.deepEqual(failed, []);
    }
    assert.equal((await finalizersOf('parent')).filter((name) => name === finalizer).length, 1);
  });

  test('that is larger than it waits, and says why', async () => {
    const className = await scene.createClass();
    await scene.createClaim({ name: 'large', className, size: '2Gi' });
    await scene.bound('large');
    const claim = await scene.createClaim({ className, size: '1Gi', spec: cloneOf('large') });
    const { message = '' } = await scene.event(claim, 'ProvisioningFailed');
    assert.match(message, /requested 1073741824 but source is 2147483648/);
    assert.equal((await finalizersOf('large')).includes(finalizer), false);
    await scene.deleteClaim(claim.metadata?.name ?? '');
  });
});
