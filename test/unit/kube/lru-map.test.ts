import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LruMap } from '../../../src/kube/lru-map.ts';

describe('LruMap', () => {
  test('evicts what was least recently read or written', () => {
    const map = new LruMap<number>(2);
    map.set('a', 1);
    map.set('b', 2);
    map.get('a');
    map.set('c', 3);
    assert.deepEqual([map.get('a'), map.get('b'), map.get('c')], [1, undefined, 3]);
  });

  test('a key written again takes no second place', () => {
    const map = new LruMap<number>(2);
    for (const value of [1, 2, 3]) map.set('a', value);
    map.set('b', 4);
    assert.deepEqual([map.get('a'), map.get('b')], [3, 4]);
  });
});
