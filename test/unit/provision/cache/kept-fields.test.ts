import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isReduced } from '../../../../src/kube/kube-object.ts';
import { SharedValues } from '../../../../src/kube/cache/store.ts';
import { claimTransform, sameButVersion } from '../../../../src/provision/cache/cached-claim.ts';
import { volumeTransform } from '../../../../src/provision/cache/cached-volume.ts';
import { type KeptFields, keptParts } from '../../../../src/provision/cache/kept-fields.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../../../src/provision/objects.ts';
import { isKnownProvisioner, makeClaim, makeVolume, type Metadata } from '../claims-and-volumes.ts';

const by = 'pv.kubernetes.io/provisioned-by';
const nfs = { server: 's', path: '/p' };

function cachedVolume(fields: KeptFields<PersistentVolume>, volume: PersistentVolume): PersistentVolume {
  return volumeTransform({ shared: new SharedValues(), isKnownProvisioner, fields })(volume);
}

function cachedClaim(fields: KeptFields<PersistentVolumeClaim>, metadata: Metadata): PersistentVolumeClaim {
  return claimTransform(new SharedValues(), fields)(makeClaim(metadata, { volumeName: 'v' }));
}

describe('the fields that a cache keeps besides', () => {
  test('are those that were named, where the object has them', () => {
    const volume = makeVolume({ annotations: { a: '1', b: '2' }, labels: { c: '3' } }, { nfs });
    for (const { fields, kept } of [
      { fields: {}, kept: {} },
      { fields: { annotations: ['b', 'x'] }, kept: { annotations: { b: '2' } } },
      { fields: { annotations: 'all', labels: 'all' }, kept: { annotations: { a: '1', b: '2' }, labels: { c: '3' } } },
      { fields: { labels: ['toString'], annotations: [], spec: ['iscsi'] }, kept: {} },
      { fields: { spec: ['nfs', 'iscsi'] }, kept: { spec: { nfs } } },
    ] satisfies { fields: KeptFields<PersistentVolume>; kept: object }[]) {
      assert.deepEqual(keptParts(volume, fields), kept);
    }
    assert.deepEqual(keptParts({ ...volume, metadata: { name: 'v' } }, { annotations: 'all', labels: ['c'] }), {});
  });

  test('come to a bound volume on top of what the controller reads', () => {
    const volume = makeVolume({ annotations: { [by]: 'drv', a: '1' }, labels: { c: '3' } }, { nfs });
    const form = cachedVolume({ spec: ['nfs', 'csi'], annotations: ['a'], labels: ['c'] }, volume);
    assert.deepEqual(form.metadata.annotations, { [by]: 'drv', a: '1' });
    assert.deepEqual(form.metadata.labels, { c: '3' });
    assert.deepEqual(form.spec, {
      persistentVolumeReclaimPolicy: 'Delete',
      storageClassName: 'c1',
      csi: volume.spec.csi,
      nfs,
    });
    assert.ok(isReduced(form), 'the rest is missing');
  });

  test('come to a claim that has a volume', () => {
    const form = cachedClaim({ spec: ['accessModes'], annotations: ['a'] }, { annotations: { a: '1', b: '2' } });
    assert.deepEqual(form.metadata.annotations, { a: '1' });
    assert.deepEqual([form.spec.accessModes, form.spec.volumeName], [['ReadWriteOnce'], 'v']);
    assert.ok(isReduced(form), 'the rest is missing');
  });

  test('of a foreign volume nothing more than the name is kept', () => {
    const form = cachedVolume({ spec: ['nfs'], annotations: 'all' }, makeVolume({ annotations: { [by]: 'other' } }));
    assert.deepEqual([form.spec, form.metadata.annotations], [{}, undefined]);
  });

  test('wake the handlers when they change, and no other change does', () => {
    const fields = { spec: ['nfs'], annotations: ['a'] } as const;
    const volume = (path: string, annotations: Record<string, string>, resourceVersion: string): PersistentVolume =>
      cachedVolume(fields, makeVolume({ annotations, resourceVersion }, { nfs: { server: 's', path } }));
    const old = volume('/p', { [by]: 'drv', a: '1', b: '2' }, '1');
    assert.equal(sameButVersion(old, volume('/p', { [by]: 'drv', a: '1', b: 'x' }, '2')), true);
    assert.equal(sameButVersion(old, volume('/p', { [by]: 'drv', a: 'x', b: '2' }, '2')), false);
    assert.equal(sameButVersion(old, volume('/q', { [by]: 'drv', a: '1', b: '2' }, '2')), false);
  });
});
