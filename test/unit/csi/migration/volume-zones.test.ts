/** Where migrated volumes say they are. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { driverMigration } from '../../../../src/csi/migration/driver-migration.ts';
import { inTreePlugins } from '../../../../src/csi/migration/in-tree-plugins.ts';
import type { PersistentVolume } from '../../../../src/provision/objects.ts';

const zone = 'topology.kubernetes.io/zone';
const region = 'topology.kubernetes.io/region';
const betaZone = 'failure-domain.beta.kubernetes.io/zone';
const betaRegion = 'failure-domain.beta.kubernetes.io/region';

const handles: Record<string, string> = {
  'pd.csi.storage.gke.io': 'projects/p/zones/z/disks/d',
  'disk.csi.azure.com': '/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d',
  'file.csi.azure.com': 'g#a#s',
};

const sources: Record<string, object> = {
  awsElasticBlockStore: { volumeID: 'vol-1' },
  gcePersistentDisk: { pdName: 'd' },
  cinder: { volumeID: 'uuid' },
  vsphereVolume: { volumePath: '[ds] d.vmdk' },
};

type Place = { labels?: Record<string, string>; terms?: Record<string, string>[] };

/** A volume with one expression for each entry of a term; values are separated by `|`. */
function volumeOf({ labels, terms }: Place, source: Record<string, object>): PersistentVolume {
  const required = {
    nodeSelectorTerms: (terms ?? []).map((term) => ({
      matchExpressions: Object.entries(term).map(([key, values]) => ({
        key,
        operator: 'In',
        values: values.split('|'),
      })),
    })),
  };
  return {
    metadata: { name: 'pv-1', ...(labels && { labels }) },
    spec: { ...source, ...(terms && { nodeAffinity: { required } }) },
  };
}

function placeOf({ metadata: { labels }, spec: { nodeAffinity } }: PersistentVolume): Place {
  const terms = nodeAffinity?.required?.nodeSelectorTerms.map(({ matchExpressions = [] }) =>
    Object.fromEntries(matchExpressions.map(({ key, values = [] }) => [key, values.join('|')])),
  );
  return { ...(labels && { labels }), ...(terms && { terms }) };
}

function inTree(driver: string, place: Place): Place {
  const csi = {
    driver,
    volumeHandle: handles[driver] ?? 'vol-1',
    volumeAttributes: { initialvolumefilepath: '[ds] d.vmdk' },
  };
  const hook = driverMigration(driver);
  assert.ok(hook !== undefined);
  return placeOf(hook.toInTree(volumeOf(place, { csi })));
}

function toCsi(driver: string, place: Place): PersistentVolume {
  const field = inTreePlugins.find(({ driverName }) => driverName === driver)?.sourceField ?? '';
  const hook = driverMigration(driver);
  assert.ok(hook !== undefined);
  return hook.toCsi(volumeOf(place, { [field]: sources[field] ?? {} }));
}

const ebs = 'ebs.csi.aws.com';
const ebsZone = 'topology.ebs.csi.aws.com/zone';
const gce = 'pd.csi.storage.gke.io';
const gceZone = 'topology.gke.io/zone';
const cinder = 'cinder.csi.openstack.org';
const cinderZone = 'topology.cinder.csi.openstack.org/zone';
const vsphere = 'csi.vsphere.vmware.com';
const vsphereZone = 'topology.csi.vmware.com/zone';
const vsphereRegion = 'topology.csi.vmware.com/region';

