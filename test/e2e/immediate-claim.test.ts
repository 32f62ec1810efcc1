import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { after, afterEach, before, describe, test } from 'node:test';
import { plainJson } from './plain-json.ts';
import { openScene, type Scene } from '../support/scene.ts';

describe('a claim whose class binds at once', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene();
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  test('becomes bound to a volume that describes what the driver made', async () => {
    const className = await scene.createClass({ mountOptions: ['noatime'], reclaimPolicy: 'Delete' });
    const { metadata } = await scene.createClaim({ className, size: '1536Mi' });
    const { claim, volume } = await scene.bound(metadata?.name ?? '');
    const uid = claim.metadata?.uid ?? '';
    assert.equal(volume.metadata?.name, `pvc-${uid}`);
    assert.deepEqual(volume.metadata.annotations, {
      'pv.kubernetes.io/provisioned-by': scene.driver.driverName,
      'volume.kubernetes.io/provisioner-deletion-secret-name': '',
      'volume.kubernetes.io/provisioner-deletion-secret-namespace': '',
    });
    assert.deepEqual(volume.metadata.finalizers?.toSorted(), [
      'external-provisioner.volume.kubernetes.io/finalizer',
      'kubernetes.io/pv-protection',
    ]);
    const { spec } = volume;
    assert.ok(spec);
    assert.deepEqual(spec.capacity, { storage: '1536Mi' });
    assert.deepEqual(spec.accessModes, ['ReadWriteOnce']);
    assert.deepEqual(spec.mountOptions, ['noatime']);
    assert.equal(spec.persistentVolumeReclaimPolicy, 'Delete');
    assert.equal(spec.storageClassName, className);
    assert.equal(spec.volumeMode, 'Filesystem');
    assert.equal(spec.nodeAffinity, undefined);
    const { resourceVersion, ...claimRef } = plainJson(spec.claimRef);
    assert.match(String(resourceVersion), /^\d+$/);
    assert.deepEqual(claimRef, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      namespace: scene.namespace,
      name: claim.metadata?.name,
      uid,
    });
    assert.equal(spec.csi?.driver, scene.driver.driverName);
    assert.equal(spec.csi.fsType, undefined);
    assert.match(
      spec.csi.volumeAttributes?.['storage.kubernetes.io/csiProvisionerIdentity'] ?? '',
      new RegExp(`^\\d+-\\d+-${scene.driver.driverName}$`),
    );
    assert.deepEqual(await scene.driver.volumeIds(), [spec.csi.volumeHandle]);
    assert.ok((await stat(scene.driver.contentPath(spec.csi.volumeHandle))).isDirectory());
  });

  test('tells its owner what happens in two events', async () => {
    const claim = await scene.createClaim({ className: await scene.createClass() });
    const name = claim.metadata?.name ?? '';
    const { volume } = await scene.bound(name);
    const succeeded = await scene.event(claim, 'ProvisioningSucceeded');
    assert.equal(succeeded.type, 'Normal');
    assert.equal(succeeded.message, `Successfully provisioned volume ${volume.metadata?.name ?? ''}`);
    const provisioning = await scene.event(claim, 'Provisioning');
    assert.equal(provisioning.type, 'Normal');
    assert.equal(
      provisioning.message,
      `External provisioner is provisioning volume for claim "${scene.namespace}/${name}"`,
    );
    const ours = (await scene.events(claim)).filter((event) =>
      event.source?.component?.includes(scene.driver.driverName),
    );
    assert.deepEqual(ours.map((event) => event.reason).toSorted(), ['Provisioning', 'ProvisioningSucceeded']);
  });

  test('gets a raw device when it asks for one', async () => {
    const className = await scene.createClass({ parameters: { 'csi.storage.k8s.io/fstype': 'ext4' } });
    const { metadata } = await scene.createClaim({ className, volumeMode: 'Block', size: '16Mi' });
    const { volume } = await scene.bound(metadata?.name ?? '');
    assert.equal(volume.spec?.volumeMode, 'Block');
    assert.equal(volume.spec.csi?.fsType, undefined);
    const content = await stat(scene.driver.contentPath(volume.spec.csi?.volumeHandle ?? ''));
    assert.ok(content.isFile());
    assert.equal(content.size, 16 * 1024 * 1024);
  });

  test('is left alone when its class names another provisioner', async () => {
    const before = (await scene.driver.calls('CreateVolume')).length;
    const foreignClass = await scene.createClass({ provisioner: 'elsewhere.example.com' });
    const foreign = await scene.createClaim({ className: foreignClass });
    const own = await scene.createClaim({ className: await scene.createClass() });
    await scene.bound(own.metadata?.name ?? ''); // the foreign claim came first, so it has been looked at as well
    assert.equal((await scene.readClaim(foreign.metadata?.name ?? '')).status?.phase, 'Pending');
    assert.equal((await scene.driver.calls('CreateVolume')).length, before + 1);
    const provisioning = (await scene.events(foreign)).filter((event) => event.reason?.startsWith('Provisioning'));
    assert.deepEqual(provisioning, []);
  });
});

describe('twenty claims at once', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene();
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  test('all become bound, each to a volume of its own made by one call', async () => {
    const className = await scene.createClass();
    const claims = await Promise.all(Array.from({ length: 20 }, () => scene.createClaim({ className })));
    const bound = await Promise.all(claims.map((claim) => scene.bound(claim.metadata?.name ?? '')));
    const handles = bound.map(({ volume }) => volume.spec?.csi?.volumeHandle);
    assert.equal(new Set(handles).size, 20);
    assert.deepEqual((await scene.driver.volumeIds()).toSorted(), handles.toSorted());
    assert.equal((await scene.driver.calls('CreateVolume')).length, 20);
  });
});
