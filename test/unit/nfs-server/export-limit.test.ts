import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ExportLimit } from '../../../provisioners/nfs-server/export-limit.ts';

function limitOf(max: number | undefined, count: () => number): { limit: ExportLimit; woken: string[] } {
  const woken: string[] = [];
  return { limit: new ExportLimit({ max, count, wake: (uid) => woken.push(uid) }), woken };
}

describe('the limit of exports', () => {
  test('admits everybody where there is none', () => {
    assert.equal(limitOf(undefined, () => 1e6).limit.admits('a'), true);
  });

  test('wakes the claims that it refused, once there is room', () => {
    let count = 1;
    const { limit, woken } = limitOf(1, () => count);
    assert.equal(limit.admits('a'), false);
    assert.equal(limit.admits('b'), false);
    limit.forget('b');
    count = 0;
    limit.freed();
    assert.deepEqual(woken, ['a'], 'not the one that is gone');
    limit.freed();
    assert.deepEqual(woken, ['a'], 'once');
  });

  test('counts volumes in progress, so that it is never exceeded', () => {
    const { limit } = limitOf(2, () => 0);
    const slots = ['a', 'b', 'c'].map((uid) => limit.reserve(uid, 'nfs').slot);
    assert.deepEqual(
      slots.map((slot) => slot !== undefined),
      [true, true, false],
    );
  });

  test('wakes a claim when one before it came to nothing', () => {
    const { limit, woken } = limitOf(1, () => 0);
    const { slot } = limit.reserve('a', 'nfs');
    assert.equal(limit.admits('b'), false);
    slot![Symbol.dispose]();
    assert.deepEqual(woken, ['b']);
  });

  test('of a class stands beside that of the provisioner', () => {
    const { limit, woken } = limitOf(undefined, () => 5);
    const small = { max: 1, count: 0 };
    const { slot } = limit.reserve('a', 'small', small);
    assert.deepEqual(limit.reserve('b', 'small', small), { slot: undefined, limit: { max: 1, className: 'small' } });
    assert.ok(limit.reserve('c', 'large', { max: 9, count: 5 }).slot);
    slot![Symbol.dispose]();
    assert.deepEqual(woken, ['b']);
  });
});
