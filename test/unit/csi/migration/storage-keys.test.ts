/** Which PersistentVolumes have the storage that a driver calls by a handle: what keeps it from being deleted. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type CsiStorage, csiStorage, driverMigration } from '../../../../src/csi/migration/driver-migration.ts';
import { inTreePlugins } from '../../../../src/csi/migration/in-tree-plugins.ts';
import type { PersistentVolume } from '../../../../src/provision/objects.ts';
import { hasStorage } from '../../../../src/provision/recoverable.ts';

function storageOf(driver: string): CsiStorage {
  return csiStorage({ isDriver: (name) => name === driver, migration: driverMigration(driver) });
}

const volumeOf = (spec: object): PersistentVolume => ({ metadata: { name: 'pv-1' }, spec });

function holds(driver: string, spec: object, handle: string): boolean {
  return hasStorage(storageOf(driver), volumeOf(spec), handle);
}

const disk = '/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d-1';
const share = (name: string): object => ({ azureFile: { shareName: name, secretName: 'x' } });

const cases: readonly { driver: string; handle: string; held: readonly object[]; free: readonly object[] }[] = [
  {
    driver: 'ebs.csi.aws.com',
    handle: 'vol-1',
    held: [
      { awsElasticBlockStore: { volumeID: 'vol-1' } },
      { awsElasticBlockStore: { volumeID: 'aws://us-west-2a/vol-1', partition: 2 } },
      { awsElasticBlockStore: { volumeID: 'aws:///vol-1' } },
    ],
    free: [{ awsElasticBlockStore: { volumeID: 'vol-12' } }, { awsElasticBlockStore: { volumeID: 'aws://x' } }],
  },
  {
    driver: 'pd.csi.storage.gke.io',
    handle: 'projects/p/zones/us-c1-a/disks/d-1',
    held: [{ gcePersistentDisk: { pdName: 'd-1' } }],
    free: [{ gcePersistentDisk: { pdName: 'd-12' } }, { gcePersistentDisk: {} }, { gcePersistentDisk: { pdName: '' } }],
  },
  {
    driver: 'cinder.csi.openstack.org',
    handle: 'uuid-1',
    held: [{ cinder: { volumeID: 'uuid-1', readOnly: true } }],
    free: [{ cinder: { volumeID: 'uuid-2' } }, { cinder: {} }],
  },
  {
    driver: 'disk.csi.azure.com',
    handle: disk,
    held: [
      { azureDisk: { diskName: 'd-1', diskURI: disk } },
      { azureDisk: { diskName: 'd-1', diskURI: disk.toUpperCase(), kind: 'Managed' } },
      { azureDisk: { diskName: 'd-1', diskURI: disk, kind: 'Dedicated' } },
    ],
    free: [{ azureDisk: { diskName: 'd-1', diskURI: `${disk}2` } }, { azureDisk: { diskName: 'd-1' } }],
  },
  {
    driver: 'file.csi.azure.com',
    handle: 'group#account#share-1#pvc-1#ns1',
    held: [share('share-1'), share('SHARE-1')],
    free: [share('share-12'), share('share')],
  },
  {
    driver: 'csi.vsphere.vmware.com',
    handle: '[ds] kubevols/d-1.vmdk',
    held: [{ vsphereVolume: { volumePath: '[ds] kubevols/d-1.vmdk' } }],
    free: [{ vsphereVolume: { volumePath: '[ds] kubevols/d-2.vmdk' } }],
  },
  {
    driver: 'pxd.portworx.com',
    handle: '1234',
    held: [{ portworxVolume: { volumeID: '1234' } }],
    free: [{ portworxVolume: { volumeID: '12345' } }],
  },
];

describe('an in-tree volume and the handle of the driver', () => {
  test('there are cases for every plugin', () => {
    assert.deepEqual(
      cases.map(({ driver }) => driver).sort(),
      inTreePlugins.map(({ driverName }) => driverName).sort(),
    );
  });

  for (const { driver, handle, held, free } of cases) {
    test(`${driver}: the same storage, however the plugin writes it`, () => {
      for (const spec of held) assert.equal(holds(driver, spec, handle), true, JSON.stringify(spec));
    });

    test(`${driver}: other storage, and volumes of other plugins`, () => {
      for (const spec of free) assert.equal(holds(driver, spec, handle), false, JSON.stringify(spec));
      for (const other of cases) {
        if (other.driver !== driver)
          assert.equal(holds(driver, other.held[0] ?? {}, other.handle), false, other.driver);
      }
    });
  }

  test('a handle that the plugin cannot read is compared as it is', () => {
    assert.equal(holds('file.csi.azure.com', share('odd'), 'odd'), true);
    assert.equal(holds('file.csi.azure.com', share('odd'), 'other'), false);
    assert.equal(holds('pd.csi.storage.gke.io', { gcePersistentDisk: { pdName: 'd' } }, 'd'), true);
    assert.equal(holds('pd.csi.storage.gke.io', { gcePersistentDisk: { pdName: '' } }, 'odd'), false);
  });

  test('a source that names no storage has no key', () => {
    const { storageKeys } = storageOf('pd.csi.storage.gke.io');
    assert.deepEqual(storageKeys(volumeOf({ gcePersistentDisk: { pdName: '' } })), []);
    assert.deepEqual(storageKeys(volumeOf({ gcePersistentDisk: {} })), []);
    assert.deepEqual(storageOf('cinder.csi.openstack.org').storageKeys(volumeOf({ cinder: {} })), []);
  });
});

describe('which sources are those of a driver', () => {
  for (const { driver, held } of cases) {
    test(`${driver}: its own, and those of the plugin that it replaced`, () => {
      const { ownsSource, storageKeys } = storageOf(driver);
      const sources = [{ csi: { driver, volumeHandle: 'h' } }, ...held, { csi: { driver, volumeHandle: '' } }];
      for (const spec of sources) assert.equal(ownsSource(volumeOf(spec)), true, JSON.stringify(spec));
      const foreign = [
        ...cases.filter((other) => other.driver !== driver).flatMap((other) => other.held),
        { csi: { driver: 'new.example.com', volumeHandle: 'h' } },
        ...['nfs', 'hostPath', 'local', 'iscsi', 'fc', 'flexVolume', 'rbd'].map((kind) => ({ [kind]: { driver } })),
        {},
      ];
      for (const spec of foreign) {
        assert.equal(ownsSource(volumeOf(spec)), false, JSON.stringify(spec));
        assert.deepEqual(storageKeys(volumeOf(spec)), [], JSON.stringify(spec));
      }
    });

    test(`${driver}: what is deleted for a volume of the plugin has the key by which others are found`, () => {
      const { handleKey, storageKeys } = storageOf(driver);
      let translated = 0;
      for (const spec of held) {
        const volume: PersistentVolume = {
          metadata: { name: 'pv-1' },
          spec: { claimRef: { namespace: 'ns' }, ...spec },
        };
        const deleted = deletedHandle(driver, volume);
        if (deleted === undefined) continue;
        translated++;
        assert.deepEqual(storageKeys(volume), [handleKey(deleted)], JSON.stringify(spec));
        assert.equal(handleKey(deleted), storageKeys(volumeOf({ csi: { driver, volumeHandle: deleted } }))[0]);
      }
      assert.ok(translated > 0);
    });
  }

  test('a driver that replaced no plugin owns none of theirs', () => {
    for (const { held } of cases)
      for (const spec of held) assert.equal(storageOf('drv').ownsSource(volumeOf(spec)), false, JSON.stringify(spec));
  });
});

/** What DeleteVolume is sent for a volume; undefined where it cannot be translated, so that nothing is sent. */
function deletedHandle(driver: string, volume: PersistentVolume): string | undefined {
  try {
    return driverMigration(driver)?.toCsi(volume).spec.csi?.volumeHandle;
  } catch {
    return undefined;
  }
}

