/** What a control plane makes of volumes in the form of a plugin that the driver replaced. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { V1PersistentVolume } from '@kubernetes/client-node';
import { driverMigration } from '../../src/csi/migration/driver-migration.ts';
import { inTreePlugins } from '../../src/csi/migration/in-tree-plugins.ts';
import type { CsiVolumeSource } from '../../src/provision/objects.ts';
import { plainJson } from './plain-json.ts';
import { openScene, type Scene } from '../support/scene.ts';

const driverName = 'ebs.csi.aws.com';
const plugin = 'kubernetes.io/aws-ebs';

describe('a class of an in-tree plugin', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene({ driverName });
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  test('gives volumes of the plugin, which the driver makes and deletes', async () => {
    const className = await scene.createClass({ provisioner: plugin, parameters: { fsType: 'xfs' } });
    const { metadata } = await scene.createClaim({ className });
    const { claim, volume } = await scene.bound(metadata?.name ?? '');
    assert.equal(claim.metadata?.annotations?.['volume.kubernetes.io/storage-provisioner'], driverName);
    const [volumeId = ''] = await scene.driver.volumeIds();
    assert.deepEqual(plainJson(volume.spec?.awsElasticBlockStore), { volumeID: volumeId, fsType: 'xfs' });
    assert.equal(volume.spec?.csi, undefined);
    assert.equal(volume.metadata?.annotations?.['pv.kubernetes.io/provisioned-by'], plugin);
    await scene.deleteClaim(metadata?.name ?? '');
    await scene.volumeGone(volume.metadata.name ?? '');
    assert.deepEqual(await scene.driver.volumeIds(), []);
    const [deletion, ...more] = await scene.driver.calls('DeleteVolume');
    assert.deepEqual([deletion?.request.volume_id, more], [volumeId, []]);
  });

  const examples: Record<string, Partial<CsiVolumeSource>> = {
    'ebs.csi.aws.com': { volumeHandle: 'vol-1', volumeAttributes: { partition: '2' } },
    'pd.csi.storage.gke.io': { volumeHandle: 'projects/p/zones/z/disks/d', readOnly: true },
    'cinder.csi.openstack.org': { volumeHandle: 'uuid' },
    'disk.csi.azure.com': {
      volumeHandle: '/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d',
      volumeAttributes: { cachingMode: 'ReadOnly' },
    },
    'file.csi.azure.com': { volumeHandle: 'group#account#share' },
    'csi.vsphere.vmware.com': { volumeHandle: 'uuid', volumeAttributes: { initialvolumefilepath: '[ds] d.vmdk' } },
    'pxd.portworx.com': { volumeHandle: '123' },
  };
  for (const { name: ofPlugin, driverName: driver, sourceField } of inTreePlugins) {
    test(`${ofPlugin}: the API server takes the volumes that are written`, async () => {
      const volume = driverMigration(driver)?.toInTree({
        metadata: { name: `${scene.namespace}-${driver}` },
        spec: {
          capacity: { storage: '1Gi' },
          accessModes: ['ReadWriteOnce'],
          persistentVolumeReclaimPolicy: 'Retain',
          storageClassName: 'none',
          csi: { driver, volumeHandle: '', fsType: 'ext4', ...examples[driver] },
        },
      });
      const created = plainJson(
        await scene.admin.core.createPersistentVolume({ body: volume as unknown as V1PersistentVolume }),
      );
      await scene.admin.core.deletePersistentVolume({ name: volume?.metadata.name ?? '' });
      const [given, stored] = [volume, created].map((each) => (each?.spec as Record<string, object>)[sourceField]);
      assert.ok(given !== undefined);
      assert.deepEqual({ ...stored, ...given }, stored); // the server adds what it takes for granted, and changes nothing
    });
  }
});
