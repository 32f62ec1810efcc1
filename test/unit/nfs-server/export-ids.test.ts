import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { IdPool } from '../../../provisioners/nfs-server/export-ids.ts';

describe('the ids of exports', () => {
  test('begin at 1, and leave out those that are reserved', () => {
    const ids = new IdPool({ max: 200, isReserved: (id) => id === 152 });
    const given = Array.from({ length: 152 }, () => ids.take());
    assert.equal(given[0], 1);
    assert.ok(!given.includes(152));
    assert.equal(given.at(-1), 153);
  });

  test('leave out those in use', () => {
    const ids = new IdPool({ max: 10 });
    for (const id of [1, 2, 4]) ids.keep(id);
    assert.deepEqual([ids.take(), ids.take()], [3, 5]);
  });

  test('are given again only when all were used once', () => {
    const ids = new IdPool({ max: 3 });
    assert.deepEqual([ids.take(), ids.take()], [1, 2]);
    ids.release(1);
    assert.equal(ids.take(), 3, 'a client may still have a handle with 1');
    assert.equal(ids.take(), 1);
  });

  test('run out at some time', () => {
    const ids = new IdPool({ max: 2, isReserved: (id) => id === 1 });
    assert.deepEqual([ids.take(), ids.take()], [2, undefined]);
    ids.release(2);
    assert.equal(ids.take(), 2);
  });
});
