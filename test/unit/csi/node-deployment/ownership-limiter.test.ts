import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { OwnershipLimiter } from '../../../../src/csi/node-deployment/ownership-contest.ts';

describe('OwnershipLimiter', () => {
  const cases = [
    { name: 'without luck each wait is the upper end', random: 0, waits: [20, 40, 60, 60] },
    { name: 'half of the base is taken off, whatever the wait', random: 0.5, waits: [10, 30, 50, 50] },
    { name: 'a wait is never below zero', random: 0.9, maxMs: 5, waits: [0, 0] },
    { name: 'without a base nobody waits', random: 0.5, baseMs: 0, waits: [0, 0] },
  ];
  for (const { name, random, baseMs = 20, maxMs = 60, waits } of cases) {
    test(name, () => {
      const limiter = new OwnershipLimiter({ baseMs, maxMs, random: () => random });
      assert.deepEqual(
        waits.map(() => limiter.when('a')),
        waits,
      );
    });
  }

  test('counts each key by itself, and from the start once it is forgotten', () => {
    const limiter = new OwnershipLimiter({ baseMs: 20, maxMs: 60, random: () => 0 });
    limiter.when('a');
    assert.deepEqual([limiter.failures('a'), limiter.when('b'), limiter.when('a')], [1, 20, 40]);
    limiter.forget('a');
    assert.deepEqual([limiter.failures('a'), limiter.when('a')], [0, 20]);
  });
});
