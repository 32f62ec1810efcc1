/** Classes of in-tree plugins as their drivers read them. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { driverMigration } from '../../../../src/csi/migration/driver-migration.ts';
import { inTreePlugins } from '../../../../src/csi/migration/in-tree-plugins.ts';
import type { StorageClass } from '../../../../src/provision/objects.ts';

const fsTypeKey = 'csi.storage.k8s.io/fstype';
const zone = 'topology.kubernetes.io/zone';

/** `KEY=VALUE|VALUE & KEY=VALUE` for one term, terms separated by `;`. */
function topologies(text: string): NonNullable<StorageClass['allowedTopologies']> {
  return text.split(';').map((term) => ({
    matchLabelExpressions: term.split(' & ').map((expression) => {
      const [key = '', values = ''] = expression.split('=');
      return { key, values: values.split('|') };
    }),
  }));
}

function classOf(provisioner: string, parameters: Record<string, string>, allowed?: string): StorageClass {
  return {
    metadata: { name: 'sc', uid: 'class-uid' },
    provisioner,
    parameters,
    reclaimPolicy: 'Retain',
    mountOptions: ['noatime'],
    volumeBindingMode: 'Immediate',
    ...(allowed !== undefined && { allowedTopologies: topologies(allowed) }),
  };
}

function translate(plugin: string, parameters: Record<string, string>, allowed?: string): StorageClass {
  const driverName = inTreePlugins.find(({ name }) => name === plugin)?.driverName ?? '';
  const hook = driverMigration(driverName);
  assert.ok(hook !== undefined);
  return hook.translateClass(classOf(plugin, parameters, allowed));
}

const ebs = 'kubernetes.io/aws-ebs';
const gce = 'kubernetes.io/gce-pd';
const cinder = 'kubernetes.io/cinder';
const azureDisk = 'kubernetes.io/azure-disk';
const azureFile = 'kubernetes.io/azure-file';
const vsphere = 'kubernetes.io/vsphere-volume';
const portworx = 'kubernetes.io/portworx-volume';

describe('the plugins that drivers replaced', () => {
  test('are these', () => {
    const pairs = Object.fromEntries(inTreePlugins.map(({ driverName, name }) => [driverName, name]));
    assert.deepEqual(pairs, {
      'ebs.csi.aws.com': ebs,
      'pd.csi.storage.gke.io': gce,
      'cinder.csi.openstack.org': cinder,
      'disk.csi.azure.com': azureDisk,
      'file.csi.azure.com': azureFile,
      'csi.vsphere.vmware.com': vsphere,
      'pxd.portworx.com': portworx,
    });
  });

  test('are unknown to all other drivers', () => {
    assert.equal(driverMigration('d.example.com'), undefined);
  });
});

