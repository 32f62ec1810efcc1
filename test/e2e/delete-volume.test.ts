import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, afterEach, before, describe, test } from 'node:test';
import { openScene, type Scene } from '../support/scene.ts';

const finalizer = 'external-provisioner.volume.kubernetes.io/finalizer';

describe('a deleted claim', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene();
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  test('takes its volume along, with one call to the driver', async () => {
    const { metadata } = await scene.createClaim({ className: await scene.createClass() });
    const { volume } = await scene.bound(metadata?.name ?? '');
    const handle = volume.spec?.csi?.volumeHandle ?? '';
    assert.ok(existsSync(scene.driver.contentPath(handle)));
    await scene.deleteClaim(metadata?.name ?? '');
    await scene.volumeGone(volume.metadata?.name ?? '');
    assert.equal(existsSync(scene.driver.contentPath(handle)), false);
    const calls = await scene.driver.calls('DeleteVolume');
    assert.deepEqual(
      calls.map((call) => [call.request.volume_id, call.code]),
      [[handle, 'OK']],
    );
  });

  test('leaves its volume to the administrator when the class says Retain', async () => {
    const before = (await scene.driver.calls('DeleteVolume')).length;
    const className = await scene.createClass({ reclaimPolicy: 'Retain' });
    const { metadata } = await scene.createClaim({ className });
    const { volume } = await scene.bound(metadata?.name ?? '');
    const name = volume.metadata?.name ?? '';
    await scene.deleteClaim(metadata?.name ?? '');
    await scene.eventually(async () => {
      const { status, metadata: now } = await scene.admin.core.readPersistentVolume({ name });
      assert.equal(status?.phase, 'Released');
      assert.equal(now?.finalizers?.includes(finalizer), false); // the sidecar has seen it and let go of it
    });
    assert.equal((await scene.driver.calls('DeleteVolume')).length, before);
    assert.ok(existsSync(scene.driver.contentPath(volume.spec?.csi?.volumeHandle ?? '')));

    await scene.admin.core.deletePersistentVolume({ name });
    await scene.volumeGone(name);
    assert.equal((await scene.driver.calls('DeleteVolume')).length, before);
  });
});
