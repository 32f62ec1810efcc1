import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { listPage } from '../../../sandbox/hostpath/list-page.ts';

const records = [1, 2, 5, 9].map((serial) => ({ serial }));
const serials = (page: { entries: { serial: number }[] }): number[] => page.entries.map((entry) => entry.serial);

describe('listPage', () => {
  test('gives everything and no token without a size', () => {
    assert.deepEqual(listPage(records, {}), { entries: records });
  });

  test('walks through all pages', () => {
    const first = listPage(records, { max_entries: 3 });
    assert.deepEqual(serials(first), [1, 2, 5]);
    assert.ok(first.next_token);
    assert.deepEqual(listPage(records, { max_entries: 3, starting_token: first.next_token }), {
      entries: [{ serial: 9 }],
    });
  });

  test('a page that ends with the list has no token', () => {
    assert.equal(listPage(records, { max_entries: 4 }).next_token, undefined);
  });

  test('goes on behind a record that has gone since', () => {
    const { next_token: token } = listPage(records, { max_entries: 2 });
    assert.ok(token);
    const left = records.filter((record) => record.serial !== 2);
    assert.deepEqual(serials(listPage(left, { starting_token: token })), [5, 9]);
  });

  for (const token of ['x', 'after-', 'after-1x', '1', 'after--1']) {
    test(`the token ${token} is ABORTED`, () => {
      assert.throws(() => listPage(records, { starting_token: token }), { codeName: 'ABORTED' });
    });
  }

  test('a negative size is INVALID_ARGUMENT', () => {
    assert.throws(() => listPage(records, { max_entries: -1 }), { codeName: 'INVALID_ARGUMENT' });
  });
});
