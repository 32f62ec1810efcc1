import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { claimReference } from '../../../src/provision/claim-fields.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../../src/provision/objects.ts';
import { IgnoredError } from '../../../src/provision/provisioner.ts';
import {
  completeVolume as complete,
  pvFor,
  requireIdentity,
  volumeTemplate,
} from '../../../src/provision/volume-template.ts';
import { F, makeClaim, makeClass, makeVolume } from './claims-and-volumes.ts';

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

const volumeName = 'pvc-1';
const source = { nfs: { server: 'srv', path: '/exp/a' } };

describe('pvFor', () => {
  test('takes size, modes, mount options and reclaim policy from claim and class', () => {
    const claim = makeClaim();
    claim.spec = { ...claim.spec, accessModes: ['ReadWriteMany'], resources: { requests: { storage: '1500m' } } };
    const storageClass = { ...makeClass(), reclaimPolicy: 'Retain' as const, mountOptions: ['vers=4.1', 'nolock'] };
    const volume = pvFor({ claim, storageClass, volumeName, source, annotations: { a: 'b' }, labels: { c: 'd' } });
    assert.deepEqual(volume.metadata, { name: volumeName, annotations: { a: 'b' }, labels: { c: 'd' } });
    assert.deepEqual(volume.spec.nfs, source.nfs);
    assert.deepEqual(volume.spec.capacity, { storage: '1500m' }, 'the quantity as it was written');
    assert.deepEqual(volume.spec.accessModes, ['ReadWriteMany']);
    assert.deepEqual(volume.spec.mountOptions, ['vers=4.1', 'nolock']);
    assert.equal(volume.spec.persistentVolumeReclaimPolicy, 'Retain');
  });

  test('a class without reclaim policy deletes, and what is absent stays absent', () => {
    const { reclaimPolicy: _, mountOptions: _none, ...storageClass } = makeClass();
    const volume = pvFor({ claim: makeClaim(), storageClass, volumeName, source });
    assert.equal(volume.spec.persistentVolumeReclaimPolicy, 'Delete');
    assert.ok(!('mountOptions' in volume.spec));
    assert.deepEqual(Object.keys(volume.metadata), ['name']);
  });

  test('shares nothing with claim, class and source', () => {
    const claim = makeClaim();
    claim.spec.accessModes = ['ReadWriteOnce'];
    const storageClass = { ...makeClass(), mountOptions: ['hard'] };
    const before = structuredClone({ claim, storageClass, source });
    const { spec } = pvFor({ claim, storageClass, volumeName, source });
    spec.accessModes?.push('ReadOnlyMany');
    spec.mountOptions?.push('soft');
    if (spec.nfs) spec.nfs.path = '/elsewhere';
    assert.deepEqual({ claim, storageClass, source }, before);
  });
});

const key = 'example.com/made-by';

describe('requireIdentity', () => {
  test('passes over volumes of this instance', () => {
    requireIdentity(makeVolume({ annotations: { [key]: 'node-1' } }), key, 'node-1');
  });

  test('leaves those of another instance to it', () => {
    assert.throws(() => requireIdentity(makeVolume({ annotations: { [key]: 'node-2' } }), key, 'node-1'), {
      name: IgnoredError.name,
      reason: 'identity annotation on PV does not match ours',
    });
  });

  test('fails where it is not known whose the volume is', () => {
    assert.throws(() => requireIdentity(makeVolume(), key, 'node-1'), {
      name: 'Error',
      message: 'identity annotation not found on PV',
    });
  });
});
