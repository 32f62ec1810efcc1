import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { openScene, type Scene } from '../support/scene.ts';

describe('a driver that fails', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene();
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  test('is asked again with the same name until the volume is there', async () => {
    await scene.driver.setFaults([{ method: 'CreateVolume', code: 'UNAVAILABLE', message: 'out for lunch', times: 2 }]);
    const claim = await scene.createClaim({ className: await scene.createClass() });
    const { volume } = await scene.bound(claim.metadata?.name ?? '');
    const calls = await scene.driver.calls('CreateVolume');
    assert.deepEqual(
      calls.map((call) => [call.request.name, call.code]),
      ['UNAVAILABLE', 'UNAVAILABLE', 'OK'].map((code) => [volume.metadata?.name, code]),
    );
    assert.deepEqual(await scene.driver.volumeIds(), [volume.spec?.csi?.volumeHandle]);
    const failed = await scene.event(claim, 'ProvisioningFailed');
    assert.match(failed.message ?? '', /rpc error: code = Unavailable desc = out for lunch/);
  });

  test('made the volume although it answered with an error: there is still only one', async () => {
    const before = await scene.driver.volumeIds();
    await scene.driver.setFaults([{ method: 'CreateVolume', code: 'DEADLINE_EXCEEDED', times: 1, after: true }]);
    const { metadata } = await scene.createClaim({ className: await scene.createClass() });
    const { volume } = await scene.bound(metadata?.name ?? '');
    const made = (await scene.driver.volumeIds()).filter((id) => !before.includes(id));
    assert.deepEqual(made, [volume.spec?.csi?.volumeHandle]);
  });

  test('to delete is asked again, and the PersistentVolume stays until it has', async () => {
    const { metadata } = await scene.createClaim({ className: await scene.createClass() });
    const { volume } = await scene.bound(metadata?.name ?? '');
    const name = volume.metadata?.name ?? '';
    await scene.driver.setFaults([{ method: 'DeleteVolume', code: 'INTERNAL', message: 'disk on fire' }]);
    await scene.deleteClaim(metadata?.name ?? '');
    await scene.eventually(async () => {
      const { items } = await scene.admin.core.listEventForAllNamespaces({
        fieldSelector: `involvedObject.name=${name}`,
      });
      const failed = items.find((event) => event.reason === 'VolumeFailedDelete');
      assert.match(failed?.message ?? '', /disk on fire/);
    });
    assert.equal((await scene.admin.core.readPersistentVolume({ name })).status?.phase, 'Released');
    await scene.driver.setFaults([]);
    await scene.volumeGone(name);
  });
});
