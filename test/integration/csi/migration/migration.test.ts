/** Drivers that replaced an in-tree plugin, in the whole program. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TopologyRequirement } from '../../../../src/csi/generated/csi/v1/TopologyRequirement.ts';
import type { PersistentVolume, StorageClass } from '../../../../src/provision/objects.ts';
import type { SandboxMeta, SandboxObject } from '../../../../sandbox/api/client.ts';
import { freePort } from '../../../support/free-ports.ts';
import { resource } from '../../../support/api-scene.ts';
import { Scene, type SceneOptions } from '../scene.ts';
import { topologyPlugin } from '../topology/topology-scene.ts';

const ebs = { driver: 'ebs.csi.aws.com', plugin: 'kubernetes.io/aws-ebs', zoneKey: 'topology.ebs.csi.aws.com/zone' };
const gce = { driver: 'pd.csi.storage.gke.io', plugin: 'kubernetes.io/gce-pd', zoneKey: 'topology.gke.io/zone' };
const azure = {
  driver: 'disk.csi.azure.com',
  plugin: 'kubernetes.io/azure-disk',
  zoneKey: 'topology.disk.csi.azure.com/zone',
};
const zone = 'topology.kubernetes.io/zone';
const region = 'topology.kubernetes.io/region';
const provisionerKey = 'volume.kubernetes.io/storage-provisioner';
const migratedToKey = 'pv.kubernetes.io/migrated-to';
const provisionedByKey = 'pv.kubernetes.io/provisioned-by';

/** A driver whose class `sc` names its plugin. */
function start(of: typeof ebs, { storageClass, ...options }: SceneOptions = {}): Promise<Scene> {
  return Scene.start({ driverName: of.driver, ...options, storageClass: { provisioner: of.plugin, ...storageClass } });
}

async function volumeOf(scene: Scene, claim = 'c1'): Promise<PersistentVolume> {
  return (await scene.volume(claim)) as unknown as PersistentVolume;
}

/** What the driver was asked for, once it was. */
async function request(scene: Scene): Promise<Record<string, unknown>> {
  await scene.called(scene.driver, 'CreateVolume');
  return scene.driver.callsOf('CreateVolume')[0]?.request ?? {};
}

async function requisite(scene: Scene): Promise<(Record<string, string> | undefined)[]> {
  const { accessibility_requirements } = (await request(scene)) as { accessibility_requirements?: TopologyRequirement };
  return (accessibility_requirements?.requisite ?? []).map(({ segments }) => ({ ...segments }));
}

/** The driver answers CreateVolume with these places. */
function places(driver: Scene['driver'], volumeId: string, ...segments: Record<string, string>[]): void {
  driver.always('CreateVolume', {
    volume: {
      volume_id: volumeId,
      capacity_bytes: String(2 ** 30),
      accessible_topology: segments.map((each) => ({ segments: each })),
    },
  });
}

function allowed(expressions: Record<string, string[]>): NonNullable<StorageClass['allowedTopologies']> {
  return [{ matchLabelExpressions: Object.entries(expressions).map(([key, values]) => ({ key, values })) }];
}

