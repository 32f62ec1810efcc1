/** A driver that comes back as another version can do more than before. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RecordingDriver } from '../../support/fakes/recording-driver.ts';
import { driverName, resource } from '../../support/api-scene.ts';
import { Scene } from './scene.ts';

const cloningProtection = 'provisioner.storage.kubernetes.io/cloning-protection';
const snapshotProtection = 'provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection';
const attachments = { group: 'storage.k8s.io', version: 'v1', plural: 'volumeattachments' };
const snapshots = { group: 'snapshot.storage.k8s.io', version: 'v1', plural: 'volumesnapshots' };

/** A volume whose claim is gone. */
const releasedVolume = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: {
    name: 'old',
    annotations: { 'pv.kubernetes.io/provisioned-by': driverName },
    finalizers: ['external-provisioner.volume.kubernetes.io/finalizer'],
  },
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    persistentVolumeReclaimPolicy: 'Delete',
    claimRef: { kind: 'PersistentVolumeClaim', namespace: 'ns1', name: 'gone', uid: 'uid-gone' },
    csi: { driver: driverName, volumeHandle: 'vol-0' },
    storageClassName: 'sc',
  },
  status: { phase: 'Released' },
};

/** The driver ends, and another with these capabilities besides CREATE_DELETE_VOLUME listens in its place. */
async function comesBack(scene: Scene, ...capabilities: string[]): Promise<RecordingDriver> {
  const { socketPath } = scene.driver;
  scene.driver.kill();
  await scene.program.logged('Lost connection');
  const controller = ['CREATE_DELETE_VOLUME', ...capabilities];
  const driver = await RecordingDriver.start({ name: driverName, socketPath, controller });
  await scene.program.logged('The driver came back');
  return driver;
}

describe('a driver without dynamic provisioning', () => {
  for (const { name, plugin, controller } of [
    { name: 'controller CREATE_DELETE_VOLUME', plugin: ['CONTROLLER_SERVICE'], controller: ['LIST_VOLUMES'] },
    { name: 'plugin CONTROLLER_SERVICE', plugin: [], controller: [] },
  ]) {
    const missing = `CSI driver does not support dynamic provisioning: ${name} capability is not reported`;

    test(`of ${name}: claims and volumes fail, and the log says it once`, async () => {
      await using scene = await Scene.start({ plugin, controller, objects: [releasedVolume] });
      scene.addClaim();
      assert.equal((await scene.event('ProvisioningFailed')).message, missing);
      assert.equal((await scene.event('VolumeFailedDelete', 'old')).message, missing);
      const errors = scene.program.lines.filter((line) => line.startsWith('E') && line.includes(missing));
      assert.equal(errors.length, 1, errors.join(''));
      assert.deepEqual([scene.driver.callsOf('CreateVolume'), scene.driver.callsOf('DeleteVolume')], [[], []]);
    });

    test(`of ${name}: goes on once it comes back with it`, async () => {
      await using scene = await Scene.start({ plugin, controller, flags: ['--retry-interval-max=200ms'] });
      scene.addClaim();
      await scene.event('ProvisioningFailed');
      await using _driver = await comesBack(scene);
      await scene.volume();
    });
  }

  test('is said again when a driver comes back without it', async () => {
    await using scene = await Scene.start();
    await scene.program.logged('Started provisioner controller');
    const { socketPath } = scene.driver;
    scene.driver.kill();
    await using _driver = await RecordingDriver.start({ name: driverName, socketPath, controller: [] });
    const line = await scene.program.logged('controller CREATE_DELETE_VOLUME capability is not reported');
    assert.match(line, /^E/);
  });
});

describe('a driver that comes back', () => {
  test('with CLONE_VOLUME: sources that are being deleted lose their protection', async () => {
    await using scene = await Scene.start();
    scene.addClaim('source', { storageClassName: 'other' }, { annotations: {}, finalizers: [cloningProtection] });
    scene.api.delete(resource.claims, { namespace: 'ns1', name: 'source' });
    await scene.program.logged('Started provisioner controller');
    const finalizers = (): string[] | undefined =>
      scene.api.get(resource.claims, { namespace: 'ns1', name: 'source' })?.metadata.finalizers;
    assert.ok(finalizers()?.includes(cloningProtection));
    await using _driver = await comesBack(scene, 'CLONE_VOLUME');
    await scene.until('the end of the protection', () => finalizers()?.includes(cloningProtection) !== true);
  });

  test('with CREATE_DELETE_SNAPSHOT: snapshots that no claim waits for lose their protection', async () => {
    await using scene = await Scene.start();
    scene.api.create(snapshots, {
      metadata: { namespace: 'ns1', name: 'snap', finalizers: [snapshotProtection] },
      spec: { source: { persistentVolumeClaimName: 'src' } },
    });
    await scene.program.logged('Started provisioner controller');
    const isProtected = (): boolean | undefined =>
      scene.api.get(snapshots, { namespace: 'ns1', name: 'snap' })?.metadata.finalizers?.includes(snapshotProtection);
    assert.equal(isProtected(), true);
    await using _driver = await comesBack(scene, 'CREATE_DELETE_SNAPSHOT');
    await scene.until('the end of the protection', () => isProtected() !== true);
  });

  test('with PUBLISH_UNPUBLISH_VOLUME: a volume that is attached is not deleted', async () => {
    await using scene = await Scene.start();
    scene.addClaim();
    const volume = await scene.volume();
    scene.api.create(attachments, {
      metadata: { name: 'csi-1' },
      spec: { attacher: driverName, nodeName: 'n1', source: { persistentVolumeName: volume.metadata.name } },
    });
    await using driver = await comesBack(scene, 'PUBLISH_UNPUBLISH_VOLUME');
    scene.release(volume);
    const { message } = await scene.event('VolumeDelete', volume.metadata.name);
    assert.equal(message, `persistentvolume ${volume.metadata.name} is still attached to node n1, waiting for detach`);
    assert.deepEqual(driver.callsOf('DeleteVolume'), []);
    scene.api.delete(attachments, { name: 'csi-1' });
    await scene.volumeDeleted();
    assert.equal(driver.callsOf('DeleteVolume').length, 1);
  });

  test('without PUBLISH_UNPUBLISH_VOLUME: attachments hold nothing back any more', async () => {
    await using scene = await Scene.start({ controller: ['CREATE_DELETE_VOLUME', 'PUBLISH_UNPUBLISH_VOLUME'] });
    scene.addClaim();
    const volume = await scene.volume();
    scene.api.create(attachments, {
      metadata: { name: 'csi-1' },
      spec: { attacher: driverName, nodeName: 'n1', source: { persistentVolumeName: volume.metadata.name } },
    });
    await using driver = await comesBack(scene);
    scene.release(volume);
    await scene.volumeDeleted();
    assert.equal(driver.callsOf('DeleteVolume').length, 1);
  });

  test('without PUBLISH_UNPUBLISH_VOLUME: a volume that waited for its attachment is deleted', async () => {
    const attachment = {
      metadata: { name: 'csi-1' },
      spec: { attacher: driverName, nodeName: 'n1', source: { persistentVolumeName: 'old' } },
    };
    await using scene = await Scene.start({
      controller: ['CREATE_DELETE_VOLUME', 'PUBLISH_UNPUBLISH_VOLUME'],
      objects: [releasedVolume],
      onServer: (server) => server.client('test').create(attachments, attachment),
    });
    await scene.event('VolumeDelete', 'old');
    await using driver = await comesBack(scene);
    await scene.called(driver, 'DeleteVolume');
  });
});