describe('the topology of a new volume in the words of its plugin', () => {
  const cases: readonly { name: string; driver: string; given: Place; wanted: Place }[] = [
    {
      name: 'EBS: zone and region',
      driver: ebs,
      given: { terms: [{ [ebsZone]: 'us-west-2a' }] },
      wanted: {
        labels: { [zone]: 'us-west-2a', [region]: 'us-west-2' },
        terms: [{ [zone]: 'us-west-2a', [region]: 'us-west-2' }],
      },
    },
    {
      name: 'GCE: zone and region',
      driver: gce,
      given: { terms: [{ [gceZone]: 'us-c1-a' }] },
      wanted: {
        labels: { [zone]: 'us-c1-a', [region]: 'us-c1' },
        terms: [{ [zone]: 'us-c1-a', [region]: 'us-c1' }],
      },
    },
    {
      name: 'GCE: the label has all zones, sorted',
      driver: gce,
      given: { terms: [{ [gceZone]: 'us-c1-b' }, { [gceZone]: 'us-c1-a' }] },
      wanted: {
        labels: { [zone]: 'us-c1-a__us-c1-b', [region]: 'us-c1' },
        terms: [
          { [zone]: 'us-c1-b', [region]: 'us-c1' },
          { [zone]: 'us-c1-a', [region]: 'us-c1' },
        ],
      },
    },
    {
      name: 'EBS: of several regions none is a label',
      driver: ebs,
      given: { terms: [{ [ebsZone]: 'us-west-2a' }, { [ebsZone]: 'eu-west-1b' }] },
      wanted: {
        labels: { [zone]: 'eu-west-1b__us-west-2a' },
        terms: [
          { [zone]: 'us-west-2a', [region]: 'us-west-2' },
          { [zone]: 'eu-west-1b', [region]: 'eu-west-1' },
        ],
      },
    },
    {
      name: 'EBS: a region that the driver names stays, other keys too',
      driver: ebs,
      given: { terms: [{ [ebsZone]: 'anything', [region]: 'r', other: 'x' }] },
      wanted: {
        labels: { [zone]: 'anything', [region]: 'r' },
        terms: [{ [zone]: 'anything', [region]: 'r', other: 'x' }],
      },
    },
    {
      name: 'Cinder: the zone alone, whatever it is called',
      driver: cinder,
      given: { terms: [{ [cinderZone]: 'nova' }] },
      wanted: { labels: { [zone]: 'nova' }, terms: [{ [zone]: 'nova' }] },
    },
    {
      name: 'vSphere: zone and region by name, the smallest as labels',
      driver: vsphere,
      given: {
        terms: [
          { [vsphereZone]: 'z2', [vsphereRegion]: 'r2' },
          { [vsphereZone]: 'z1', [vsphereRegion]: 'r1' },
        ],
      },
      wanted: {
        labels: { [zone]: 'z1', [region]: 'r1' },
        terms: [
          { [zone]: 'z2', [region]: 'r2' },
          { [zone]: 'z1', [region]: 'r1' },
        ],
      },
    },
    ...['disk.csi.azure.com', 'file.csi.azure.com', 'pxd.portworx.com'].map((driver) => ({
      name: `${driver}: stays as it is`,
      driver,
      given: { terms: [{ 'topology.disk.csi.azure.com/zone': 'westus-1' }] },
      wanted: { terms: [{ 'topology.disk.csi.azure.com/zone': 'westus-1' }] },
    })),
    ...[ebs, gce, cinder, vsphere].map((driver) => ({
      name: `${driver}: nothing is added where there is no place`,
      driver,
      given: {},
      wanted: {},
    })),
  ];
  for (const { name, driver, given, wanted } of cases) {
    test(name, () => assert.deepEqual(inTree(driver, given), wanted));
  }

  for (const [given, wanted] of [
    ['us-west-2a', 'us-west-2'],
    ['us-gov-west-1b', 'us-gov-west-1'],
    ['us-west-2-lax-1a', 'us-west-2'],
    ['us-east-1-wl1-bos-wlz-1', 'us-east-1'],
  ] as const) {
    test(`EBS: zone ${given} is in region ${wanted}`, () => {
      const { labels } = inTree(ebs, { terms: [{ [ebsZone]: given }] });
      assert.deepEqual(labels, { [zone]: given, [region]: wanted });
    });
  }

  for (const [driver, key, given] of [
    [ebs, ebsZone, 'weird'],
    [ebs, ebsZone, 'us-west-2'],
    [ebs, ebsZone, 'us-west-2aa'],
    [ebs, ebsZone, 'a-b-c-d-e-f'],
    [gce, gceZone, 'us-central1'],
    [gce, gceZone, 'us-central1-a-b'],
  ] as const) {
    test(`${driver}: zone ${given} is in no region`, () => {
      assert.throws(() => inTree(driver, { terms: [{ [key]: given }] }), {
        message: `the region of zone "${given}" is not known`,
      });
    });
  }

  test('a term without a zone, or with zones of several regions, fails', () => {
    assert.throws(() => inTree(ebs, { terms: [{ other: 'x' }] }), { message: 'no region: the volume names no zone' });
    assert.throws(() => inTree(ebs, { terms: [{ [ebsZone]: 'us-west-2a|eu-west-1a' }] }), {
      message: 'the zones us-west-2a, eu-west-1a are in several regions',
    });
  });
});