describe('classes of a plugin that the driver replaced', () => {
  for (const [whose, annotations] of [
    ['for claims that name the driver', { [provisionerKey]: ebs.driver }],
    ['for claims that were migrated', { [provisionerKey]: ebs.plugin, [migratedToKey]: ebs.driver }],
  ] as const) {
    test(`${whose} the driver makes the volume, the volume is one of the plugin`, async () => {
      await using scene = await start(ebs, { parameters: { type: 'gp3', fsType: 'ext4', iopsPerGB: '3' } });
      const claim = scene.addClaim('c1', {}, { annotations });
      const volume = await volumeOf(scene);
      const { parameters, volume_capabilities } = await request(scene);
      assert.deepEqual(parameters, { type: 'gp3', iopsPerGB: '3', allowautoiopspergbincrease: 'true' });
      assert.equal((volume_capabilities as { mount: { fs_type: string } }[])[0]?.mount.fs_type, 'ext4');
      assert.deepEqual(volume.spec['awsElasticBlockStore'], { volumeID: 'vol-1', fsType: 'ext4' });
      assert.equal(volume.spec.csi, undefined);
      assert.equal(volume.metadata.name, `pvc-${claim.metadata.uid ?? ''}`);
      assert.equal(volume.metadata.annotations?.[provisionedByKey], ebs.plugin);
      assert.equal(volume.metadata.annotations[migratedToKey], undefined);
      assert.equal(volume.metadata.labels, undefined);
      assert.equal(volume.spec.persistentVolumeReclaimPolicy, 'Delete');
      const line = await scene.program.logged('Supports migration from in-tree plugin');
      assert.ok(line.includes(ebs.plugin), line);
    });
  }

  test('claims that the plugin serves, or another driver, are left alone', async () => {
    await using scene = await start(ebs);
    scene.addClaim('plugin', {}, { annotations: { [provisionerKey]: ebs.plugin } });
    scene.addClaim('other', {}, { annotations: { [provisionerKey]: ebs.plugin, [migratedToKey]: 'd.example.com' } });
    scene.addClaim('ours');
    await scene.volume('ours');
    assert.deepEqual([scene.events('plugin'), scene.events('other')], [[], []]);
    assert.equal(scene.driver.callsOf('CreateVolume').length, 1);
  });

  test('zones as parameters become a requirement', async () => {
    await using scene = await start(ebs, { plugin: topologyPlugin, parameters: { zones: 'a,b' } });
    scene.addClaim();
    assert.deepEqual(await requisite(scene), [{ [ebs.zoneKey]: 'a' }, { [ebs.zoneKey]: 'b' }]);
    assert.deepEqual((await request(scene))['parameters'] ?? {}, {});
  });

  for (const parameter of ['zone', 'zones']) {
    test(`zones cannot be named by allowed topologies and the parameter ${parameter} together`, async () => {
      await using scene = await start(ebs, {
        plugin: topologyPlugin,
        parameters: { [parameter]: 'a' },
        storageClass: { allowedTopologies: allowed({ [zone]: ['b'] }) },
      });
      scene.addClaim();
      const { message } = await scene.event('ProvisioningFailed');
      assert.equal(
        message,
        'failed to translate storage class: cannot simultaneously set allowed topologies and zone/zones parameters',
      );
      assert.deepEqual(scene.driver.callsOf('CreateVolume'), []);
    });
  }

  test('the volume has labels of zone and region', async () => {
    await using scene = await start(ebs, {
      plugin: topologyPlugin,
      script: (driver) => places(driver, 'vol-1', { [ebs.zoneKey]: 'us-west-2a' }),
      storageClass: { allowedTopologies: allowed({ [zone]: ['us-west-2a'] }) },
    });
    scene.addClaim();
    const { metadata, spec } = await volumeOf(scene);
    assert.deepEqual(metadata.labels, { [zone]: 'us-west-2a', [region]: 'us-west-2' });
    assert.deepEqual(spec.nodeAffinity, affinity(['us-west-2a', 'us-west-2']));
  });

  test('a zone without a region fails the attempt, and nothing is deleted', async () => {
    await using scene = await start(ebs, {
      plugin: topologyPlugin,
      script: (driver) => places(driver, 'vol-1', { [ebs.zoneKey]: 'weird' }),
      storageClass: { allowedTopologies: allowed({ [zone]: ['weird'] }) },
    });
    scene.addClaim();
    const { message } = await scene.event('ProvisioningFailed');
    assert.equal(message, 'the region of zone "weird" is not known');
    await scene.driver.called('CreateVolume', 3);
    assert.deepEqual(scene.driver.callsOf('DeleteVolume'), []);
    // the driver has made it: once the claim is gone it is deleted, and no volume is saved
    scene.removeClaim();
    await scene.driver.called('DeleteVolume');
    assert.equal(scene.driver.callsOf('DeleteVolume')[0]?.request['volume_id'], 'vol-1');
    assert.equal(scene.volumeNow(), undefined);
  });

  test('a class that names the driver is not translated', async () => {
    await using scene = await start(ebs, {
      plugin: topologyPlugin,
      parameters: { iopsPerGB: '3' },
      script: (driver) => places(driver, 'vol-1', { [ebs.zoneKey]: 'us-west-2a' }),
      storageClass: { provisioner: ebs.driver, allowedTopologies: allowed({ [zone]: ['a'] }) },
    });
    scene.addClaim();
    const { spec, metadata } = await volumeOf(scene);
    assert.deepEqual(await requisite(scene), [{ [zone]: 'a' }]);
    assert.deepEqual((await request(scene))['parameters'], { iopsPerGB: '3' });
    assert.deepEqual([spec.csi?.driver, spec.csi?.volumeHandle], [ebs.driver, 'vol-1']);
    assert.equal(spec.nodeAffinity?.required?.nodeSelectorTerms[0]?.matchExpressions?.[0]?.key, ebs.zoneKey);
    assert.equal(metadata.labels, undefined);
    assert.equal(metadata.annotations?.[provisionedByKey], ebs.driver);
  });

  for (const [what, source] of [
    ['a volume of the driver', { csi: { driver: ebs.driver, volumeHandle: 'vol-0' } }],
    ['a volume of the plugin', { awsElasticBlockStore: { volumeID: 'vol-0' } }],
  ] as const) {
    test(`a clone of ${what} is refused`, async () => {
      await using scene = await start(ebs, {
        controller: ['CREATE_DELETE_VOLUME', 'CLONE_VOLUME'],
        objects: boundClaim(source),
      });
      scene.addClaim('c1', { dataSource: { kind: 'PersistentVolumeClaim', name: 'source' } });
      const { message } = await scene.event('ProvisioningFailed');
      assert.equal(
        message,
        'error getting handle for DataSource Type PersistentVolumeClaim by Name source: ' +
          'claim in dataSource not bound or invalid',
      );
      assert.deepEqual(scene.driver.callsOf('CreateVolume'), []);
      const finalizers = scene.api.get(resource.claims, { namespace: 'ns1', name: 'source' })?.metadata.finalizers;
      assert.equal(finalizers?.includes('provisioner.storage.kubernetes.io/cloning-protection') ?? false, false);
    });
  }

  test('Portworx: a clone works, since its classes are those of the driver', async () => {
    const driverName = 'pxd.portworx.com';
    await using scene = await Scene.start({
      driverName,
      controller: ['CREATE_DELETE_VOLUME', 'CLONE_VOLUME'],
      storageClass: { provisioner: 'kubernetes.io/portworx-volume' },
      objects: boundClaim({ csi: { driver: driverName, volumeHandle: 'vol-0' } }),
    });
    scene.addClaim('c1', { dataSource: { kind: 'PersistentVolumeClaim', name: 'source' } });
    const { spec, metadata } = await volumeOf(scene);
    const { volume_content_source } = await request(scene);
    assert.deepEqual((volume_content_source as { volume: object }).volume, { volume_id: 'vol-0' });
    assert.deepEqual(spec['portworxVolume'], { volumeID: 'vol-1' });
    assert.equal(metadata.annotations?.[provisionedByKey], 'kubernetes.io/portworx-volume');
  });
});

