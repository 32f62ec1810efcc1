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

  test('takes its volume along, with one call to the driver, also when it is deleted while the driver makes the volume', async () => {
    const { driver, admin, cluster } = scene;
    const [before, deleted] = [await driver.volumeIds(), (await driver.calls('DeleteVolume')).length];
    await driver.setFaults([{ method: 'CreateVolume', delayMs: 5000, times: 1 }]);
    const { metadata } = await scene.createClaim({ className: await scene.createClass() });
    const [name, uid] = [metadata?.name ?? '', metadata?.uid ?? ''];
    await scene.eventually(async () => assert.equal((await driver.faults())[0]?.times, 0));
    await scene.deleteClaim(name);
    await scene.eventually(async () => assert.equal((await driver.calls('DeleteVolume')).length, deleted + 1));
    await scene.eventually(async () => {
      const { items } = await admin.coordination.listNamespacedLease({ namespace: cluster.sidecarNamespace });
      const records = items.flatMap(({ metadata: lease }) => Object.values(lease?.annotations ?? {}));
      assert.deepEqual(
        records.filter((text) => text.includes(uid)),
        [],
        'nothing is left to be done',
      );
    });
    const calls = (await driver.calls('CreateVolume')).filter(({ request }) => request.name === `pvc-${uid}`);
    assert.deepEqual(
      calls.map(({ code }) => code),
      ['OK'],
    );
    assert.equal((await driver.calls('DeleteVolume')).length, deleted + 1);
    assert.deepEqual(await driver.volumeIds(), before);
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
