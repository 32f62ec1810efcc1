import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { openScene, type Scene } from '../support/scene.ts';

describe('an API server that is killed in the middle of 200 claims', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene({
      restartsApiServer: true,
      cluster: { ownCluster: true },
      sidecarFlags: ['--worker-threads=10'],
    });
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  test('loses none of them and makes no volume twice once it is back', async (t) => {
    const { apiServer } = scene.cluster;
    assert.ok(apiServer);
    // a fault with nothing in it lets 40 calls through; the next 10, one of each worker, wait for the kill
    await scene.driver.setFaults([
      { method: 'CreateVolume', times: 40 },
      { method: 'CreateVolume', hold: true, times: 10 },
    ]);
    const className = await scene.createClass();
    for (let batch = 0; batch < 10; batch += 1) {
      await Promise.all(Array.from({ length: 20 }, () => scene.createClaim({ className })));
    }
    await scene.eventually(async () => assert.equal((await scene.driver.faults()).at(-1)?.times, 0)); // all ten wait
    await apiServer.kill();
    const killMs = Date.now();
    // What the driver makes now cannot be saved.
    await scene.driver.setFaults([{ method: 'CreateVolume', delayMs: 300 }]);
    await scene.eventually(() => assert.match(scene.sidecar.log(), /The volume could not be saved/));
    const made = (await scene.driver.volumeIds()).length;
    await apiServer.restart();
    t.diagnostic(`away for ${Date.now() - killMs} ms, after ${made} volumes`);

    const claims = await scene.eventually(async () => {
      const { items } = await scene.admin.core.listNamespacedPersistentVolumeClaim({ namespace: scene.namespace });
      const bound = items.filter(({ status }) => status?.phase === 'Bound').length;
      assert.equal(bound, 200);
      return items;
    });
    const boundMs = Date.now() - killMs;
    const { items } = await scene.admin.core.listPersistentVolume();
    const volumes = items.filter(({ spec }) => spec?.csi?.driver === scene.driver.driverName);
    const savedMs = Math.max(...volumes.map(({ metadata }) => metadata?.creationTimestamp?.getTime() ?? NaN)) - killMs;
    t.diagnostic(`last volume saved ${savedMs} ms, all claims bound ${boundMs} ms after the kill`);
    assert.deepEqual(
      volumes.map(({ metadata }) => metadata?.name).toSorted(),
      claims.map(({ metadata }) => `pvc-${metadata?.uid ?? ''}`).toSorted(),
    );
    assert.deepEqual(
      (await scene.driver.volumeIds()).toSorted(),
      volumes.map(({ spec }) => spec?.csi?.volumeHandle).toSorted(),
    );
    // The driver was never away: no answer of it was lost, so there was no reason to ask again.
    const calls = await scene.driver.calls('CreateVolume');
    assert.deepEqual(
      calls.map(({ request, code }) => `${request.name ?? ''} ${code}`).toSorted(),
      claims.map(({ metadata }) => `pvc-${metadata?.uid ?? ''} OK`).toSorted(),
    );
  });
});