describe('the requirement of a migrated class', () => {
  for (const { name, of, parameters, topologies, wanted } of [
    {
      name: 'names the allowed zones in the words of the driver',
      of: gce,
      topologies: { [zone]: ['us-c1-a', 'us-c1-b'] },
      wanted: [{ [gce.zoneKey]: 'us-c1-a' }, { [gce.zoneKey]: 'us-c1-b' }],
    },
    {
      name: 'names the zone of a parameter',
      of: gce,
      parameters: { Zone: 'us-c1-a' },
      wanted: [{ [gce.zoneKey]: 'us-c1-a' }],
    },
    {
      name: 'names the zones of a parameter untrimmed',
      of: gce,
      parameters: { zones: 'us-c1-a, us-c1-b' },
      wanted: [{ [gce.zoneKey]: ' us-c1-b' }, { [gce.zoneKey]: 'us-c1-a' }],
    },
    {
      name: 'knows the older label, and keeps a region',
      of: ebs,
      topologies: { 'failure-domain.beta.kubernetes.io/zone': ['us-west-2a'], [region]: ['us-west-2'] },
      wanted: [{ [ebs.zoneKey]: 'us-west-2a', [region]: 'us-west-2' }],
    },
    {
      name: 'takes no number for a zone',
      of: azure,
      topologies: { [zone]: ['0', 'westus-1'] },
      wanted: [{ [azure.zoneKey]: '' }, { [azure.zoneKey]: 'westus-1' }],
    },
  ] as const) {
    test(name, async () => {
      await using scene = await start(of, {
        plugin: topologyPlugin,
        ...(parameters && { parameters }),
        storageClass: {
          ...(topologies && { allowedTopologies: allowed(topologies as unknown as Record<string, string[]>) }),
        },
      });
      scene.addClaim();
      assert.deepEqual(await requisite(scene), wanted);
      assert.deepEqual((await request(scene))['parameters'] ?? {}, {});
    });
  }

  for (const { zones, labels, terms } of [
    {
      zones: ['us-c1-a'],
      labels: { [zone]: 'us-c1-a', [region]: 'us-c1' },
      terms: affinity(['us-c1-a', 'us-c1']),
    },
    {
      zones: ['us-c1-b', 'us-c1-a'],
      labels: { [zone]: 'us-c1-a__us-c1-b', [region]: 'us-c1' },
      terms: affinity(['us-c1-b', 'us-c1'], ['us-c1-a', 'us-c1']),
    },
  ]) {
    test(`a volume in ${zones.join(' and ')} says so by labels and affinity`, async () => {
      const handle = 'projects/p/regions/us-c1/disks/d';
      await using scene = await start(gce, {
        plugin: topologyPlugin,
        script: (driver) => places(driver, handle, ...zones.map((each) => ({ [gce.zoneKey]: each }))),
        storageClass: { allowedTopologies: allowed({ [zone]: zones }) },
      });
      scene.addClaim();
      const { metadata, spec } = await volumeOf(scene);
      assert.deepEqual(spec['gcePersistentDisk'], { pdName: 'd' });
      assert.deepEqual(metadata.labels, labels);
      assert.deepEqual(spec.nodeAffinity, terms);
    });
  }
});

