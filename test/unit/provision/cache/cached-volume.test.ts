import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SharedValues } from '../../../../src/kube/cache/store.ts';
import {
  sameVolume,
  storageHash,
  storageHashes,
  volumeTransform,
} from '../../../../src/provision/cache/cached-volume.ts';
import type { PersistentVolume } from '../../../../src/provision/objects.ts';
import { finalizerUpkeep, namesProvisioner, shouldDelete } from '../../../../src/provision/volume-fields.ts';
import { F, isKnownProvisioner, makeVolume } from '../claims-and-volumes.ts';

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

  test('of a bound volume whose source is not ours only the name and its version are kept, of a released one all', () => {
    const ownsSource = ({ spec }: PersistentVolume): boolean => spec.csi?.driver === 'drv';
    const transform = volumeTransform({ shared: new SharedValues(), isKnownProvisioner, ownsSource });
    const other = { csi: { driver: 'new', volumeHandle: 'h' } };
    const form = transform(makeVolume({ finalizers: [F] }, other));
    assert.deepEqual(JSON.parse(JSON.stringify(form)), {
      metadata: { name: 'v', uid: 'uv', resourceVersion: '9' },
      spec: {},
    });
    const released = makeVolume({}, { ...other, phase: 'Released' });
    assert.deepEqual(transform(structuredClone(released)), released);
    assert.equal(transform(makeVolume()).spec.csi?.driver, 'drv');
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
              const owned = namesProvisioner(whole, isKnownProvisioner);
              assert.equal(namesProvisioner(form, isKnownProvisioner), owned);
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

describe('the storage of cached volumes', () => {
  const storageKeys = ({ spec }: PersistentVolume): string[] =>
    spec.csi?.driver === 'drv' ? spec.csi.volumeHandle.split('+') : [];
  const indexed = volumeTransform({ shared: new SharedValues(), isKnownProvisioner, storageKeys });
  const csi = (volumeHandle: string, driver = 'drv'): { csi: { driver: string; volumeHandle: string } } => ({
    csi: { driver, volumeHandle },
  });

  for (const { name, metadata, phase } of [
    { name: 'of a bound volume of ours', metadata: {}, phase: 'Bound' },
    { name: 'of a released one', metadata: {}, phase: 'Released' },
    { name: 'of a volume that others made', metadata: foreign, phase: 'Bound' },
    { name: 'of one that others made and that is released', metadata: foreign, phase: 'Released' },
  ]) {
    test(`${name} is kept as the hash of its key`, () => {
      const spec = { ...csi('h-1'), phase };
      const form = indexed(makeVolume(metadata, spec));
      assert.deepEqual(storageHashes(form), [storageHash('h-1')]);
      assert.deepEqual(JSON.parse(JSON.stringify(form)), JSON.parse(JSON.stringify(cached(metadata, spec))));
      assert.deepEqual(storageHashes({ ...form }), [storageHash('h-1')]);
    });
  }

  test('with several keys is kept as several hashes', () => {
    assert.deepEqual(storageHashes(indexed(makeVolume({}, csi('a+b')))), [storageHash('a'), storageHash('b')]);
  });

  test('that is not ours is not kept, nor is any without storage keys', () => {
    assert.deepEqual(storageHashes(indexed(makeVolume(foreign, csi('h-1', 'another')))), []);
    assert.deepEqual(storageHashes(cached({}, csi('h-1'))), []);
  });

  for (const { name, old, now, same } of [
    { name: 'the same storage of a foreign volume', old: 'a', now: 'a', same: true },
    { name: 'other storage of a foreign volume', old: 'a', now: 'b', same: false },
    { name: 'several keys, the same', old: 'a+b', now: 'a+b', same: true },
    { name: 'several keys, one of them another', old: 'a+b', now: 'a+c', same: false },
  ]) {
    test(`${name} ${same ? 'is no change' : 'is a change'}`, () => {
      const [one, other] = [old, now].map((handle) => indexed(makeVolume(foreign, csi(handle))));
      assert.equal(sameVolume(one!, other!), same);
    });
  }
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

describe('the hash of a storage key', () => {
  test('is a signed integer of 32 bits', () => {
    for (const key of ['', 'h', 'vol-0123456789abcdef', 'h/é/日本', 'x'.repeat(10_000)]) {
      assert.equal(storageHash(key), storageHash(key) | 0, key);
    }
  });

  test('is the same for the same key, and seldom for two', () => {
    const keys = Array.from({ length: 20_000 }, (_, number) => `vol-${number.toString(16).padStart(17, '0')}`);
    assert.equal(storageHash(keys[7]!), storageHash(`vol-${'7'.padStart(17, '0')}`));
    assert.ok(new Set(keys.map(storageHash)).size > 19_990);
  });
});
