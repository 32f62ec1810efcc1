import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { planVolume, type PlannedVolume, type VolumePlan } from '../../../src/csi/create-request.ts';
import { createVolume } from '../../../src/csi/create-volume.ts';
import type { TopologyHook } from '../../../src/csi/topology/topology-hook.ts';
import type { PersistentVolumeClaim, StorageClass } from '../../../src/provision/objects.ts';
import { base64, driverName, makeClaim, makeClass, Rig, uid } from '../../support/csi-rig.ts';

const { signal } = new AbortController();
const sourcePath = '/api/v1/namespaces/ns1/persistentvolumeclaims/src';
const segments = { zone: 'a' };
const topology: TopologyHook = {
  requirements: () => ({ requisite: [{ segments }], preferred: [{ segments }] }),
  forget: () => undefined,
};

/** A clone into a chosen node's topology, with secrets and an attributes class: every field of a plan is in use. */
const claim: PersistentVolumeClaim = makeClaim({
  dataSource: { kind: 'PersistentVolumeClaim', name: 'src' },
  volumeAttributesClassName: 'gold',
});
const storageClass: StorageClass = makeClass(
  {
    type: 'ssd',
    'csi.storage.k8s.io/fstype': 'xfs',
    'csi.storage.k8s.io/provisioner-secret-name': 's',
    'csi.storage.k8s.io/provisioner-secret-namespace': 'ns',
  },
  { mountOptions: ['noatime'] },
);

async function startRig(): Promise<Rig> {
  const rig = await Rig.start({
    plugin: ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS'],
    controller: ['CREATE_DELETE_VOLUME', 'CLONE_VOLUME', 'MODIFY_VOLUME'],
    settings: { topology },
  });
  const source = {
    metadata: { name: 'src', namespace: 'ns1', uid: 'uid-src' },
    spec: { ...makeClaim().spec, volumeName: 'pv-src' },
    status: { phase: 'Bound' },
  };
  rig.claims.set(rig.api.put(sourcePath, source) as unknown as PersistentVolumeClaim);
  rig.api.put('/api/v1/persistentvolumes/pv-src', {
    metadata: { name: 'pv-src' },
    spec: {
      csi: { driver: driverName, volumeHandle: 'vol-src' },
      claimRef: { namespace: 'ns1', name: 'src', uid: 'uid-src' },
      volumeMode: 'Filesystem',
    },
    status: { phase: 'Bound' },
  });
  rig.api.put('/api/v1/namespaces/ns/secrets/s', {
    metadata: { name: 's', namespace: 'ns' },
    data: { user: base64('hush') },
  });
  rig.api.put('/apis/storage.k8s.io/v1/volumeattributesclasses/gold', {
    metadata: { name: 'gold' },
    driverName,
    parameters: { iops: '100' },
  });
  const content_source = { volume: { volume_id: 'vol-src' } };
  rig.driver.always('CreateVolume', { volume: { volume_id: 'vol-1', content_source } });
  return rig;
}

function plan(rig: Rig): Promise<PlannedVolume> {
  return planVolume(rig.settings, rig.options(claim, storageClass, 'n1'), { signal });
}

describe('planVolume', () => {
  test('gives what CreateVolume and the PersistentVolume need, as plain data without secrets', async () => {
    await using rig = await startRig();
    const planned = await plan(rig);
    assert.deepEqual(planned.plan, {
      claim: { namespace: 'ns1', name: 'c1', uid },
      request: {
        name: `pvc-${uid}`,
        capacity_range: { required_bytes: '5368709120' },
        volume_capabilities: [
          { access_mode: { mode: 'SINGLE_NODE_WRITER' }, mount: { fs_type: 'xfs', mount_flags: ['noatime'] } },
        ],
        volume_content_source: { volume: { volume_id: 'vol-src' } },
        accessibility_requirements: { requisite: [{ segments }], preferred: [{ segments }] },
        parameters: { type: 'ssd' },
        mutable_parameters: { iops: '100' },
      },
      secretReferences: { provisioner: { name: 's', namespace: 'ns' } },
      source: { handling: 'clone', namespace: 'ns1', name: 'src', uid: 'uid-src' },
      migrated: false,
      topologySupported: true,
      mayReschedule: true,
      fsType: 'xfs',
      spec: {
        accessModes: ['ReadWriteOnce'],
        mountOptions: ['noatime'],
        persistentVolumeReclaimPolicy: 'Delete',
        volumeAttributesClassName: 'gold',
        volumeMode: 'Filesystem',
      },
    } satisfies VolumePlan);
    const text = JSON.stringify(planned.plan);
    assert.deepEqual(JSON.parse(text), planned.plan);
    assert.ok(!text.includes('hush'));
    assert.equal(planned.secrets['user']?.reveal(), 'hush');
  });

  test('changes nothing: no write, no call of the driver, no event', async () => {
    await using rig = await startRig();
    await plan(rig);
    assert.deepEqual(
      rig.api.log.filter((line) => !line.startsWith('GET ')),
      [],
    );
    assert.deepEqual([rig.driver.calls, rig.events], [[], []]);
  });

  test('a source that is of no use because a later step fails is not written', async () => {
    await using rig = await startRig();
    const unknown = { ...storageClass, parameters: { 'csi.storage.k8s.io/unknown': 'x' } };
    await assert.rejects(rig.provisioner.provision(rig.options(claim, unknown), { signal }), {
      state: 'finished',
      message: /found unknown parameter key "csi.storage.k8s.io\/unknown"/,
    });
    assert.equal(rig.api.get(sourcePath)?.metadata.finalizers, undefined);
  });
});

describe('createVolume', () => {
  test('a plan that was stored and read again gives the same request and volume, without claim and class', async () => {
    await using rig = await startRig();
    const { plan: planned, secrets } = await plan(rig);
    const volume = await createVolume(rig.settings, planned, { secrets, inBackground: new Set(), signal });
    const stored = JSON.parse(JSON.stringify(planned)) as VolumePlan;
    assert.deepEqual(await createVolume(rig.settings, stored, { secrets, inBackground: new Set(), signal }), volume);
    const [first, second] = rig.driver.callsOf('CreateVolume');
    assert.deepEqual(second?.request, first?.request);
    assert.deepEqual(second?.request['secrets'], { user: 'hush' });
    const { finalizers } = rig.api.get(sourcePath)?.metadata ?? {};
    assert.deepEqual(finalizers, ['provisioner.storage.kubernetes.io/cloning-protection']);
  });

  test('a volume of an in-tree class stays one although the class is gone', async () => {
    const migration = {
      translateClass: (given: StorageClass) => ({ ...given, provisioner: driverName }),
      toInTree: (volume: object) => ({ ...volume, metadata: { name: 'in-tree' } }) as never,
      toCsi: <T>(volume: T) => volume,
    };
    await using rig = await Rig.start({ settings: { migration } });
    const { plan: planned, secrets } = await planVolume(rig.settings, rig.options(), { signal });
    const stored = JSON.parse(JSON.stringify(planned)) as VolumePlan;
    const volume = await createVolume(rig.settings, stored, { secrets, inBackground: new Set(), signal });
    assert.equal(volume.metadata.name, 'in-tree');
    assert.equal(rig.finishedCalls.at(-1)?.migrated, true);
  });
});
