import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { PartedMap } from '../../../../src/kube/cache/parted-map.ts';

const sorted = <T>(values: Iterable<T>): string[] => Array.from(values, (value) => JSON.stringify(value)).toSorted();

/** How many keys are in the largest part, found by the order of the keys: that of a part is the order of insertion. */
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

describe('PartedMap', () => {
  test('has what a Map has, whatever is set and deleted', () => {
    const key = fc.oneof(fc.string({ maxLength: 3 }), fc.integer({ min: -5, max: 5 }), fc.integer());
    const step = fc.record({ key, value: fc.option(fc.integer(), { nil: undefined }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const [parted, map] = [new PartedMap<string | number, number>(), new Map<string | number, number>()];
        for (const { key, value } of steps) {
          if (value === undefined) assert.equal(parted.delete(key), map.delete(key));
          else {
            parted.set(key, value);
            map.set(key, value);
          }
          assert.equal(parted.get(key), map.get(key));
        }
        assert.equal(parted.size, map.size);
        assert.deepEqual(sorted(parted), sorted(map));
        assert.deepEqual(sorted(parted.keys()), sorted(map.keys()));
        assert.deepEqual(sorted(parted.values()), sorted(map.values()));
        assert.deepEqual(sorted(parted.toArray()), sorted(map.values()));
      }),
    );
  });

  test('visits each key once that is there all the time, while others come and go', () => {
    const map = new PartedMap<number, number>();
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
    test(`has about as many keys in each part: ${what}`, () => {
      const map = new PartedMap<string | number, number>();
      for (let index = 0; index < 32_000; index++) map.set(keyOf(index), index);
      const parts = ascendingRuns(map.values());
      assert.equal(parts.length, 16);
      assert.ok(Math.max(...parts) < 3000, parts.join());
    });
  }
});
