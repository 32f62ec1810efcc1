import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { openScene, type Scene } from '../support/scene.ts';

describe('a driver that closes its connections at an age', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene({ driverFlags: ['--max-connection-age=2s'] });
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  /** Connections of the sidecar after the first. */
  const connections = (): number => scene.sidecar.log().split(/connected again/i).length - 1;

  const moreConnections = async (count: number): Promise<void> => {
    const enough = connections() + count;
    await scene.eventually(() => assert.ok(connections() >= enough, `${connections()} of ${enough} connections`));
  };

  test('is not asked again for an infeasible claim, and is not reported as lost', async () => {
    await scene.driver.setFaults([{ method: 'CreateVolume', code: 'INVALID_ARGUMENT', message: 'no such pool' }]);
    const claim = await scene.createClaim({ className: await scene.createClass() });
    await scene.event(claim, 'ProvisioningFailed');
    await moreConnections(5);
    assert.equal((await scene.driver.calls('CreateVolume')).length, 1);
    assert.doesNotMatch(scene.sidecar.log(), /Lost connection|came back/);
  });

  test('ends a call that takes longer than a connection, and makes one volume', async () => {
    await scene.driver.setFaults([{ method: 'CreateVolume', delayMs: 5000, times: 1 }]);
    const claim = await scene.createClaim({ className: await scene.createClass() });
    const { volume } = await scene.bound(claim.metadata?.name ?? '');
    const calls = (await scene.driver.calls('CreateVolume')).filter(
      ({ request }) => request.name === volume.metadata?.name,
    );
    assert.deepEqual(
      calls.map(({ code }) => code),
      ['OK'],
    );
    await scene.deleteClaim(claim.metadata?.name ?? '');
    await scene.volumeGone(volume.metadata?.name ?? '');
    assert.doesNotMatch(scene.sidecar.log(), /Lost connection/);
  });
});