describe('volumes of a plugin that the driver replaced', () => {
  test('are deleted by the driver', async () => {
    await using scene = await start(ebs, {
      objects: [pluginVolume('old', { awsElasticBlockStore: { volumeID: 'aws://us-west-2a/vol-0a' } })],
    });
    await scene.called(scene.driver, 'DeleteVolume');
    assert.deepEqual(scene.driver.callsOf('DeleteVolume')[0]?.request, { volume_id: 'vol-0a' });
    await scene.until('its end', () => scene.api.get(resource.volumes, { name: 'old' }) === undefined);
    assert.deepEqual(scene.events('old'), []);
  });

  test('are deleted too when they only say where they were migrated to', async () => {
    const volume = pluginVolume(
      'old',
      { gcePersistentDisk: { pdName: 'd' } },
      { annotations: { [migratedToKey]: gce.driver }, labels: { [zone]: 'us-c1-a' } },
    );
    await using scene = await start(gce, { objects: [volume] });
    await scene.called(scene.driver, 'DeleteVolume');
    assert.deepEqual(scene.driver.callsOf('DeleteVolume')[0]?.request, {
      volume_id: 'projects/UNSPECIFIED/zones/us-c1-a/disks/d',
    });
  });

  test('what was made through a class of the plugin is deleted by its handle', async () => {
    await using scene = await start(ebs);
    scene.addClaim();
    const volume = await scene.volume();
    scene.release(volume);
    await scene.called(scene.driver, 'DeleteVolume');
    assert.deepEqual(scene.driver.callsOf('DeleteVolume')[0]?.request, { volume_id: 'vol-1' });
    await scene.volumeDeleted();
  });

  test('one whose source cannot be read is not deleted, and says why', async () => {
    await using scene = await start(ebs, {
      objects: [pluginVolume('old', { awsElasticBlockStore: { volumeID: 'aws://us-west-2a/disk' } })],
    });
    const { message } = await scene.event('VolumeFailedDelete', 'old');
    assert.equal(message, '"aws://us-west-2a/disk" is not the name of an EBS volume');
    assert.deepEqual(scene.driver.callsOf('DeleteVolume'), []);
  });

  test('a blob of Azure is not given to the driver of disks, and says why', async () => {
    const blob = { diskName: 'd', diskURI: 'https://a.blob.core.windows.net/vhds/d.vhd', kind: 'Dedicated' };
    await using scene = await start(azure, {
      objects: [pluginVolume('old', { azureDisk: blob }, { annotations: { [provisionedByKey]: azure.plugin } })],
    });
    const { message } = await scene.event('VolumeFailedDelete', 'old');
    assert.equal(message, 'kind(Dedicated) is not supported in csi migration');
    assert.deepEqual(scene.driver.callsOf('DeleteVolume'), []);
  });

  for (const { title, of, sources } of [
    {
      title: 'a twin in CSI form',
      of: ebs,
      sources: [
        { awsElasticBlockStore: { volumeID: 'aws://us-west-2a/vol-0a' } },
        { csi: { driver: ebs.driver, volumeHandle: 'vol-0a' } },
      ],
    },
    {
      title: 'a twin of the plugin',
      of: ebs,
      sources: [
        { csi: { driver: ebs.driver, volumeHandle: 'vol-0a' } },
        { awsElasticBlockStore: { volumeID: 'aws://us-west-2a/vol-0a' } },
      ],
    },
    {
      title: 'a twin whose handle has other letter case, as Azure takes it',
      of: azure,
      sources: ['d-1', 'D-1'].map((disk) => ({
        csi: { driver: azure.driver, volumeHandle: `/subscriptions/s/resourceGroups/g/${disk}` },
      })),
    },
  ]) {
    test(`one with ${title} is not deleted before that is gone`, async () => {
      const [own, twin] = sources;
      const annotations = { [provisionedByKey]: of.driver };
      const imported = {
        ...pluginVolume(
          'imported',
          { ...twin, persistentVolumeReclaimPolicy: 'Retain' },
          { annotations: {}, finalizers: [] },
        ),
        status: { phase: 'Bound' },
      };
      const old = pluginVolume('old', own!, { annotations });
      await using scene = await start(of, { objects: [imported, old] });
      assert.deepEqual(await scene.event('VolumeDeletionWaiting', 'old'), {
        type: 'Warning',
        reason: 'VolumeDeletionWaiting',
        message: 'persistentvolume old has the same storage as persistentvolume imported, which is not to be deleted',
        count: 1,
      });
      assert.deepEqual(scene.driver.callsOf('DeleteVolume'), []);
      scene.api.delete(resource.volumes, { name: 'imported' });
      await scene.called(scene.driver, 'DeleteVolume');
      await scene.until('its end', () => scene.api.get(resource.volumes, { name: 'old' }) === undefined);
    });
  }

  test('one of another plugin is not given to the driver, and an event says why', async () => {
    const volume = pluginVolume('old', { gcePersistentDisk: { pdName: 'd' } });
    await using scene = await start(ebs, { objects: [volume] });
    const text =
      /^persistentvolume old is left as it is: its annotation \S+ names \S+, but its source is gcePersistentDisk\. /;
    assert.match((await scene.event('VolumeDeletionWaiting', 'old')).message, text);
    assert.deepEqual(scene.driver.callsOf('DeleteVolume'), []);
  });

  test('a driver that replaced nothing leaves them alone', async () => {
    await using scene = await Scene.start({
      objects: [pluginVolume('old', { awsElasticBlockStore: { volumeID: 'vol-0' } })],
      storageClass: { metadata: { name: 'sc' } },
    });
    scene.addClaim();
    scene.release(await scene.volume());
    await scene.volumeDeleted();
    assert.equal(scene.driver.callsOf('DeleteVolume').length, 1);
    assert.deepEqual(scene.events('old'), []);
    assert.ok(!scene.program.lines.some((line) => line.includes('Supports migration')));
  });
});

