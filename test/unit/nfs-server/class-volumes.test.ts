import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ClassVolumes } from '../../../provisioners/nfs-server/class-volumes.ts';
import type { PersistentVolume } from '../../../src/index.ts';

const volume = (name: string, storageClassName: string): PersistentVolume => ({
  metadata: { name },
  spec: { storageClassName },
});

describe('the volumes of a class', () => {
  test('are those of earlier processes that have their data here, and those of this one', () => {
    const exported = new Set(['pvc-a', 'pvc-b', 'pvc-c']);
    const saved = [
      volume('pvc-a', 'nfs'),
      volume('pvc-b', 'other'),
      volume('pvc-elsewhere', 'nfs'),
      volume('local-1', ''),
    ];
    const volumes = new ClassVolumes({ volumes: { list: () => saved }, isExported: (name) => exported.has(name) });
    volumes.add('pvc-c', 'nfs');
    assert.equal(volumes.count('nfs'), 2);
    assert.equal(volumes.count('other'), 1);
    assert.equal(volumes.count('none'), 0);
  });

  test('do not count once they are deleted, also while the cache still shows them', () => {
    const exported = new Set(['pvc-a', 'pvc-b']);
    const saved = [volume('pvc-a', 'nfs'), volume('pvc-b', 'nfs')];
    const volumes = new ClassVolumes({ volumes: { list: () => saved }, isExported: (name) => exported.has(name) });
    exported.delete('pvc-a'); // before they were ever counted
    volumes.remove('pvc-a');
    assert.equal(volumes.count('nfs'), 1);
    exported.delete('pvc-b');
    volumes.remove('pvc-b');
    volumes.add('pvc-c', 'nfs');
    assert.equal(volumes.count('nfs'), 1);
  });

  test('of one that was made here and is saved meanwhile count once', () => {
    const saved: PersistentVolume[] = [];
    const volumes = new ClassVolumes({ volumes: { list: () => saved }, isExported: () => true });
    volumes.add('pvc-a', 'nfs');
    saved.push(volume('pvc-a', 'nfs'));
    assert.equal(volumes.count('nfs'), 1);
    assert.equal(volumes.count('nfs'), 1);
  });
});
