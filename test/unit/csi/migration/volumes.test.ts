/** Volumes of drivers as their in-tree plugins have them, and back. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { driverMigration, type MigrationHook } from '../../../../src/csi/migration/driver-migration.ts';
import { inTreePlugins } from '../../../../src/csi/migration/in-tree-plugins.ts';
import type { CsiVolumeSource, PersistentVolume } from '../../../../src/provision/objects.ts';

type Csi = Omit<CsiVolumeSource, 'driver'>;

function hookOf(driverName: string): MigrationHook {
  const hook = driverMigration(driverName);
  assert.ok(hook !== undefined);
  return hook;
}

function volumeOf(
  spec: Record<string, unknown>,
  metadata: Partial<PersistentVolume['metadata']> = {},
): PersistentVolume {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pv-1', annotations: { kept: 'yes' }, ...metadata },
    spec: { capacity: { storage: '1Gi' }, storageClassName: 'sc', mountOptions: ['noatime'], ...spec },
  };
}

const identity = { 'storage.kubernetes.io/csiProvisionerIdentity': '1-2-d' };

const ebs = 'ebs.csi.aws.com';
const gce = 'pd.csi.storage.gke.io';
const cinder = 'cinder.csi.openstack.org';
const azureDisk = 'disk.csi.azure.com';
const azureFile = 'file.csi.azure.com';
const vsphere = 'csi.vsphere.vmware.com';
const portworx = 'pxd.portworx.com';

const managed = '/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/disk-1';
const secret = { name: 's', namespace: 'ns' };

describe('a volume of a driver in the form of its plugin', () => {
  const cases: readonly { name: string; driver: string; csi: Csi; spec: object; annotations?: object }[] = [
    {
      name: 'EBS: secrets, attributes and identity are not for the plugin',
      driver: ebs,
      csi: { volumeHandle: 'vol-1', fsType: 'ext4', volumeAttributes: identity, nodeStageSecretRef: secret },
      spec: { awsElasticBlockStore: { volumeID: 'vol-1', fsType: 'ext4' } },
    },
    {
      name: 'EBS: an empty file system type is none',
      driver: ebs,
      csi: { volumeHandle: 'vol-1', fsType: '' },
      spec: { awsElasticBlockStore: { volumeID: 'vol-1' } },
    },
    {
      name: 'EBS: a partition, read only',
      driver: ebs,
      csi: { volumeHandle: 'vol-1', readOnly: true, volumeAttributes: { partition: '2' } },
      spec: { awsElasticBlockStore: { volumeID: 'vol-1', readOnly: true, partition: 2 } },
    },
    {
      name: 'GCE: the name is the last part of the handle',
      driver: gce,
      csi: { volumeHandle: 'projects/p/zones/z/disks/d-1', fsType: 'xfs', volumeAttributes: { partition: '3' } },
      spec: { gcePersistentDisk: { pdName: 'd-1', fsType: 'xfs', partition: 3 } },
    },
    {
      name: 'GCE: an empty partition is none',
      driver: gce,
      csi: { volumeHandle: 'projects/p/regions/r/disks/d-1', readOnly: true, volumeAttributes: { partition: '' } },
      spec: { gcePersistentDisk: { pdName: 'd-1', readOnly: true } },
    },
    {
      name: 'Cinder',
      driver: cinder,
      csi: { volumeHandle: 'uuid', fsType: 'ext4', readOnly: true },
      spec: { cinder: { volumeID: 'uuid', fsType: 'ext4', readOnly: true } },
    },
    {
      name: 'Azure Disk: a managed disk, attributes in any case',
      driver: azureDisk,
      csi: { volumeHandle: managed, fsType: 'ext4', volumeAttributes: { cachingMode: 'ReadOnly', FsType: 'xfs' } },
      spec: {
        azureDisk: {
          diskName: 'disk-1',
          diskURI: managed,
          kind: 'Managed',
          fsType: 'xfs',
          readOnly: false,
          cachingMode: 'ReadOnly',
        },
      },
    },
    {
      name: 'Azure Disk: empty attributes do not count',
      driver: azureDisk,
      csi: { volumeHandle: managed, fsType: 'ext4', readOnly: true, volumeAttributes: { cachingmode: '', fstype: '' } },
      spec: { azureDisk: { diskName: 'disk-1', diskURI: managed, kind: 'Managed', fsType: 'ext4', readOnly: true } },
    },
    {
      name: 'Azure Disk: of two spellings the one with a value counts',
      driver: azureDisk,
      csi: {
        volumeHandle: managed,
        readOnly: true,
        volumeAttributes: { cachingMode: 'None', cachingmode: '', FSTYPE: '', fsType: 'xfs' },
      },
      spec: {
        azureDisk: {
          diskName: 'disk-1',
          diskURI: managed,
          kind: 'Managed',
          fsType: 'xfs',
          readOnly: true,
          cachingMode: 'None',
        },
      },
    },
    {
      name: 'Azure Disk: a blob; a filesystem type that nobody named is empty, or the API server would set ext4',
      driver: azureDisk,
      csi: { volumeHandle: 'https://a.blob.core.windows.net/vhds/d.vhd' },
      spec: {
        azureDisk: {
          diskName: 'd.vhd',
          diskURI: 'https://a.blob.core.windows.net/vhds/d.vhd',
          kind: 'Managed',
          fsType: '',
          readOnly: false,
        },
      },
    },
    {
      name: 'Azure File: attributes suffice, in any case',
      driver: azureFile,
      csi: {
        volumeHandle: 'whatever',
        readOnly: true,
        volumeAttributes: { shareName: 'share', secretName: 's', secretNamespace: 'ns' },
      },
      spec: { azureFile: { shareName: 'share', secretName: 's', secretNamespace: 'ns', readOnly: true } },
    },
    {
      name: 'Azure File: of two spellings the last counts, also an empty one',
      driver: azureFile,
      csi: {
        volumeHandle: 'rg#account#of-handle#',
        volumeAttributes: {
          shareName: 'share',
          sharename: '',
          SECRETNAME: '',
          secretName: 's',
          secretNamespace: 'ns',
          secretnamespace: '',
        },
      },
      spec: { azureFile: { shareName: 'of-handle', secretName: 's', secretNamespace: '' } },
      annotations: { 'kubernetes.io/azure-file-resource-group': 'rg' },
    },
    {
      name: 'Azure File: the secret of the node stage goes before',
      driver: azureFile,
      csi: {
        volumeHandle: 'g#account#share',
        volumeAttributes: { sharename: 'own', secretname: 'x', secretnamespace: 'x' },
        nodeStageSecretRef: secret,
      },
      spec: { azureFile: { shareName: 'own', secretName: 's', secretNamespace: 'ns' } },
    },
    {
      name: 'Azure File: what is missing comes from the handle',
      driver: azureFile,
      csi: { volumeHandle: 'g#account#share#disk#uuid' },
      spec: {
        azureFile: {
          shareName: 'share',
          secretName: 'azure-storage-account-account-secret',
          secretNamespace: 'default',
        },
      },
      annotations: { 'kubernetes.io/azure-file-resource-group': 'g' },
    },
    {
      name: 'Azure File: a share without a secret has that of the account in the handle',
      driver: azureFile,
      csi: { volumeHandle: '#account#share', volumeAttributes: { sharename: 'own' } },
      spec: {
        azureFile: {
          shareName: 'own',
          secretName: 'azure-storage-account-account-secret',
          secretNamespace: 'default',
        },
      },
    },
    {
      name: 'Azure File: no annotation without a resource group',
      driver: azureFile,
      csi: { volumeHandle: '#account#share', volumeAttributes: { secretname: 's' } },
      spec: { azureFile: { shareName: 'share', secretName: 's', secretNamespace: 'default' } },
    },
    {
      name: 'vSphere: the path is an attribute',
      driver: vsphere,
      csi: {
        volumeHandle: 'uuid',
        fsType: 'ext4',
        volumeAttributes: { initialvolumefilepath: '[ds] kubevols/d.vmdk' },
      },
      spec: { vsphereVolume: { volumePath: '[ds] kubevols/d.vmdk', fsType: 'ext4' } },
    },
    {
      name: 'Portworx',
      driver: portworx,
      csi: { volumeHandle: '123', fsType: 'ext4', readOnly: true },
      spec: { portworxVolume: { volumeID: '123', fsType: 'ext4', readOnly: true } },
    },
  ];
  for (const { name, driver, csi, spec, annotations = {} } of cases) {
    test(name, () => {
      assert.deepEqual(
        hookOf(driver).toInTree(volumeOf({ csi: { driver, ...csi } })),
        volumeOf({ ...spec }, { annotations: { kept: 'yes', ...annotations } }),
      );
    });
  }

  const broken: readonly { name: string; driver: string; csi: Csi; telling: RegExp }[] = [
    {
      name: 'EBS: a partition that is no number',
      driver: ebs,
      csi: { volumeHandle: 'vol-1', volumeAttributes: { partition: 'x' } },
      telling: /^failed to convert partition "x"/,
    },
    ...[ebs, gce].flatMap((driver) =>
      ['2147483648', '-2147483649', '9223372036854775808'].map((partition) => ({
        name: `${driver}: partition ${partition}, of more than 32 bits`,
        driver,
        csi: { volumeHandle: 'projects/p/zones/z/disks/d', volumeAttributes: { partition } },
        telling: new RegExp(`^failed to convert partition "${partition}" to a whole number: it has more than 32 bits$`),
      })),
    ),
    {
      name: 'EBS: an empty partition',
      driver: ebs,
      csi: { volumeHandle: 'vol-1', volumeAttributes: { partition: '' } },
      telling: /^failed to convert partition ""/,
    },
    {
      name: 'GCE: a handle of too few parts',
      driver: gce,
      csi: { volumeHandle: 'projects/p/zones/z/disks' },
      telling: /"projects\/p\/zones\/z\/disks" does not name a disk/,
    },
    {
      name: 'Azure Disk: a handle that is neither a managed disk nor a blob',
      driver: azureDisk,
      csi: { volumeHandle: '/subscriptions/s/disks/d' },
      telling: /does not name a disk/,
    },
    {
      name: 'Azure Disk: a blob elsewhere',
      driver: azureDisk,
      csi: { volumeHandle: 'https://a.blob.core.windows.net/other/d.vhd' },
      telling: /does not name a disk/,
    },
    {
      name: 'Azure File: a handle of too few parts, when it is needed',
      driver: azureFile,
      csi: { volumeHandle: 'g#account' },
      telling: /"g#account" does not name a resource group, a storage account and a share/,
    },
    {
      name: 'vSphere: no path',
      driver: vsphere,
      csi: { volumeHandle: 'uuid' },
      telling: /did not say the volume's path in attribute "initialvolumefilepath"/,
    },
    {
      name: 'a volume of another driver',
      driver: ebs,
      csi: { volumeHandle: 'vol-1', driver: 'd.example.com' } as Csi,
      telling: /^the volume is not one of ebs.csi.aws.com$/,
    },
  ];
  for (const { name, driver, csi, telling } of broken) {
    test(`there is none: ${name}`, () => {
      assert.throws(() => hookOf(driver).toInTree(volumeOf({ csi: { driver, ...csi } })), { message: telling });
    });
  }
});

describe('a volume of a plugin in the form of its driver', () => {
  const cases: readonly {
    name: string;
    driver: string;
    spec: Record<string, unknown>;
    metadata?: Partial<PersistentVolume['metadata']>;
    handle: string;
    more?: Partial<Csi>;
  }[] = [
    {
      name: 'EBS: the plain id',
      driver: ebs,
      spec: { awsElasticBlockStore: { volumeID: 'vol-1', fsType: 'ext4', readOnly: true, partition: 2 } },
      handle: 'vol-1',
      more: { fsType: 'ext4', readOnly: true, volumeAttributes: { partition: '2' } },
    },
    ...['aws://us-west-2b/vol-0a', 'aws:///vol-0a', 'vol-0a'].map((volumeID) => ({
      name: `EBS: ${volumeID}`,
      driver: ebs,
      spec: { awsElasticBlockStore: { volumeID } },
      handle: 'vol-0a',
      more: { volumeAttributes: { partition: '0' } },
    })),
    {
      name: 'GCE: a disk of unknown zone',
      driver: gce,
      spec: { gcePersistentDisk: { pdName: 'd' } },
      handle: 'projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d',
      more: { volumeAttributes: { partition: '' } },
    },
    {
      name: 'Cinder: secrets of the plugin stay behind',
      driver: cinder,
      spec: { cinder: { volumeID: 'uuid', fsType: 'ext4', secretRef: secret } },
      handle: 'uuid',
      more: { fsType: 'ext4', volumeAttributes: {} },
    },
    {
      name: 'Azure Disk',
      driver: azureDisk,
      spec: {
        azureDisk: {
          diskName: 'd',
          diskURI: managed,
          kind: 'Managed',
          fsType: 'xfs',
          readOnly: false,
          cachingMode: 'None',
        },
      },
      handle: managed,
      more: { fsType: 'xfs', volumeAttributes: { kind: 'Managed', cachingMode: 'None' } },
    },
    {
      name: 'Azure File: group and account as the plugin keeps them',
      driver: azureFile,
      spec: {
        azureFile: { shareName: 'share', secretName: 'azure-storage-account-acc-secret', secretNamespace: 'ns' },
      },
      metadata: { annotations: { 'kubernetes.io/azure-file-resource-group': 'g' } },
      handle: 'g#acc#share#pv-1#ns',
      more: {
        volumeAttributes: { shareName: 'share' },
        nodeStageSecretRef: { name: 'azure-storage-account-acc-secret', namespace: 'ns' },
      },
    },
    {
      name: 'Azure File: the namespace of the claim, a secret of another name',
      driver: azureFile,
      spec: {
        azureFile: { shareName: 'share', secretName: 's', readOnly: true },
        claimRef: { namespace: 'ns1', name: 'c1' },
      },
      handle: '#s#share#pv-1#ns1',
      more: {
        readOnly: true,
        volumeAttributes: { shareName: 'share' },
        nodeStageSecretRef: { name: 's', namespace: 'ns1' },
      },
    },
    {
      name: 'vSphere',
      driver: vsphere,
      spec: { vsphereVolume: { volumePath: '[ds] kubevols/d.vmdk', fsType: 'ext4', storagePolicyName: 'Gold' } },
      handle: '[ds] kubevols/d.vmdk',
      more: { fsType: 'ext4', volumeAttributes: { initialvolumefilepath: '[ds] kubevols/d.vmdk' } },
    },
    {
      name: 'Portworx',
      driver: portworx,
      spec: { portworxVolume: { volumeID: '123' } },
      handle: '123',
      more: { volumeAttributes: {} },
    },
  ];
  for (const { name, driver, spec, metadata, handle, more = {} } of cases) {
    test(name, () => {
      const given = volumeOf(spec, metadata);
      const before = structuredClone(given);
      const source = inTreePlugins.find(({ driverName }) => driverName === driver)?.sourceField ?? '';
      const { [source]: _, ...rest } = spec;
      assert.deepEqual(
        hookOf(driver).toCsi(given),
        volumeOf({ ...rest, csi: { driver, volumeHandle: handle, ...more } }, metadata),
      );
      assert.deepEqual(given, before);
    });
  }

  test('EBS: an id of the old form without a volume is refused', () => {
    for (const volumeID of ['aws://us-west-2b/disk-1', 'aws://', 'aws://a/vol-1/more']) {
      const volume = volumeOf({ awsElasticBlockStore: { volumeID } });
      assert.throws(() => hookOf(ebs).toCsi(volume), { message: `"${volumeID}" is not the name of an EBS volume` });
    }
  });

  for (const kind of ['Dedicated', 'Shared']) {
    test(`Azure Disk: a blob of kind ${kind} is none of the driver's disks`, () => {
      const volume = volumeOf({ azureDisk: { diskName: 'd', diskURI: 'https://a.net/vhds/d.vhd', kind } });
      assert.throws(() => hookOf(azureDisk).toCsi(volume), {
        message: `kind(${kind}) is not supported in csi migration`,
      });
    });
  }

  test('Azure Disk: a managed disk may be spelled in any case, or not at all', () => {
    for (const kind of ['managed', 'MANAGED', undefined]) {
      const volume = volumeOf({ azureDisk: { diskName: 'd', diskURI: managed, ...(kind && { kind }) } });
      assert.equal(hookOf(azureDisk).toCsi(volume).spec.csi?.volumeHandle, managed);
    }
  });

  test('Azure File: a secret without a namespace is refused', () => {
    const volume = volumeOf({ azureFile: { shareName: 'share', secretName: 's' } });
    assert.throws(() => hookOf(azureFile).toCsi(volume), {
      message: 'neither the volume nor its claim names the namespace of the secret',
    });
  });

  test('volumes of the driver itself, of other plugins and of no plugin are left as they are', () => {
    for (const spec of [
      { csi: { driver: ebs, volumeHandle: 'vol-1' } },
      { gcePersistentDisk: { pdName: 'd' } },
      { nfs: { server: 's', path: '/' } },
      { awsElasticBlockStore: null },
    ]) {
      const volume = volumeOf(spec);
      assert.equal(hookOf(ebs).toCsi(volume), volume);
    }
  });
});

describe('there and back', () => {
  const name = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,20}$/);
  const mount = { fsType: fc.constantFrom('ext4', 'xfs'), readOnly: fc.constant(true as const) };
  const partition = fc.integer({ min: 1, max: 2 ** 31 - 1 });
  const optional = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(model, { requiredKeys: [] });
  const sources: Record<string, fc.Arbitrary<object>> = {
    awsElasticBlockStore: fc
      .tuple(name, optional({ ...mount, partition }))
      .map(([id, rest]) => ({ volumeID: `vol-${id}`, ...rest })),
    gcePersistentDisk: fc.tuple(name, optional({ ...mount, partition })).map(([pdName, rest]) => ({ pdName, ...rest })),
    cinder: fc.tuple(name, optional(mount)).map(([volumeID, rest]) => ({ volumeID, ...rest })),
    azureDisk: fc
      .tuple(
        name,
        fc.record({ fsType: fc.constantFrom('', 'ext4', 'xfs'), readOnly: fc.boolean() }),
        optional({ cachingMode: fc.constantFrom('None', 'ReadOnly', 'ReadWrite') }),
      )
      .map(([diskName, mounted, rest]) => ({
        diskName,
        diskURI: `/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/${diskName}`,
        kind: 'Managed',
        ...mounted,
        ...rest,
      })),
    azureFile: fc
      .tuple(name, name, name, optional({ readOnly: mount.readOnly }))
      .map(([shareName, secretName, secretNamespace, rest]) => ({ shareName, secretName, secretNamespace, ...rest })),
    vsphereVolume: fc
      .tuple(name, optional({ fsType: mount.fsType }))
      .map(([path, rest]) => ({ volumePath: `[ds] ${path}.vmdk`, ...rest })),
    portworxVolume: fc.tuple(name, optional(mount)).map(([volumeID, rest]) => ({ volumeID, ...rest })),
  };
  for (const { sourceField, driverName, name: plugin } of inTreePlugins) {
    test(`${plugin}: a volume of the plugin is the same after it`, () => {
      const arbitrary = sources[sourceField];
      assert.ok(arbitrary !== undefined);
      const hook = hookOf(driverName);
      fc.assert(
        fc.property(arbitrary, (source) => {
          const volume = volumeOf({ [sourceField]: source });
          assert.deepEqual(hook.toInTree(hook.toCsi(volume)), volume);
        }),
      );
    });
  }

  for (const driver of [ebs, cinder, portworx, azureDisk]) {
    test(`${driver}: what was made is deleted by the handle it was made with`, () => {
      const hook = hookOf(driver);
      fc.assert(
        fc.property(name, (id) => {
          const volumeHandle = driver === azureDisk ? managed + id : `vol-${id}`;
          const volume = volumeOf({ csi: { driver, volumeHandle, volumeAttributes: identity } });
          assert.equal(hook.toCsi(hook.toInTree(volume)).spec.csi?.volumeHandle, volumeHandle);
        }),
      );
    });
  }
});
