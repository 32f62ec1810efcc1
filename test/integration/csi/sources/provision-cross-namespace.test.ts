/** Populators, and sources in other namespaces. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import type { PersistentVolumeClaim, ReferenceGrant } from '../../../../src/provision/objects.ts';
import { DriverFailure } from '../../../support/fakes/recording-driver.ts';
import { assertFailed, assertNoCreate, driverName, makeClaim, Rig, uid, volumeOf } from '../../../support/csi-rig.ts';

const finalizer = 'provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection';
const group = 'snapshot.storage.k8s.io';
const snapshots = `/apis/${group}/v1/namespaces`;

type GrantSpec = NonNullable<ReferenceGrant['spec']>;

const from = [{ group: '', kind: 'PersistentVolumeClaim', namespace: 'ns1' }];
const to = [{ group, kind: 'VolumeSnapshot' }];

function grant(spec: GrantSpec, namespace = 'ns2', name = 'g'): ReferenceGrant {
  return { metadata: { name, namespace }, spec };
}

/** A rig with a snapshot `snap` in this namespace, the gate on. */
async function startRig(namespace: string, grants: ReferenceGrant[] = [], gate = true): Promise<Rig> {
  const rig = await Rig.start({
    controller: ['CREATE_DELETE_VOLUME', 'CREATE_DELETE_SNAPSHOT', 'CLONE_VOLUME'],
    settings: { gates: { crossNamespaceVolumeDataSource: gate, volumeAttributesClass: true } },
  });
  for (const each of grants) rig.grants.set(each);
  rig.api.put(`${snapshots}/${namespace}/volumesnapshots/snap`, {
    metadata: { name: 'snap', namespace, uid: 'uid-snap' },
    status: { boundVolumeSnapshotContentName: 'sc-1', readyToUse: true },
  });
  rig.api.put(`/apis/${group}/v1/volumesnapshotcontents/sc-1`, {
    metadata: { name: 'sc-1' },
    spec: { driver: driverName, volumeSnapshotRef: { namespace, name: 'snap', uid: 'uid-snap' } },
    status: { snapshotHandle: 'sid' },
  });
  return rig;
}

const restore = makeClaim({
  dataSourceRef: { kind: 'VolumeSnapshot', name: 'snap', apiGroup: group, namespace: 'ns2' },
});

describe('CsiProvisioner, populators', () => {
  const hello = { kind: 'Hello', name: 'h', apiGroup: 'hello.k8s.io' };
  for (const field of ['dataSource', 'dataSourceRef']) {
    test(`a foreign kind in ${field} is left to its populator`, async () => {
      await using rig = await Rig.start();
      assertFailed(
        await rig.provision(makeClaim({ [field]: hello })),
        'IgnoredError',
        'ignored because data source (Hello) is not handled by the provisioner, assuming an external populator will provision it',
      );
      assertNoCreate(rig);
      assert.deepEqual(rig.events, [
        {
          about: {
            apiVersion: 'v1',
            kind: 'PersistentVolumeClaim',
            namespace: 'ns1',
            name: 'c1',
            uid,
            resourceVersion: '731',
          },
          type: 'Normal',
          reason: 'Provisioning',
          message: 'Assuming an external populator will provision the volume',
        },
      ]);
    });
  }

  test('a foreign kind in another namespace needs a grant before anything else', async () => {
    await using rig = await startRig('ns2');
    const outcome = await rig.provision(makeClaim({ dataSourceRef: { ...hello, namespace: 'ns2' } }));
    const message = "accessing ns2/h of Hello dataSource from ns1/c1 isn't allowed";
    assertFailed(outcome, 'finished', message);
    assert.deepEqual(rig.events, []);
  });
});

