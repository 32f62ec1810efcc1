import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  PlannedVolume,
  planVolume,
  type PlanWithReads,
  type VolumePlan,
} from '../../../../src/csi/create/volume-plan.ts';
import { createVolume } from '../../../../src/csi/create/create-volume.ts';
import type { StorageClass } from '../../../../src/provision/objects.ts';
import { assertFailed, driverName, Rig, uid } from '../../../support/csi-rig.ts';
import { claim, sourcePath, startFullRig, storageClass, zones } from '../../../support/full-plan.ts';

const { signal } = new AbortController();
const context = { beforeDelete: () => Promise.resolve(), signal };
function plan(rig: Rig): Promise<PlanWithReads> {
  return planVolume(rig.settings, rig.options(claim, storageClass, 'n1'), { signal });
}

describe('planVolume', () => {
  test('gives what CreateVolume and the PersistentVolume need, as plain data without secrets', async () => {
    await using rig = await startFullRig();
    const planned = await plan(rig);
    assert.deepEqual(planned.plan, {
      driverName,
      claim: { namespace: 'ns1', name: 'c1', uid },
      request: {
        name: `pvc-${uid}`,
        capacity_range: { required_bytes: '5368709120' },
        volume_capabilities: [
          { access_mode: { mode: 'SINGLE_NODE_WRITER' }, mount: { fs_type: 'xfs', mount_flags: ['noatime'] } },
        ],
        volume_content_source: { volume: { volume_id: 'vol-src' } },
        parameters: { type: 'ssd' },
        mutable_parameters: { iops: '100' },
      },
      topology: { requisite: zones, first: 1 },
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
    await using rig = await startFullRig();
    await plan(rig);
    assert.deepEqual(
      rig.api.log.filter((line) => !line.startsWith('GET ')),
      [],
    );
    assert.deepEqual([rig.driver.calls, rig.events], [[], []]);
  });

  test('a source that is of no use because a later step fails is not written', async () => {
    await using rig = await startFullRig();
    const unknown = { ...storageClass, parameters: { 'csi.storage.k8s.io/unknown': 'x' } };
    assertFailed(
      await rig.provision(claim, unknown),
      'finished',
      'found unknown parameter key "csi.storage.k8s.io/unknown"',
    );
    assert.equal(rig.api.get(sourcePath)?.metadata.finalizers, undefined);
  });
});

describe('PlannedVolume', () => {
  test('gives its secrets once, and not those that were read more than two seconds ago', async () => {
    await using rig = await startFullRig();
    const made = await plan(rig);
    const [fresh, old] = [1, 2].map(() => new PlannedVolume(made, { withClassLeftOut: undefined, nowMs: 500 }));
    assert.equal(fresh?.takeSecrets(2500), made.secrets);
    assert.equal(fresh.takeSecrets(2500), undefined);
    assert.equal(old?.takeSecrets(2501), undefined);
  });
});

describe('createVolume', () => {
  test('a plan that was stored and read again gives the same request and volume, without claim and class', async () => {
    await using rig = await startFullRig();
    const { plan: planned, secrets } = await plan(rig);
    const volume = await createVolume(rig.settings, planned, { ...context, secrets });
    const stored = JSON.parse(JSON.stringify(planned)) as VolumePlan;
    assert.deepEqual(await createVolume(rig.settings, stored, { ...context, secrets }), volume);
    const [first, second] = rig.driver.callsOf('CreateVolume');
    assert.deepEqual(second?.request, first?.request);
    assert.deepEqual(second?.request['secrets'], { user: 'hush' });
  });

  test('a volume of an in-tree class stays one although the class is gone', async () => {
    const migration = {
      translateClass: (given: StorageClass) => ({ ...given, provisioner: driverName }),
      toInTree: (volume: object) => ({ ...volume, metadata: { name: 'in-tree' } }) as never,
      toCsi: <T>(volume: T) => volume,
      holds: () => false,
      hasSource: () => false,
      storageKeys: () => [],
      handleKey: (handle: string) => handle,
    };
    await using rig = await Rig.start({ settings: { migration } });
    const { plan: planned, secrets } = await planVolume(rig.settings, rig.options(), { signal });
    const stored = JSON.parse(JSON.stringify(planned)) as VolumePlan;
    const volume = await createVolume(rig.settings, stored, { ...context, secrets });
    assert.equal(volume.metadata.name, 'in-tree');
    assert.equal(rig.finishedCalls.at(-1)?.migrated, true);
  });
});
