import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { PartitionedMap } from '../../../../src/kube/cache/partitioned-map.ts';

const sorted = <T>(values: Iterable<T>): string[] => Array.from(values, (value) => JSON.stringify(value)).toSorted();

/** The number of keys in each partition. Keys were added in ascending order, and a partition keeps that order, so each descent begins the next one. */
function ascendingRuns(numbers: Iterable<number>): number[] {
  const runs: number[] = [];
  let before = Infinity;
  for (const number of numbers) {
    if (number < before) runs.push(0);
    runs.push((runs.pop() ?? 0) + 1);
    before = number;
  }
  return runs;
}

describe('PartitionedMap', () => {
  test('holds the same entries as a Map after any series of sets and deletes', () => {
    const key = fc.oneof(fc.string({ maxLength: 3 }), fc.integer({ min: -5, max: 5 }), fc.integer());
    const step = fc.record({ key, value: fc.option(fc.integer(), { nil: undefined }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const [partitioned, map] = [new PartitionedMap<string | number, number>(), new Map<string | number, number>()];
        for (const { key, value } of steps) {
          if (value === undefined) assert.equal(partitioned.delete(key), map.delete(key));
          else {
            partitioned.set(key, value);
            map.set(key, value);
          }
          assert.equal(partitioned.get(key), map.get(key));
        }
        assert.equal(partitioned.size, map.size);
        assert.deepEqual(sorted(partitioned), sorted(map));
        assert.deepEqual(sorted(partitioned.keys()), sorted(map.keys()));
        assert.deepEqual(sorted(partitioned.values()), sorted(map.values()));
        assert.deepEqual(sorted(partitioned.toArray()), sorted(map.values()));
      }),
    );
  });

  test('visits each key that is present throughout exactly once, while others are added and deleted', () => {
    const map = new PartitionedMap<number, number>();
    for (let key = 0; key < 1000; key++) map.set(key, key);
    const visited: number[] = [];
    for (const key of map.keys()) {
      visited.push(key);
      if (key >= 1000) continue;
      if (key % 2 === 1) map.delete(key);
      map.set(1000 + key, key);
    }
    const evens = visited.filter((key) => key < 1000 && key % 2 === 0);
    assert.deepEqual(
      evens.toSorted((a, b) => a - b),
      Array.from({ length: 500 }, (_, index) => 2 * index),
    );
  });

  for (const [what, keyOf] of Object.entries({
    'names with a random end': (index: number) => `pvc-${(index * 2654435761) % 4294967291}`,
    'names with a number in the middle': (index: number) => `team-${index}/data`,
    'small numbers': (index: number) => index,
    'multiples of 2^16': (index: number) => index * 65536,
    'numbers of 32 bits': (index: number) => Math.imul(index, 0x9e3779b1),
  })) {
    test(`spreads keys evenly: ${what}`, () => {
      const map = new PartitionedMap<string | number, number>();
      for (let index = 0; index < 32_000; index++) map.set(keyOf(index), index);
      const parts = ascendingRuns(map.values());
      assert.equal(parts.length, 16);
      assert.ok(Math.max(...parts) < 3000, parts.join());
    });
  }
});
