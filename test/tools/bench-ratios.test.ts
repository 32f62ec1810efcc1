import assert from 'node:assert/strict';
import { test } from 'node:test';
import { median } from '../../bench/statistics.ts';
import { verdict } from '../../bench/ratio-table.ts';

test('the median of an even number of turns is the mean of the two in the middle', () => {
  assert.deepEqual([median([3, 1, 2]), median([4, 1, 2, 3])], [2, 2.5]);
});

test('a goal is met or missed where all turns agree', () => {
  assert.equal(verdict([0.9, 0.91, 0.92], 1, false), 'met');
  assert.equal(verdict([0.9, 0.91, 0.92], 1, true), 'not met');
  assert.equal(verdict([1.1, 1.12, 1.15], 1, true), 'met');
});

test('no goal is met while the turns differ by more than the distance from it', () => {
  assert.equal(verdict([0.7, 0.95, 1], 1, false), 'unclear');
  assert.equal(verdict([1.4, 1.25, 1.05], 1.2, false), 'unclear');
  assert.equal(verdict([Number.NaN, 1], 1, false), 'unclear');
});

test('a goal that every turn misses is not met, however the turns differ', () => {
  assert.equal(verdict([1.01, 1.2, 1.9], 1, false), 'not met');
  assert.equal(verdict([0.3, 0.99, 0.6], 1, true), 'not met');
});