describe('a class of an in-tree plugin', () => {
  const cases: readonly {
    name: string;
    plugin: string;
    given: Record<string, string>;
    allowed?: string;
    parameters: Record<string, string>;
    topology?: string;
  }[] = [
    {
      name: 'EBS: filesystem and rate are named as the driver does, the rest is kept',
      plugin: ebs,
      given: { type: 'gp3', fsType: 'ext4', iopsPerGB: '3' },
      parameters: { type: 'gp3', [fsTypeKey]: 'ext4', iopsPerGB: '3', allowautoiopspergbincrease: 'true' },
    },
    {
      name: 'EBS: zones become topologies',
      plugin: ebs,
      given: { zones: 'a,b' },
      parameters: {},
      topology: 'topology.ebs.csi.aws.com/zone=a|b',
    },
    {
      name: 'EBS: the older zone label is known, the region stays',
      plugin: ebs,
      given: {},
      allowed: 'failure-domain.beta.kubernetes.io/zone=us-west-2a & topology.kubernetes.io/region=us-west-2',
      parameters: {},
      topology: 'topology.ebs.csi.aws.com/zone=us-west-2a & topology.kubernetes.io/region=us-west-2',
    },
    {
      name: 'GCE: the zone label is renamed in every term',
      plugin: gce,
      given: { type: 'pd-ssd', 'replication-type': 'none' },
      allowed: `${zone}=us-c1-a|us-c1-b;${zone}=us-c1-f`,
      parameters: { type: 'pd-ssd', 'replication-type': 'none' },
      topology: 'topology.gke.io/zone=us-c1-a|us-c1-b;topology.gke.io/zone=us-c1-f',
    },
    {
      name: 'GCE: parameters are known in any case',
      plugin: gce,
      given: { Zone: 'us-c1-a', FSTYPE: 'xfs' },
      parameters: { [fsTypeKey]: 'xfs' },
      topology: 'topology.gke.io/zone=us-c1-a',
    },
    {
      name: 'GCE: zones are not trimmed',
      plugin: gce,
      given: { zones: 'us-c1-a, us-c1-b' },
      parameters: {},
      topology: 'topology.gke.io/zone=us-c1-a| us-c1-b',
    },
    {
      name: 'GCE: of zone and zones the second counts',
      plugin: gce,
      given: { zone: 'x', zones: 'a,b' },
      parameters: {},
      topology: 'topology.gke.io/zone=a|b',
    },
    {
      name: 'Cinder: zones as parameters are left to the driver',
      plugin: cinder,
      given: { availability: 'nova', fstype: 'xfs', zone: 'a' },
      allowed: `${zone}=nova`,
      parameters: { availability: 'nova', [fsTypeKey]: 'xfs', zone: 'a' },
      topology: 'topology.cinder.csi.openstack.org/zone=nova',
    },
    {
      name: 'Azure Disk: zones that are numbers are no zones',
      plugin: azureDisk,
      given: { skuName: 'Premium_LRS', fsType: 'ext4' },
      allowed: `${zone}=0|westus-1 & other=1`,
      parameters: { skuName: 'Premium_LRS', fsType: 'ext4' },
      topology: 'topology.disk.csi.azure.com/zone=|westus-1 & other=1',
    },
    {
      name: 'Azure Disk: also those of parameters',
      plugin: azureDisk,
      given: { zones: '1,westus-2' },
      parameters: {},
      topology: 'topology.disk.csi.azure.com/zone=|westus-2',
    },
    {
      name: 'Azure File: nothing changes',
      plugin: azureFile,
      given: { skuName: 'Standard_LRS', zone: 'a', fsType: 'ext4' },
      allowed: `${zone}=a`,
      parameters: { skuName: 'Standard_LRS', zone: 'a', fsType: 'ext4' },
      topology: `${zone}=a`,
    },
    {
      name: 'vSphere: what only the plugin knew is renamed, the unknown is dropped',
      plugin: vsphere,
      given: {
        fsType: 'ext4',
        StoragePolicyName: 'Gold',
        diskFormat: 'thin',
        datastore: 'DS1',
        hostFailuresToTolerate: '1',
        forceProvisioning: 'yes',
        cacheReservation: '2',
        diskStripes: '3',
        objectSpaceReservation: '4',
        iopsLimit: '5',
        other: 'x',
        'csi.storage.k8s.io/provisioner-secret-name': 's',
      },
      allowed: `${zone}=a & topology.kubernetes.io/region=r`,
      parameters: {
        [fsTypeKey]: 'ext4',
        storagepolicyname: 'Gold',
        'diskformat-migrationparam': 'thin',
        'datastore-migrationparam': 'DS1',
        'hostfailurestotolerate-migrationparam': '1',
        'forceprovisioning-migrationparam': 'yes',
        'cachereservation-migrationparam': '2',
        'diskstripes-migrationparam': '3',
        'objectspacereservation-migrationparam': '4',
        'iopslimit-migrationparam': '5',
        csimigration: 'true',
      },
      topology: 'topology.csi.vmware.com/zone=a & topology.kubernetes.io/region=r',
    },
    {
      name: 'Portworx: one secret becomes that of every call',
      plugin: portworx,
      given: {
        repl: '2',
        'openstorage.io/auth-secret-name': 'px-${pvc.name}',
        'openstorage.io/auth-secret-namespace': 'px',
      },
      allowed: `${zone}=a`,
      parameters: {
        repl: '2',
        ...Object.fromEntries(
          [
            'provisioner',
            'controller-publish',
            'node-publish',
            'node-stage',
            'controller-expand',
            'node-expand',
          ].flatMap((pair) => [
            [`csi.storage.k8s.io/${pair}-secret-name`, 'px-${pvc.name}'],
            [`csi.storage.k8s.io/${pair}-secret-namespace`, 'px'],
          ]),
        ),
      },
      topology: `${zone}=a`,
    },
  ];
  for (const { name, plugin, given, allowed, parameters, topology } of cases) {
    test(name, () => {
      const translated = translate(plugin, given, allowed);
      const wanted = classOf(plugin === portworx ? 'pxd.portworx.com' : plugin, parameters, topology);
      assert.deepEqual(translated, wanted);
    });
  }

  for (const plugin of [ebs, gce, azureDisk]) {
    test(`${plugin}: zones are named once`, () => {
      for (const parameter of ['zone', 'ZONES']) {
        assert.throws(
          () => translate(plugin, { [parameter]: 'a' }, `${zone}=b`),
          new Error('cannot simultaneously set allowed topologies and zone/zones parameters'),
        );
      }
      assert.doesNotThrow(() => translate(plugin, {}, `${zone}=b`));
    });
  }

  test('a class that names the driver itself is left as it is', () => {
    for (const { driverName } of inTreePlugins) {
      const given = classOf(driverName, { zone: 'a', fstype: 'xfs' }, `${zone}=b`);
      assert.equal(driverMigration(driverName)?.translateClass(given), given);
    }
  });

  test('a class without parameters and topologies can be translated', () => {
    for (const { name, driverName } of inTreePlugins) {
      const given: StorageClass = { metadata: { name: 'sc' }, provisioner: name };
      const translated = driverMigration(driverName)?.translateClass(given);
      assert.notEqual(translated, given); // by which others know that it was translated
      assert.equal(translated?.metadata.name, 'sc');
      assert.equal(translated.allowedTopologies, undefined);
    }
  });

  test('is not changed itself, whatever it holds', () => {
    const key = fc.oneof(
      fc.string(),
      fc.constantFrom('zone', 'Zones', 'fsType', 'iopsPerGB', 'diskformat', '__proto__'),
    );
    fc.assert(
      fc.property(
        fc.constantFrom(...inTreePlugins),
        fc.dictionary(key, fc.string(), { noNullPrototype: true }),
        (plugin, parameters) => {
          const given = classOf(plugin.name, parameters);
          const before = structuredClone(given);
          const translated = driverMigration(plugin.driverName)?.translateClass(given);
          assert.deepEqual(given, before);
          assert.deepEqual(
            { ...translated, provisioner: '', parameters: {}, allowedTopologies: [] },
            { ...given, provisioner: '', parameters: {}, allowedTopologies: [] },
          );
        },
      ),
    );
  });
});
