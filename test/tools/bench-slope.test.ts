import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { perItem } from '../../bench/statistics.ts';

describe('what one claim costs in the benchmarks', () => {
  test('is the further CPU of a larger load by its further claims; the average has the fixed part, too', () => {
    const fixedMs = 500;
    const { average, slope } = perItem(
      { count: 50, cpuMs: fixedMs + 50 * 3 },
      { count: 200, cpuMs: fixedMs + 200 * 3 },
    );
    assert.equal(slope, 3);
    assert.equal(average, 5.5);
  });

  test('does not depend on what is needed for no claim', () => {
    const whole = fc.integer({ min: 0, max: 1_000_000 });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1000 }),
        fc.integer({ min: 1, max: 1000 }),
        whole,
        whole,
        (few, more, per, fixed) => {
          const load = (count: number): { count: number; cpuMs: number } => ({ count, cpuMs: fixed + count * per });
          assert.equal(perItem(load(few), load(few + more)).slope, per);
        },
      ),
    );
  });

  for (const [smaller, larger] of [
    [200, 200],
    [200, 50],
    [0, 50],
    [NaN, 50],
  ] as const) {
    test(`cannot be said from ${smaller} and ${larger} claims`, () => {
      assert.throws(
        () => perItem({ count: smaller, cpuMs: 1 }, { count: larger, cpuMs: 2 }),
        new RangeError(`no slope from ${smaller} to ${larger} items`),
      );
    });
  }
});
