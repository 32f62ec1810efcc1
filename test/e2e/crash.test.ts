import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { openScene, type Scene } from '../support/scene.ts';

describe('a sidecar that is killed', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene();
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  test('after the driver made the volume and before it heard so: its successor finds that volume', async () => {
    await scene.driver.setFaults([{ method: 'CreateVolume', hold: true, after: true, times: 1 }]);
    const { metadata } = await scene.createClaim({ className: await scene.createClass() });
    const [made] = await scene.eventually(async () => {
      const ids = await scene.driver.volumeIds();
      assert.equal(ids.length, 1);
      return ids;
    });
    await scene.sidecar.stop('SIGKILL');
    assert.notEqual((await scene.readClaim(metadata?.name ?? '')).status?.phase, 'Bound');
    await scene.startSidecar();
    const { volume } = await scene.bound(metadata?.name ?? '');
    assert.equal(volume.spec?.csi?.volumeHandle, made);
    assert.deepEqual(await scene.driver.volumeIds(), [made]);
  });

  test('while the driver still works: there is one volume in the end', async () => {
    const before = await scene.driver.volumeIds();
    await scene.driver.setFaults([{ method: 'CreateVolume', hold: true, times: 1 }]);
    const { metadata } = await scene.createClaim({ className: await scene.createClass() });
    await scene.eventually(async () => assert.equal((await scene.driver.faults())[0]?.times, 0));
    await scene.sidecar.stop('SIGKILL');
    await scene.startSidecar();
    const { volume } = await scene.bound(metadata?.name ?? '');
    // The call of the killed sidecar goes on in the driver; it, too, must have ended before counting.
    await scene.driver.setFaults([]);
    await scene.eventually(async () => {
      const calls = await scene.driver.calls('CreateVolume');
      const own = calls.filter((call) => call.request.name === volume.metadata?.name);
      assert.ok(own.length >= 2, `${own.length} calls have ended`);
    });
    const made = (await scene.driver.volumeIds()).filter((id) => !before.includes(id));
    assert.deepEqual(made, [volume.spec?.csi?.volumeHandle]);
  });

  test('before it deleted a volume: its successor does it', async () => {
    const { metadata } = await scene.createClaim({ className: await scene.createClass() });
    const { volume } = await scene.bound(metadata?.name ?? '');
    await scene.sidecar.stop('SIGKILL');
    await scene.deleteClaim(metadata?.name ?? '');
    await scene.startSidecar(['--timeout=2s']); // the volume's record is still open: the deletion waits for 1.5 times as long
    await scene.volumeGone(volume.metadata?.name ?? '');
    assert.equal((await scene.driver.volumeIds()).includes(volume.spec?.csi?.volumeHandle ?? ''), false);
  });
});
