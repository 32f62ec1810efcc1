import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { imbalance } from '../../../src/testing/imbalance.ts';

const volume = (name: string, storage: string, claim = `ns/${name}`) => ({ name, storage, claim });

describe('imbalance', () => {
  test('finds nothing wrong when each volume has its storage', () => {
    const volumes = [volume('pv-1', 'a'), volume('pv-2', 'b')];
    assert.deepEqual(imbalance({ storage: ['a', 'b'], volumes }), []);
    assert.deepEqual(imbalance({ storage: [], volumes: [] }), []);
  });

  test('names storage that no volume has, and the process that made it', () => {
    assert.deepEqual(imbalance({ storage: ['a', 'b'], volumes: [volume('pv-1', 'a')], seen: new Map([['b', 2]]) }), [
      'leak: the storage "b", which process 2 has made, is in no PersistentVolume',
    ]);
  });

  test('says that storage was made again, when what was made first is left', () => {
    const seen = new Map([
      ['a', 1],
      ['b', 2],
    ]);
    assert.deepEqual(imbalance({ storage: ['a', 'b'], volumes: [volume('pv-1', 'b')], seen }), [
      'leak: the storage "a", which process 1 has made, is in no PersistentVolume',
      'double: storage was made more than once: "a" by process 1, "b" by process 2',
    ]);
  });

  test('names a volume whose storage is gone', () => {
    assert.deepEqual(imbalance({ storage: [], volumes: [volume('pv-1', 'a')] }), [
      'loss: the PersistentVolume pv-1 of claim ns/pv-1 has the storage "a", which does not exist',
    ]);
  });

  test('names storage that volumes of two claims have', () => {
    assert.deepEqual(imbalance({ storage: ['a'], volumes: [volume('pv-1', 'a'), volume('pv-2', 'a')] }), [
      'double: the PersistentVolumes pv-1 and pv-2 have the same storage "a"',
    ]);
  });
});