describe('metrics of a driver that replaced a plugin', () => {
  test('each call says whether it was for a migrated volume; none is of an unknown driver', async () => {
    const address = `127.0.0.1:${await freePort()}`;
    const own = {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'own' },
      provisioner: ebs.driver,
      reclaimPolicy: 'Delete',
      volumeBindingMode: 'Immediate',
    };
    await using scene = await start(ebs, {
      flags: [`--http-endpoint=${address}`],
      objects: [own, pluginVolume('old', { awsElasticBlockStore: { volumeID: 'vol-0' } })],
    });
    scene.addClaim();
    await scene.volume();
    places(scene.driver, 'vol-2');
    scene.addClaim('c2', { storageClassName: 'own' });
    scene.release(await scene.volume('c2'));
    await scene.volumeDeleted('c2');
    await scene.until('the end of the old volume', () => !scene.api.get(resource.volumes, { name: 'old' }));
    assert.deepEqual(await countedCalls(address), [
      'ebs.csi.aws.com Controller/ControllerGetCapabilities OK false 1',
      'ebs.csi.aws.com Controller/CreateVolume OK false 1',
      'ebs.csi.aws.com Controller/CreateVolume OK true 1',
      'ebs.csi.aws.com Controller/DeleteVolume OK false 1',
      'ebs.csi.aws.com Controller/DeleteVolume OK true 1',
      'ebs.csi.aws.com Identity/GetPluginCapabilities OK false 1',
      'ebs.csi.aws.com Identity/Probe OK false 1',
    ]);
    assert.equal(scene.driver.callsOf('Probe').length, 2);
  });

  test('of another driver nothing is said about migration, and its first calls are of an unknown one', async () => {
    const address = `127.0.0.1:${await freePort()}`;
    await using scene = await Scene.start({ flags: [`--http-endpoint=${address}`] });
    scene.addClaim();
    await scene.volume();
    assert.deepEqual(await countedCalls(address), [
      'd.example.com Controller/ControllerGetCapabilities OK 1',
      'd.example.com Controller/CreateVolume OK 1',
      'd.example.com Identity/GetPluginCapabilities OK 1',
      'unknown-driver Identity/GetPluginInfo OK 1',
      'unknown-driver Identity/Probe OK 1',
    ]);
  });
});

