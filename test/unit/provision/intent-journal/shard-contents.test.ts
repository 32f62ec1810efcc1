import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { maxShards, parseHeader, type ShardHeader } from '../../../../src/provision/intent-journal/shard-contents.ts';

const header: ShardHeader = { format: 2, uid: 'u', writer: 'w', sequence: 7, renewedAt: '2026-01-01T00:00:00Z' };
const root: ShardHeader = { ...header, shards: 3, renewals: { w: 4 } };

function parsed(fields: object): unknown {
  return parseHeader(JSON.stringify(fields));
}

describe('the header of a shard', () => {
  test('is read as it was written', () => {
    for (const each of [header, root, { ...header, uid: '' }, { ...header, shards: maxShards }]) {
      assert.deepEqual(parsed(each), { header: each });
    }
    assert.deepEqual(parseHeader(undefined), { header: undefined });
  });

  for (const format of [0, 1, 3]) {
    test(`with the number ${format} is in another format`, () => {
      assert.deepEqual(parsed({ ...header, format }), { header: undefined, otherFormat: format });
      assert.deepEqual(parsed({ format }), { header: undefined, otherFormat: format });
    });
  }

  for (const [name, value] of [
    ['shards', 5e9],
    ['shards', maxShards + 1],
    ['shards', 0],
    ['shards', -1],
    ['shards', 1.5],
    ['shards', '3'],
    ['shards', null],
    ['renewals', null],
    ['renewals', [1]],
    ['renewals', { w: 'often' }],
  ] as const) {
    test(`is used without ${name} where that is ${JSON.stringify(value)}`, () => {
      const { [name]: _, ...rest } = root;
      const damage = `${name} is ${JSON.stringify(value)}`;
      assert.deepEqual(parsed({ ...root, [name]: value }), { header: rest, damage });
    });
  }

  for (const [name, value] of [
    ['format', '2'],
    ['format', 1.5],
    ['uid', 5],
    ['writer', ''],
    ['sequence', 'one'],
    ['sequence', -1],
    ['sequence', 1e300],
    ['renewedAt', 'yesterday'],
    ['renewedAt', 0],
  ] as const) {
    test(`is not used where ${name} is ${JSON.stringify(value)}`, () => {
      const damage = `${name} is ${JSON.stringify(value)}`;
      assert.deepEqual(parsed({ ...root, [name]: value }), { header: undefined, damage });
    });
  }

  test('is not used where a field is missing, and all that is wrong is named', () => {
    const { writer: _, ...rest } = root;
    const damage = 'writer is missing, shards is -1';
    assert.deepEqual(parsed({ ...rest, shards: -1 }), { header: undefined, damage });
  });

  for (const text of ['', 'edited', '[1]', 'null', '5', '"text"', 'gzip:H4sIAAAA']) {
    test(`is not used where it is ${JSON.stringify(text)}`, () => {
      assert.deepEqual(parseHeader(text), { header: undefined, damage: 'it is no JSON object' });
    });
  }
});
