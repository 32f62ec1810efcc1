import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SharedValues } from '../../../src/kube/shared-values.ts';
import { sameVolume, volumeTransform } from '../../../src/provision/cached-volume.ts';
import type { PersistentVolume } from '../../../src/provision/objects.ts';
import { ownsVolume } from '../../../src/provision/owns-volume.ts';
import { shouldDelete } from '../../../src/provision/should-delete.ts';
import { finalizerUpkeep } from '../../../src/provision/volume-finalizer.ts';
import { F, isKnownProvisioner, makeVolume } from './claims-and-volumes.ts';

const transform = volumeTransform({ shared: new SharedValues(), isKnownProvisioner });
const by = 'pv.kubernetes.io/provisioned-by';
const foreign = { annotations: { [by]: 'other' } };

function cached(...sketch: Parameters<typeof makeVolume>): PersistentVolume {
  return transform(makeVolume(...sketch));
}

describe('the cached form of a volume', () => {
  test('of a foreign volume only the name and its version are kept', () => {
    const form = JSON.parse(JSON.stringify(cached(foreign))) as unknown;
    assert.deepEqual(form, { metadata: { name: 'v', uid: 'uv', resourceVersion: '9' }, spec: {} });
  });

  test('a volume that others made and that was migrated to us is kept', () => {
    const annotations = { [by]: 'other', 'pv.kubernetes.io/migrated-to': 'drv' };
    assert.equal(cached({ annotations }, { phase: 'Released' }).spec.csi?.driver, 'drv');
  });

  test('of a bound volume of ours stays what ownership and the finalizer need', () => {
    const form = cached({ finalizers: [F], labels: { a: 'b' }, annotations: { [by]: 'drv', other: 'x' } });
    assert.deepEqual(JSON.parse(JSON.stringify(form)), {
      metadata: { name: 'v', uid: 'uv', resourceVersion: '9', finalizers: [F], annotations: { [by]: 'drv' } },
      spec: { persistentVolumeReclaimPolicy: 'Delete', storageClassName: 'c1', csi: { driver: 'drv' } },
      status: { phase: 'Bound' },
    });
  });

  test('a released volume of ours is kept whole but for its managed fields', () => {
    const volume = makeVolume({ labels: { a: 'b' } }, { phase: 'Released' });
    const withFields = structuredClone({ ...volume, metadata: { ...volume.metadata, managedFields: [{}] } });
    assert.deepEqual(transform(withFields), volume);
  });

  test('every decision about a volume is the same for its cached form', () => {
    for (const annotations of [
      {},
      { [by]: 'drv' },
      { [by]: 'other' },
      { [by]: 'x', 'pv.kubernetes.io/migrated-to': 'drv' },
    ]) {
      for (const finalizers of [[], [F], ['x/y'], ['x/y', F]]) {
        for (const phase of ['Pending', 'Available', 'Bound', 'Released', 'Failed']) {
          for (const persistentVolumeReclaimPolicy of ['Delete', 'Retain'] as const) {
            for (const deletion of [{}, { deletionTimestamp: 't' }]) {
              const sketch = [
                { annotations, finalizers, ...deletion },
                { phase, persistentVolumeReclaimPolicy },
              ] as const;
              const [whole, form] = [makeVolume(...sketch), cached(...sketch)];
              const owned = ownsVolume(whole, isKnownProvisioner);
              assert.equal(ownsVolume(form, isKnownProvisioner), owned);
              if (!owned) continue;
              for (const on of [true, false]) {
                assert.equal(shouldDelete(form, on), shouldDelete(whole, on));
                assert.deepEqual(finalizerUpkeep(form, on), finalizerUpkeep(whole, on));
              }
            }
          }
        }
      }
    }
  });
});

describe('whether a change of a volume wakes anybody', () => {
  for (const { name, old, now, same } of [
    {
      name: 'a foreign volume: whatever it is',
      old: cached(foreign),
      now: cached({ ...foreign, resourceVersion: '10', labels: { a: 'b' } }, { phase: 'Released' }),
      same: true,
    },
    { name: 'a foreign volume that becomes ours', old: cached(foreign), now: cached(), same: false },
    { name: 'a volume of ours that becomes foreign', old: cached(), now: cached(foreign), same: false },
    {
      name: 'a bound volume: labels and capacity',
      old: cached(),
      now: cached({ labels: { a: 'b' }, resourceVersion: '10' }, { capacity: { storage: '2Gi' } }),
      same: true,
    },
    { name: 'a bound volume: a finalizer', old: cached(), now: cached({ finalizers: ['x/y'] }), same: false },
    {
      name: 'a bound volume: its policy',
      old: cached(),
      now: cached({}, { persistentVolumeReclaimPolicy: 'Retain' }),
      same: false,
    },
    { name: 'a bound volume: its deletion', old: cached(), now: cached({ deletionTimestamp: 't' }), same: false },
    {
      name: 'a bound volume: who it was migrated to',
      old: cached(),
      now: cached({ annotations: { [by]: 'drv', 'pv.kubernetes.io/migrated-to': 'drv' } }),
      same: false,
    },
    { name: 'a volume that is released', old: cached(), now: cached({}, { phase: 'Released' }), same: false },
    {
      name: 'a released volume: anything',
      old: cached({}, { phase: 'Released' }),
      now: cached({ labels: { a: 'b' } }, { phase: 'Released' }),
      same: false,
    },
  ]) {
    test(name, () => {
      assert.equal(sameVolume(old, now), same);
    });
  }
});