describe('the topology of a plugin’s volume in the words of the driver', () => {
  const cases: readonly { name: string; driver: string; given: Place; terms?: Record<string, string>[] }[] = [
    {
      name: 'EBS: the zone is renamed, the region stays',
      driver: ebs,
      given: { labels: { [zone]: 'a', [region]: 'r' }, terms: [{ [zone]: 'a', [region]: 'r' }] },
      terms: [{ [ebsZone]: 'a', [region]: 'r' }],
    },
    {
      name: 'EBS: older labels are known, and the region gets today’s',
      driver: ebs,
      given: { terms: [{ [betaZone]: 'a', [betaRegion]: 'r' }] },
      terms: [{ [ebsZone]: 'a', [region]: 'r' }],
    },
    {
      name: 'EBS: a volume from before node affinity says it by label',
      driver: ebs,
      given: { labels: { [betaZone]: 'a' } },
      terms: [{ [ebsZone]: 'a' }],
    },
    {
      name: 'Cinder: a label besides another affinity is added to each term',
      driver: cinder,
      given: { labels: { [zone]: 'nova' }, terms: [{ x: '1' }, { y: '2' }] },
      terms: [
        { x: '1', [cinderZone]: 'nova' },
        { y: '2', [cinderZone]: 'nova' },
      ],
    },
    {
      name: 'vSphere: zone and region',
      driver: vsphere,
      given: { terms: [{ [betaZone]: 'z', [betaRegion]: 'r' }] },
      terms: [{ [vsphereZone]: 'z', [vsphereRegion]: 'r' }],
    },
    {
      name: 'vSphere: by label',
      driver: vsphere,
      given: { labels: { [zone]: 'z', [region]: 'r' } },
      terms: [{ [vsphereZone]: 'z', [vsphereRegion]: 'r' }],
    },
    { name: 'EBS: no topology stays none', driver: ebs, given: {} },
  ];
  for (const { name, driver, given, terms } of cases) {
    test(name, () => assert.deepEqual(placeOf(toCsi(driver, given)).terms, terms));
  }

  for (const [name, labels, handle] of [
    ['one zone', { [zone]: 'us-c1-a' }, 'projects/UNSPECIFIED/zones/us-c1-a/disks/d'],
    ['an older label', { [betaZone]: 'us-c1-a' }, 'projects/UNSPECIFIED/zones/us-c1-a/disks/d'],
    ['several zones', { [zone]: 'us-c1-a__us-c1-b' }, 'projects/UNSPECIFIED/regions/us-c1/disks/d'],
    [
      'an older label of several zones, before another of today,',
      { [betaZone]: 'us-c1-a__us-c1-b', [zone]: 'us-c1-a' },
      'projects/UNSPECIFIED/regions/us-c1/disks/d',
    ],
    [
      'today’s label beside an empty older one',
      { [betaZone]: '', [zone]: 'us-c1-b' },
      'projects/UNSPECIFIED/zones/us-c1-b/disks/d',
    ],
  ] as const) {
    test(`GCE: ${name} in the label stands in the handle`, () => {
      assert.equal(toCsi(gce, { labels }).spec.csi?.volumeHandle, handle);
    });
  }

  for (const key of [zone, betaZone]) {
    test(`GCE: an affinity to ${key} does not choose the label`, () => {
      const labels = { [betaZone]: 'us-c1-a__us-c1-b', [zone]: 'us-c1-c' };
      const handle = 'projects/UNSPECIFIED/regions/us-c1/disks/d';
      assert.equal(toCsi(gce, { labels, terms: [{ [key]: 'us-c1-c' }] }).spec.csi?.volumeHandle, handle);
    });
  }

  test('GCE: zones of several regions are refused', () => {
    assert.throws(() => toCsi(gce, { labels: { [zone]: 'us-c1-a__eu-w1-b' } }), { message: /are in several regions$/ });
  });

  test('what toInTree says, toCsi reads again', () => {
    const zones = fc.uniqueArray(fc.constantFrom('us-west-2a', 'us-west-2b', 'us-west-2c'), { minLength: 1 });
    fc.assert(
      fc.property(zones, (given) => {
        const place = inTree(ebs, { terms: given.map((each) => ({ [ebsZone]: each })) });
        const wanted = given.map((each) => ({ [ebsZone]: each, [region]: 'us-west-2' }));
        assert.deepEqual(placeOf(toCsi(ebs, place)).terms, wanted);
      }),
    );
  });
});