describe('a CSI volume and the handle of the driver', () => {
  const csi = (driver: string, volumeHandle: string): object => ({ csi: { driver, volumeHandle } });

  test('the same storage when the handle is the same, letter by letter', () => {
    assert.equal(holds('drv', csi('drv', 'h-1'), 'h-1'), true);
    assert.equal(holds('drv', csi('drv', 'h-1'), 'H-1'), false);
    assert.equal(holds('ebs.csi.aws.com', csi('ebs.csi.aws.com', 'vol-1'), 'vol-1'), true);
  });

  test("the letter case of Azure's handles does not count", () => {
    assert.equal(holds('disk.csi.azure.com', csi('disk.csi.azure.com', disk), disk.toUpperCase()), true);
    assert.equal(holds('disk.csi.azure.com', csi('disk.csi.azure.com', `${disk}2`), disk), false);
  });

  test('the volumes of other drivers have other storage, unless all drivers count', () => {
    assert.equal(holds('drv', csi('other', 'h-1'), 'h-1'), false);
    const ofAll = csiStorage({ isDriver: () => true, migration: undefined });
    assert.equal(hasStorage(ofAll, volumeOf(csi('other', 'h-1')), 'h-1'), true);
  });

  test('a volume without a handle has no key, nor one of another kind', () => {
    const { storageKeys } = storageOf('drv');
    assert.deepEqual(storageKeys(volumeOf(csi('drv', ''))), []);
    assert.deepEqual(storageKeys(volumeOf({ nfs: { server: 's', path: '/p' } })), []);
  });

  test('two handles that no plugin could have made are two storages', () => {
    const { storageKeys } = storageOf('pd.csi.storage.gke.io');
    const [one, other] = ['odd', 'odder'].map((handle) => storageKeys(volumeOf(csi('pd.csi.storage.gke.io', handle))));
    assert.notDeepEqual(one, other);
  });
});
