import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { claimReference } from '../../../../src/provision/claim-fields.ts';
import { completeVolume as complete, volumeTemplate } from '../../../../src/provision/claim/complete-volume.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../../../src/provision/objects.ts';
import { F, makeClaim, makeClass, makeVolume } from '../claims-and-volumes.ts';

const claim = makeClaim();
const options = { claim, storageClass: makeClass(), addFinalizer: true };

function completeVolume(
  volume: PersistentVolume,
  from: { claim: PersistentVolumeClaim; storageClass: StorageClass; addFinalizer: boolean },
): PersistentVolume {
  return complete(volume, volumeTemplate({ ...from, volumeName: volume.metadata.name }), from);
}

describe('completeVolume', () => {
  test('says so when the provisioner returned nothing', () => {
    const template = volumeTemplate({ ...options, volumeName: 'pvc-1' });
    assert.throws(
      () => complete(undefined, template, options),
      /^TypeError: the provisioner returned no PersistentVolume$/,
    );
  });

  test('the finalizer comes last', () => {
    const volume = completeVolume(makeVolume({ finalizers: ['x/y'] }), options);
    assert.deepEqual(volume.metadata.finalizers, ['x/y', F]);
  });

  test('without the option it does not come', () => {
    const volume = completeVolume(makeVolume(), { ...options, addFinalizer: false });
    assert.equal(volume.metadata.finalizers, undefined);
  });

  test('a finalizer that is there stays where it is', () => {
    const volume = completeVolume(makeVolume({ finalizers: [F, 'x/y'] }), options);
    assert.deepEqual(volume.metadata.finalizers, [F, 'x/y']);
  });

  test('class, claim and author are overwritten, everything else stays', () => {
    const annotations = { 'pv.kubernetes.io/provisioned-by': 'wrong', mine: 'kept' };
    const made = makeVolume(
      { name: 'other-name', annotations, labels: { a: 'b' } },
      { storageClassName: 'wrong', claimRef: { name: 'wrong' }, mountOptions: ['ro'] },
    );
    const before = structuredClone(made);
    const storageClass = makeClass('c1', { provisioner: 'in-tree', mountOptions: ['rw'], reclaimPolicy: 'Retain' });
    const { metadata, spec } = completeVolume(made, { ...options, storageClass });
    assert.deepEqual(metadata, {
      ...before.metadata,
      annotations: { 'pv.kubernetes.io/provisioned-by': 'in-tree', mine: 'kept' },
      finalizers: [F],
    });
    assert.deepEqual(spec, {
      ...before.spec,
      volumeMode: 'Filesystem',
      storageClassName: 'c1',
      claimRef: claimReference(claim),
    });
    assert.deepEqual(made, before, 'the returned object is the provisioner’s');
  });

  test('a volume without any metadata but a name becomes one the API takes', () => {
    const { spec } = makeVolume();
    const volume = completeVolume({ metadata: { name: 'v' }, spec }, options);
    assert.equal(volume.apiVersion, 'v1');
    assert.equal(volume.kind, 'PersistentVolume');
    assert.deepEqual(volume.metadata, {
      name: 'v',
      annotations: { 'pv.kubernetes.io/provisioned-by': 'drv' },
      finalizers: [F],
    });
  });

  const storageClass = makeClass('c1', { mountOptions: ['hard'], reclaimPolicy: 'Delete' });

  test('what the provisioner leaves out comes from the class and the claim', () => {
    const { spec } = completeVolume(
      { metadata: { name: 'v' }, spec: { nfs: { server: 's', path: '/p' } } },
      { ...options, storageClass, claim: makeClaim({}, { volumeMode: 'Block' }) },
    );
    assert.deepEqual(spec, {
      nfs: { server: 's', path: '/p' },
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      volumeMode: 'Block',
      mountOptions: ['hard'],
      persistentVolumeReclaimPolicy: 'Delete',
      claimRef: claimReference(claim),
      storageClassName: 'c1',
    });
    assert.notEqual(spec.mountOptions, storageClass.mountOptions);
    assert.notEqual(spec.accessModes, claim.spec.accessModes);
  });

  test('what the provisioner says counts, also that there are no mount options', () => {
    const said = {
      nfs: { server: 's', path: '/p' },
      capacity: { storage: '2Gi' },
      accessModes: ['ReadWriteMany' as const],
      volumeMode: 'Filesystem' as const,
      mountOptions: [],
      persistentVolumeReclaimPolicy: 'Retain' as const,
    };
    const { spec } = completeVolume({ metadata: { name: 'v' }, spec: said }, { ...options, storageClass });
    assert.deepEqual(spec, { ...said, claimRef: claimReference(claim), storageClassName: 'c1' });
  });

  test('what nobody says is left to the API server', () => {
    const { spec } = completeVolume(
      { metadata: { name: 'v' }, spec: {} },
      { ...options, claim: { metadata: claim.metadata, spec: { storageClassName: 'c1' } } },
    );
    assert.deepEqual(spec, { claimRef: claimReference(claim), storageClassName: 'c1' });
  });
});
