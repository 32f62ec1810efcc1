import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ConfigMap, configMap, configMaps, listOf, lists, Rig } from './rig.ts';

const even = ({ metadata: { name } }: ConfigMap): string | undefined => (Number(name) % 2 === 0 ? name : undefined);
const numbered = (...numbers: number[]): ConfigMap[] => numbers.map((number) => configMap(String(number), number));

describe('select', () => {
  test('keeps what is wanted of each page', async () => {
    await using rig = await Rig.start();
    rig.server.next(
      lists,
      (reply) => reply.json(200, listOf(numbered(1, 2), 9, 'token')),
      (reply) => reply.json(200, listOf(numbered(3, 4), 9)),
    );
    assert.deepEqual(await rig.client.select(configMaps, even, { labelSelector: 'a=b' }), ['2', '4']);
    assert.deepEqual(
      rig.server.matching(lists).map(({ query }) => query.toString()),
      ['labelSelector=a%3Db&limit=2000', 'labelSelector=a%3Db&limit=2000&continue=token'],
    );
  });

  test('starts again, in one response, when the pages have expired, and keeps nothing of the pages before', async () => {
    await using rig = await Rig.start();
    rig.server.next(
      lists,
      (reply) => reply.json(200, listOf(numbered(1, 2), 9, 'token')),
      (reply) => reply.status(410, 'Expired'),
      (reply) => reply.json(200, listOf(numbered(3, 4, 6), 12)), // 2 was deleted meanwhile
    );
    assert.deepEqual(await rig.client.select(configMaps, even, { labelSelector: 'a=b' }), ['4', '6']);
    assert.equal(rig.server.matching(lists)[2]?.query.toString(), 'labelSelector=a%3Db');
    assert.equal(rig.server.matching(lists).length, 3);
  });

  test('fails when the server cannot list everything at once either', async () => {
    await using rig = await Rig.start();
    rig.server.next(
      lists,
      (reply) => reply.json(200, listOf(numbered(1, 2), 9, 'token')),
      (reply) => reply.status(410, 'Expired'),
      (reply) => reply.status(410, 'Expired'),
    );
    await assert.rejects(rig.client.select(configMaps, even), { name: 'ExpiredError' });
    assert.equal(rig.server.matching(lists).length, 3);
  });
});
