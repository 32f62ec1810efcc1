/** The driver goes away while claims come and go, and is back. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { DriverFailure, RecordingDriver } from '../../support/fakes/recording-driver.ts';
import { Scene } from './scene.ts';
import { terms } from '../../support/topology-clusters.ts';
import { startTopologyScene, topologyPlugin } from './topology/topology-scene.ts';

/** Kills the driver and waits until the program knows. */
async function loseDriver(scene: Scene): Promise<void> {
  scene.driver.kill();
  await scene.program.logged('Lost connection');
}

/** Another process of the same driver, on the same socket. */
async function restartDriver(scene: Scene): Promise<RecordingDriver> {
  return await RecordingDriver.start({ socketPath: scene.driver.socketPath });
}

describe('a driver that goes away and comes back', () => {
  test('makes no volumes for claims that were created and deleted meanwhile', async () => {
    await using scene = await Scene.start({ flags: ['--retry-interval-max=50ms', '-v=5'] });
    await scene.program.logged('Started provisioner controller');
    await loseDriver(scene);
    scene.addClaim('short-lived');
    assert.match((await scene.event('ProvisioningFailed', 'short-lived')).message, /code = Unavailable/);
    scene.removeClaim('short-lived');
    await scene.program.logged('Claim in work queue no longer exists');
    await using driver = await restartDriver(scene);
    scene.addClaim('later');
    await scene.volume('later');
    assert.equal(driver.callsOf('CreateVolume').length, 1);
  });

  test('gets the claims that waited, however long their pause still is, and those it had called infeasible', async () => {
    await using scene = await Scene.start({
      flags: ['--retry-interval-start=1h', '--retry-interval-max=1h'],
      script: (driver) => driver.next('CreateVolume', new DriverFailure(status.INVALID_ARGUMENT, 'no such pool')),
    });
    scene.addClaim('infeasible');
    await scene.event('ProvisioningFailed', 'infeasible');
    await loseDriver(scene);
    scene.addClaim('waiting');
    await scene.event('ProvisioningFailed', 'waiting');
    await using _driver = await restartDriver(scene);
    await scene.volume('waiting');
    await scene.volume('infeasible');
  });

  test('gets the volumes whose deletion failed meanwhile', async () => {
    await using scene = await Scene.start({ flags: ['--retry-interval-start=1h', '--retry-interval-max=1h'] });
    scene.addClaim();
    const volume = await scene.volume();
    await loseDriver(scene);
    scene.release(volume);
    await scene.event('VolumeFailedDelete', volume.metadata.name);
    await using driver = await restartDriver(scene);
    await scene.volumeDeleted();
    assert.equal(driver.callsOf('DeleteVolume').length, 1);
  });

  test('is asked for the node that is selected then, not for the one of attempts that never reached it', async () => {
    await using scene = await startTopologyScene({
      cluster: 'three racks in three zones',
      strict: true,
      delayed: true,
    });
    await scene.program.logged('Started provisioner controller');
    await loseDriver(scene);
    scene.claimFor('testpvc', 'n1');
    await scene.event('ProvisioningFailed', 'testpvc');
    scene.select('testpvc', 'n2');
    const { socketPath } = scene.driver;
    await using driver = await RecordingDriver.start({ socketPath, plugin: topologyPlugin });
    await scene.volume('testpvc');
    const [call] = driver.callsOf('CreateVolume');
    const place = terms('{R=rB,Z=z2}');
    assert.deepEqual(call?.request['accessibility_requirements'], { requisite: place, preferred: place });
  });
});
