import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Health } from '../../../src/run/health.ts';

describe('Health', () => {
  test('is well without checks and while all pass', () => {
    const health = new Health();
    assert.equal(health.unhealthyReason, undefined);
    health.add(() => undefined);
    assert.equal(health.unhealthyReason, undefined);
  });

  test('reports everything that is wrong, until a check is taken back', () => {
    const health = new Health();
    health.add(() => 'the driver does not answer');
    const remove = health.add(() => 'no news of volumes');
    assert.equal(health.unhealthyReason, 'the driver does not answer; no news of volumes');
    remove();
    assert.equal(health.unhealthyReason, 'the driver does not answer');
  });
});
