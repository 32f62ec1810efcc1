import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { pvFor } from '../../../src/provision/pv-for.ts';
import { makeClaim, makeClass } from './claims-and-volumes.ts';

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