describe('CsiProvisioner, sources in other namespaces', () => {
  test('without the gate they are refused', async () => {
    await using rig = await startRig('ns2', [grant({ from, to })], false);
    assertFailed(
      await rig.provision(restore),
      'finished',
      'dataSourceRef namespace specified but the CrossNamespaceVolumeDataSource feature is disabled',
    );
    assertNoCreate(rig);
  });

  for (const name of [undefined, '', 'snap']) {
    test(`a grant with name "${name ?? 'absent'}" allows the restore`, async () => {
      const spec = { from, to: [{ group, kind: 'VolumeSnapshot', ...(name === undefined ? {} : { name }) }] };
      await using rig = await startRig('ns2', [grant(spec)]);
      volumeOf(await rig.provision(restore));
      assert.deepEqual(rig.createRequest['volume_content_source'], {
        type: 'snapshot',
        snapshot: { snapshot_id: 'sid' },
      });
      const snapshot = rig.api.get(`${snapshots}/ns2/volumesnapshots/snap`);
      assert.deepEqual(snapshot?.metadata.finalizers, [finalizer], 'protected and left so for the sweep');
    });
  }

  const useless: { name: string; grants: ReferenceGrant[] }[] = [
    { name: 'no grant', grants: [] },
    { name: 'a grant in another namespace', grants: [grant({ from, to }, 'ns3')] },
    { name: 'another from group', grants: [grant({ from: [{ ...from[0], group: 'x' }], to })] },
    { name: 'another from kind', grants: [grant({ from: [{ ...from[0], kind: 'Pod' }], to })] },
    { name: 'another from namespace', grants: [grant({ from: [{ ...from[0], namespace: 'x' }], to })] },
    { name: 'another to group', grants: [grant({ from, to: [{ ...to[0], group: 'x' }] })] },
    { name: 'another to kind', grants: [grant({ from, to: [{ ...to[0], kind: 'Pod' }] })] },
    { name: 'another to name', grants: [grant({ from, to: [{ ...to[0], name: 'x' }] })] },
    { name: 'empty lists', grants: [grant({ from: [], to: [] })] },
    { name: 'no spec', grants: [{ metadata: { name: 'g', namespace: 'ns2' } }] },
    {
      name: 'both ends in different grants',
      grants: [grant({ from, to: [] }, 'ns2', 'g1'), grant({ from: [], to }, 'ns2', 'g2')],
    },
  ];
  for (const { name, grants } of useless) {
    test(`${name} does not allow the restore`, async () => {
      await using rig = await startRig('ns2', grants);
      const outcome = await rig.provision(restore);
      const message = "accessing ns2/snap of VolumeSnapshot dataSource from ns1/c1 isn't allowed";
      assertFailed(outcome, 'finished', message);
      assert.equal(outcome.error?.message, message);
      assertNoCreate(rig);
    });
  }

  for (const namespace of ['ns1', '', undefined]) {
    test(`the own namespace, given as "${namespace ?? 'absent'}", needs no grant and leaves no protection`, async () => {
      await using rig = await startRig('ns1');
      const ref = { kind: 'VolumeSnapshot', name: 'snap', apiGroup: group };
      volumeOf(
        await rig.provision(
          makeClaim({ dataSourceRef: { ...ref, ...(namespace === undefined ? {} : { namespace }) } }),
        ),
      );
      assert.deepEqual(rig.api.get(`${snapshots}/ns1/volumesnapshots/snap`)?.metadata.finalizers, []);
    });
  }

  for (const apiGroup of [undefined, '']) {
    test(`a clone from another namespace, group "${apiGroup ?? 'absent'}"`, async () => {
      const spec = { from, to: [{ group: '', kind: 'PersistentVolumeClaim' }] };
      await using rig = await startRig('ns2', [grant(spec)]);
      const source: PersistentVolumeClaim = {
        metadata: { name: 'src', namespace: 'ns2', uid: 'uid-src' },
        spec: { storageClassName: 'sc', volumeName: 'pv-src', resources: { requests: { storage: '5Gi' } } },
        status: { phase: 'Bound' },
      };
      rig.claims.set(source);
      rig.api.put('/api/v1/namespaces/ns2/persistentvolumeclaims/src', source);
      rig.api.put('/api/v1/persistentvolumes/pv-src', {
        metadata: { name: 'pv-src' },
        spec: {
          csi: { driver: driverName, volumeHandle: 'vol-src' },
          claimRef: { namespace: 'ns2', name: 'src', uid: 'uid-src' },
        },
        status: { phase: 'Bound' },
      });
      const ref = { kind: 'PersistentVolumeClaim', name: 'src', namespace: 'ns2' };
      const claim = makeClaim({ dataSourceRef: { ...ref, ...(apiGroup === undefined ? {} : { apiGroup }) } });
      volumeOf(await rig.provision(claim));
      assert.deepEqual(rig.createRequest['volume_content_source'], {
        type: 'volume',
        volume: { volume_id: 'vol-src' },
      });
    });
  }

  test('nothing is copied after the grant was revoked, also by a repeat, and the repeat goes on once it is back', async () => {
    const given = grant({ from, to });
    await using rig = await startRig('ns2', [given]);
    rig.driver.next('CreateVolume', new DriverFailure(status.UNAVAILABLE, 'down'));
    assertFailed(await rig.provision(restore), 'in-background', 'down');
    rig.grants.delete('ns2/g');
    const refusal = "accessing ns2/snap of VolumeSnapshot dataSource from ns1/c1 isn't allowed";
    assertFailed(await rig.provision(restore), 'no-change', refusal);
    assert.equal(rig.driver.callsOf('CreateVolume').length, 1);
    rig.grants.set(given);
    volumeOf(await rig.provision(restore));
    assert.equal(rig.driver.callsOf('CreateVolume').length, 2);
  });

  test('an answer without content source is deleted again', async () => {
    await using rig = await startRig('ns2', [grant({ from, to })]);
    rig.driver.next('CreateVolume', { volume: { volume_id: 'vol-1' } });
    assertFailed(await rig.provision(restore), 'in-background', 'volume content source missing');
    assert.equal(rig.driver.callsOf('DeleteVolume').length, 1);
  });
});