/** What the program has counted of its calls: labels and number of each series. */
async function countedCalls(address: string): Promise<string[]> {
  const page = await (await fetch(`http://${address}/metrics`)).text();
  const series = page.matchAll(/^csi_sidecar_operations_seconds_count\{(.*)\} (\d+)$/gm);
  return [...series]
    .map(([, labels = '', count = '']) => `${labels.replaceAll(/\w+="(\/csi\.v1\.)?([^"]*)",?/g, '$2 ')}${count}`)
    .sort();
}

/** Node affinity of one term for each zone and its region. */
function affinity(...terms: [zone: string, region: string][]): PersistentVolume['spec']['nodeAffinity'] {
  return {
    required: {
      nodeSelectorTerms: terms.map(([ofZone, ofRegion]) => ({
        matchExpressions: [
          { key: zone, operator: 'In', values: [ofZone] },
          { key: region, operator: 'In', values: [ofRegion] },
        ],
      })),
    },
  };
}

/** A released volume that the plugin of EBS made, unless the metadata say otherwise. */
function pluginVolume(name: string, source: object, metadata: Partial<SandboxMeta> = {}): SandboxObject {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: {
      name,
      annotations: { [provisionedByKey]: ebs.plugin, [migratedToKey]: ebs.driver },
      finalizers: ['external-provisioner.volume.kubernetes.io/finalizer'],
      ...metadata,
    },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Delete',
      claimRef: { kind: 'PersistentVolumeClaim', namespace: 'ns1', name: 'gone', uid: 'uid-gone' },
      storageClassName: 'sc',
      ...source,
    },
    status: { phase: 'Released' },
  };
}

/** Claim `source`, bound to a volume with this source. */
function boundClaim(source: object): SandboxObject[] {
  const claimRef = { kind: 'PersistentVolumeClaim', namespace: 'ns1', name: 'source', uid: 'uid-source' };
  const volume = pluginVolume('pv-source', { ...source, claimRef });
  return [
    { ...volume, status: { phase: 'Bound' } },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'source', namespace: 'ns1', uid: 'uid-source' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        storageClassName: 'sc',
        volumeName: 'pv-source',
      },
      status: { phase: 'Bound' },
    },
  ];
}
