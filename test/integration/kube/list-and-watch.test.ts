import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TokenBucket } from '../../../src/kube/client/token-bucket.ts';
import { failure, type ScriptedReply } from '../../support/fakes/scripted-server.ts';
import {
  bookmark,
  comparisons,
  configMap,
  configMaps,
  contents,
  heard,
  listOf,
  lists,
  nothing,
  path,
  quiet,
  Rig,
  watches,
} from './rig.ts';

const expired = { code: 410, reason: 'Expired' } as const;

/** Brings an informer to its first watch. */
async function synced(rig: Rig, version = 10): Promise<ReturnType<Rig['informer']>> {
  rig.server.next(lists, (reply) => reply.json(200, listOf([configMap('a', 1)], version)));
  const informer = rig.informer();
  await rig.clock.until(() => rig.server.matching(watches).length === 1);
  return informer;
}

/** Lists are made of this many pages of 500. */
function pages(total: number): object[][] {
  const all = Array.from({ length: total }, (_, i) => configMap(`c${i}`, i + 1));
  return Array.from({ length: Math.ceil(total / 500) }, (_, i) => all.slice(i * 500, (i + 1) * 500));
}

describe('listing', () => {
  test('the first list asks for 500 objects of any version', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise(nothing);
    rig.informer();
    const [request] = await rig.server.requested(1);
    assert.equal(request?.query.toString(), 'limit=500&resourceVersion=0');
    assert.equal(request.headers.accept, 'application/json');
    assert.equal(request.headers['accept-encoding'], 'gzip');
  });

  test('1200 objects come in three pages, and the version is that of the first', async () => {
    await using rig = await Rig.start();
    const [first = [], second = [], third = []] = pages(1200);
    rig.server.next(
      lists,
      (reply) => reply.json(200, listOf(first, 5000, 'token-1')),
      (reply) => reply.json(200, listOf(second, 5001, 'token-2')),
      (reply) => reply.json(200, listOf(third, 5002)),
    );
    rig.server.otherwise(quiet);
    const informer = rig.informer();
    await informer.synced;
    const [watch] = await rig.server.requested(1, watches);
    assert.deepEqual(
      rig.server.matching(lists).map(({ query }) => query.toString()),
      ['limit=500&resourceVersion=0', 'limit=500&continue=token-1', 'limit=500&continue=token-2'],
    );
    assert.equal(informer.size, 1200);
    assert.equal(watch?.query.get('resourceVersion'), '5000');
  });

  test('a server that pages lists at version 0 is asked in pages from then on', async () => {
    await using rig = await Rig.start();
    const [first = [], second = []] = pages(600);
    rig.server.next(
      lists,
      (reply) => reply.json(200, listOf(first, 700, 'more')),
      (reply) => reply.json(200, listOf(second, 700)),
      (reply) => reply.json(200, listOf([], 701)),
    );
    rig.server.next(watches, (reply) => reply.open().event('ERROR', failure(410, 'Expired', 'too old')));
    rig.informer();
    await rig.clock.until(() => rig.server.matching(lists).length === 3);
    assert.equal(rig.server.matching(lists)[2]?.query.toString(), 'limit=500&resourceVersion=700');
  });

  test('when the second page has expired, everything is asked for once more in one answer', async () => {
    await using rig = await Rig.start();
    const [first = [], second = []] = pages(700);
    rig.server.next(
      lists,
      (reply) => reply.json(200, listOf(first, 900, 'token')),
      (reply) => reply.json(410, { ...failure(410, 'Expired', 'too old'), metadata: { continue: 'inconsistent' } }),
      (reply) => reply.json(200, listOf([...first.slice(1), ...second], 950)),
    );
    rig.server.otherwise(quiet);
    const informer = rig.informer();
    await informer.synced;
    assert.equal(rig.server.matching(lists)[2]?.query.toString(), 'resourceVersion=0');
    assert.equal(rig.server.matching(lists).length, 3);
    assert.equal(informer.size, 699);
    assert.equal(informer.get('ns/c0'), undefined, 'the pages before are void');
    const [watch] = await rig.server.requested(1, watches);
    assert.equal(watch?.query.get('resourceVersion'), '950');
  });

  test('when the answer of everything at once fails too, the list starts over after a pause', async () => {
    await using rig = await Rig.start();
    rig.random = 0.5;
    rig.server.next(
      lists,
      (reply) => reply.json(200, listOf([configMap('a', 1)], 900, 'token')),
      (reply) => reply.status(410, 'Expired'),
      (reply) => reply.status(500, 'InternalError'),
      (reply) => reply.json(200, listOf([configMap('b', 2)], 901)),
    );
    rig.server.otherwise(quiet);
    const informer = rig.informer();
    await rig.clock.until(() => rig.server.matching(lists).length === 3);
    assert.equal(informer.hasSynced, false);
    assert.deepEqual(contents(informer), []);
    const waitedMs = await rig.clock.until(() => rig.server.matching(lists).length === 4);
    assert.equal(waitedMs, 1200);
    assert.equal(rig.server.matching(lists)[3]?.query.toString(), 'limit=500&resourceVersion=0');
    await informer.synced;
    assert.deepEqual(contents(informer), ['ns/b@2']);
  });

  for (const { name, message, details } of [
    { name: 'a cause', message: 'too new', details: { causes: [{ reason: 'ResourceVersionTooLarge' }] } },
    { name: 'the words of older servers', message: 'Too large resource version: 10, current: 5', details: {} },
    { name: 'the words of etcd', message: 'etcdserver: mvcc: required revision is a future revision', details: {} },
  ]) {
    test(`a version ahead of the server, reported by ${name}, is dropped at once`, async () => {
      await using rig = await Rig.start();
      rig.server.next(watches, (reply) => reply.open().event('ERROR', failure(410, 'Expired', 'too old')));
      const informer = await synced(rig);
      // as after a restore of etcd: versions are counted again, for other content
      const older = listOf([configMap('a', 1, { other: 'content' }), configMap('b', 4)], 5);
      rig.server.next(
        lists,
        (reply) => reply.status(504, 'Timeout', { message, details }),
        (reply) => reply.json(200, older),
        (reply) => reply.json(200, older),
      );
      rig.server.otherwise(quiet);
      await rig.clock.until(() => contents(informer).includes('ns/b@4'));
      const [, ahead, fresh, again] = rig.server.matching(lists);
      assert.equal(ahead?.query.toString(), 'resourceVersion=10');
      assert.equal(fresh?.query.toString(), 'limit=500');
      assert.equal(fresh.atMs, ahead.atMs);
      assert.equal(again?.query.toString(), 'limit=500');
      assert.deepEqual(informer.get('ns/a')?.data, { other: 'content' }, 'an object of a known version is another one');
      assert.ok(rig.log.some(({ message: text }) => text.startsWith('The API server has gone back in time')));
    });
  }

  test('a version that the server cannot read, from a spoiled list, is dropped', async () => {
    await using rig = await Rig.start();
    const message = 'invalid resource version: resourceVersion: Invalid value: "spoiled"';
    rig.server.next(watches, (reply) => reply.status(400, 'BadRequest', { message }));
    const spoiled = { ...listOf([configMap('a', 1)], 10), metadata: { resourceVersion: 'spoiled' } };
    rig.server.next(
      lists,
      (reply) => reply.json(200, spoiled),
      (reply) => reply.status(400, 'BadRequest', { message }),
      (reply) => reply.json(200, listOf([configMap('b', 4)], 5)),
    );
    rig.server.otherwise(quiet);
    const informer = rig.informer();
    await rig.clock.until(() => contents(informer).includes('ns/b@4'));
    assert.deepEqual(
      rig.server.matching(lists).map(({ query }) => query.toString()),
      ['limit=500&resourceVersion=0', 'resourceVersion=spoiled', 'limit=500'],
    );
  });

  test('a failure behind the code of a success says what failed', async () => {
    await using rig = await Rig.start();
    rig.server.next(lists, (reply) => reply.json(200, failure(500, 'InternalError', 'etcd is away')));
    rig.informer();
    await rig.clock.until(() => rig.server.matching(lists).length === 2);
    assert.match(String(rig.log.find(({ level }) => level === 'error')?.fields['err' as never]), /etcd is away/);
  });

  test('an object without metadata keeps no other out', async () => {
    await using rig = await Rig.start();
    const list = listOf([{}, configMap('a', 1), { kind: 'ConfigMap', metadata: null }] as never, 10);
    rig.server.next(lists, (reply) => reply.json(200, list));
    rig.server.otherwise(quiet);
    const informer = rig.informer();
    await rig.clock.until(() => informer.hasSynced);
    assert.deepEqual(contents(informer), ['ns/a@1']);
    assert.match(String(rig.log.find(({ level }) => level === 'error')?.fields['err' as never]), /no metadata/);
  });

  test('a table is never taken for objects', async () => {
    await using rig = await Rig.start();
    rig.server.next(lists, (reply) => reply.json(200, { kind: 'Table', apiVersion: 'meta.k8s.io/v1', rows: [] }));
    const informer = rig.informer();
    await rig.clock.until(() => rig.server.matching(lists).length === 2);
    assert.equal(informer.hasSynced, false);
    assert.match(
      String(rig.log.find(({ level }) => level === 'error')?.fields['err' as never]),
      /expected a ConfigMapList/,
    );
  });

  test('a resource that is not served yet is asked for until it is', async () => {
    await using rig = await Rig.start();
    rig.server.next(
      lists,
      (reply) => reply.status(404, 'NotFound'),
      (reply) => reply.status(404, 'NotFound'),
      (reply) => reply.json(200, listOf([configMap('a', 1)], 3)),
    );
    rig.server.otherwise(quiet);
    const informer = rig.informer();
    await rig.clock.until(() => informer.lastError !== undefined);
    await rig.clock.until(() => informer.hasSynced);
    assert.deepEqual(rig.gapsMs(lists), [800, 1600]);
    assert.equal(informer.lastError, undefined);
  });

  test('a list that falls silent half way is aborted and requested again', async () => {
    await using rig = await Rig.start();
    rig.server.next(
      lists,
      (reply) => void reply.open().write('{"kind":"ConfigMapList","items":['),
      (reply) => reply.json(200, listOf([configMap('a', 1)], 3)),
    );
    rig.server.otherwise(quiet);
    const informer = rig.informer();
    const waitedMs = await rig.clock.until(() => informer.hasSynced);
    assert.equal(waitedMs, 60_800);
  });

  test('a failure of a list whose body falls silent is aborted, and the list is requested again', async () => {
    await using rig = await Rig.start();
    rig.server.next(
      lists,
      (reply) => void reply.open({ code: 503 }).write('{"kind":"Status",'),
      (reply) => reply.json(200, listOf([configMap('a', 1)], 3)),
    );
    rig.server.otherwise(quiet);
    const informer = rig.informer();
    const waitedMs = await rig.clock.until(() => informer.hasSynced);
    assert.equal(waitedMs, 60_800);
  });

  for (const { what, wait, isFilledIn } of [
    {
      what: 'lists',
      wait: ({ client }: Rig) => client.list(configMaps, { labelSelector: 'waits' }),
      isFilledIn: (ms: number) => ms > 60_000, // longer than a list may be silent
    },
    {
      what: 'requests of other kinds',
      wait: ({ client }: Rig) => client.get(configMaps, { namespace: 'ns', name: 'waits' }),
      isFilledIn: (ms: number) => ms < 1000,
    },
  ]) {
    test(`where 350 ${what} always wait for the rate limit, a list in pages fills the cache`, async () => {
      await using rig = await Rig.start({ rateLimit: (clock) => new TokenBucket({ qps: 5, burst: 10, clock }) });
      const ofCache = { path: lists.path ?? '', query: { watch: undefined, labelSelector: undefined } };
      rig.server.next(
        ofCache,
        (reply) => reply.json(200, listOf([configMap('a', 5)], 10, 'more')),
        (reply) => reply.json(200, listOf([configMap('b', 6)], 10)),
      );
      rig.server.always({ query: { labelSelector: 'waits' } }, (reply) => reply.json(200, listOf([], 10)));
      rig.server.always({ path: '/api/v1/namespaces/ns/configmaps/waits' }, (reply) =>
        reply.json(200, configMap('waits', 1)),
      );
      rig.server.otherwise(quiet);
      const informer = rig.newInformer();
      const waiting = Array.from({ length: 350 }, async () => {
        while (!informer.hasSynced) await wait(rig);
      });
      const stop = new AbortController();
      const running = informer.run(stop.signal);
      await rig.clock.until(() => informer.hasSynced);
      assert.deepEqual([informer.size, rig.server.matching(ofCache).length], [2, 2]);
      assert.ok(isFilledIn(rig.clock.monotonicMs()), `after ${rig.clock.monotonicMs()} ms`);
      stop.abort(new Error('the test is over'));
      let ended = false;
      void Promise.all([running, ...waiting]).then(() => (ended = true));
      await rig.clock.until(() => ended);
    });
  }

  test('a list that is truncated half way reaches the cache in no part', async () => {
    await using rig = await Rig.start();
    rig.server.next(
      lists,
      (reply) =>
        reply
          .open()
          .write(`{"kind":"ConfigMapList","items":[${JSON.stringify(configMap('half', 1))},`)
          .cut(),
      (reply) => reply.json(200, listOf([configMap('a', 1)], 3)),
    );
    rig.server.otherwise(quiet);
    const informer = rig.informer();
    const calls = heard(informer);
    await rig.clock.until(() => informer.hasSynced);
    assert.deepEqual(calls, ['add ns/a@1 initial']);
    assert.deepEqual(rig.gapsMs(lists), [800]);
  });
});

describe('watching', () => {
  test('a watch asks for bookmarks, from the version of the list, for five to ten minutes', async () => {
    await using rig = await Rig.start();
    rig.server.next(watches, quiet);
    rig.random = 0.999;
    await synced(rig);
    const [watch] = rig.server.matching(watches);
    assert.deepEqual(Object.fromEntries(watch?.query ?? []), {
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: '10',
      timeoutSeconds: '599',
    });
  });

  test('selectors are part of lists and watches', async () => {
    await using rig = await Rig.start();
    rig.server.next({ query: { watch: undefined } }, (reply) => reply.json(200, listOf([], 10)));
    rig.server.otherwise(quiet);
    rig.informer({ namespace: 'ns', labelSelector: 'app in (a,b)', fieldSelector: 'metadata.name=x' });
    const [list, watch] = await rig.server.requested(2);
    for (const request of [list, watch]) {
      assert.equal(request?.path, '/api/v1/namespaces/ns/configmaps');
      assert.equal(request.query.get('labelSelector'), 'app in (a,b)');
      assert.equal(request.query.get('fieldSelector'), 'metadata.name=x');
    }
  });

  test('a watch that ends cleanly after six minutes goes on at once, without a list', async () => {
    await using rig = await Rig.start();
    let open: ScriptedReply | undefined;
    rig.server.next(
      watches,
      (reply) => void (open = reply.open()),
      (reply) => void reply.open().event('ADDED', configMap('b', 12)),
    );
    rig.random = 0.5;
    const informer = await synced(rig);
    for (let minute = 0; minute < 6; minute++) {
      await rig.clock.advance(60_000);
      open?.event('BOOKMARK', bookmark(10));
    }
    assert.equal(rig.server.matching(watches).length, 1);
    open?.end();
    const waitedMs = await rig.clock.until(() => rig.server.matching(watches).length === 2);
    assert.ok(waitedMs <= 100, `waited ${waitedMs} ms`);
    assert.equal(rig.server.matching(watches)[1]?.query.get('resourceVersion'), '10');
    await rig.clock.settle();
    assert.equal(rig.server.matching(lists).length, 1);
    assert.deepEqual(contents(informer), ['ns/a@1', 'ns/b@12']);
  });

  test('a watch that closes after 0.4 s and without an event leads to a list after a pause', async () => {
    await using rig = await Rig.start();
    rig.random = 0.25;
    let open: ScriptedReply | undefined;
    rig.server.next(watches, (reply) => void (open = reply.open()));
    await synced(rig);
    rig.server.otherwise(nothing);
    await rig.clock.advance(400);
    open?.end();
    const waitedMs = await rig.clock.until(() => rig.server.matching(lists).length === 2);
    assert.equal(waitedMs, 1000);
    assert.equal(rig.server.matching(lists)[1]?.query.toString(), 'resourceVersion=10');
  });

  test('a watch that closes after 0.4 s and one event is opened again without a list', async () => {
    await using rig = await Rig.start();
    let open: ScriptedReply | undefined;
    rig.server.next(watches, (reply) => void (open = reply.open()), quiet);
    await synced(rig);
    await rig.clock.advance(400);
    open?.event('MODIFIED', configMap('a', 11)).end();
    const waitedMs = await rig.clock.until(() => rig.server.matching(watches).length === 2);
    assert.equal(waitedMs, 0);
    assert.equal(rig.server.matching(watches)[1]?.query.get('resourceVersion'), '11');
    assert.equal(rig.server.matching(lists).length, 1);
  });

  for (const { name, answer } of [
    {
      name: 'an Expired inside the stream',
      answer: (reply: ScriptedReply) => void reply.open().event('ERROR', failure(410, 'Expired', 'too old')),
    },
    { name: 'a 410 to the watch request', answer: (reply: ScriptedReply) => reply.status(410, 'Gone') },
  ]) {
    test(`${name} leads to a list at the last version, and to one without if that is gone too`, async () => {
      await using rig = await Rig.start();
      rig.server.next(watches, answer);
      const informer = await synced(rig);
      rig.server.next(
        lists,
        (reply) => reply.status(expired.code, expired.reason),
        (reply) => reply.json(200, listOf([configMap('b', 90)], 95)),
      );
      rig.server.otherwise(quiet);
      await rig.clock.until(() => contents(informer).includes('ns/b@90'));
      assert.deepEqual(
        rig.server.matching(lists).map(({ query }) => query.toString()),
        ['limit=500&resourceVersion=0', 'resourceVersion=10', 'limit=500'],
      );
      assert.deepEqual(rig.gapsMs(lists), [800, 0]);
      const [, watch] = await rig.server.requested(2, watches);
      assert.equal(watch?.query.get('resourceVersion'), '95');
    });
  }

  for (const { name, answer, pauseMs } of [
    { name: 'a 429', answer: (reply: ScriptedReply) => reply.status(429, 'TooManyRequests'), pauseMs: 800 },
    {
      name: 'a 429 that asks for five seconds',
      answer: (reply: ScriptedReply) => reply.status(429, 'TooManyRequests', { headers: { 'retry-after': '5' } }),
      pauseMs: 5000,
    },
    {
      name: 'a 429 that asks for a year',
      answer: (reply: ScriptedReply) =>
        reply.status(429, 'TooManyRequests', { headers: { 'retry-after': '31536000' } }),
      pauseMs: 60_000,
    },
    {
      name: 'a 429 inside the stream',
      answer: (reply: ScriptedReply) => void reply.open().event('ERROR', failure(429, 'TooManyRequests', 'slow down')),
      pauseMs: 800,
    },
  ]) {
    test(`${name} to a watch leads to another watch after a pause, not to a list`, async () => {
      await using rig = await Rig.start();
      rig.server.next(watches, answer, quiet);
      await synced(rig);
      const waitedMs = await rig.clock.until(() => rig.server.matching(watches).length === 2);
      assert.equal(waitedMs, pauseMs);
      await rig.clock.advance(1000);
      assert.equal(rig.server.matching(lists).length, 1);
    });
  }

  test('another error inside the stream leads to a list after a pause', async () => {
    await using rig = await Rig.start();
    rig.server.next(watches, (reply) => void reply.open().event('ERROR', failure(500, 'InternalError', 'etcd')));
    await synced(rig);
    rig.server.otherwise(nothing);
    await rig.clock.until(() => rig.server.matching(lists).length === 2);
    assert.deepEqual(rig.gapsMs(lists), [800]);
  });

  test('three minutes of refused connections lead to watches at growing gaps only, and no event is lost', async () => {
    await using rig = await Rig.start();
    rig.random = 0.5;
    let open: ScriptedReply | undefined;
    rig.server.next(watches, (reply) => void (open = reply.open()));
    const informer = await synced(rig);
    open?.event('ADDED', configMap('b', 11));
    await rig.clock.advance(5000);
    const before = rig.observations.length;
    await rig.server.down();
    await rig.clock.advance(180_000);
    const refused = rig.observations.slice(before);
    assert.ok(refused.every(({ verb, code }) => verb === 'watch' && code === '<error>'));
    // 1.2, 2.4, 4.8, 9.6, 19.2, 38.4, 45, 45: eight tries after the first
    assert.equal(refused.length, 9);
    rig.server.next(watches, (reply) => void reply.open().event('ADDED', configMap('c', 12)));
    await rig.server.up();
    const waitedMs = await rig.clock.until(() => contents(informer).includes('ns/c@12'));
    assert.ok(waitedMs <= 60_000);
    assert.equal(rig.server.matching(lists).length, 1);
    assert.equal(rig.server.matching(watches)[1]?.query.get('resourceVersion'), '11');
    assert.deepEqual(contents(informer), ['ns/a@1', 'ns/b@11', 'ns/c@12']);
  });

  /** An informer at version 11 whose watch breaks; `requested` is the next one, which begins there. */
  async function broken(rig: Rig) {
    let open: ScriptedReply | undefined;
    rig.server.next(watches, (reply) => void (open = reply.open()));
    const informer = await synced(rig, 10);
    assert.ok(informer.isFollowing);
    open?.event('ADDED', configMap('b', 11));
    await rig.clock.until(() => informer.size === 2);
    let next: ScriptedReply | undefined;
    rig.server.next(watches, (reply) => void (next = reply.open()));
    open?.cut();
    await rig.clock.until(() => next !== undefined);
    assert.equal(rig.server.matching(watches)[1]?.query.get('resourceVersion'), '11');
    assert.equal(informer.isFollowing, false);
    return { informer, next };
  }

  test('after a break and 75 silent seconds, a server that is older than the cache is listed again', async () => {
    await using rig = await Rig.start();
    const { informer } = await broken(rig);
    rig.server.next(comparisons, (reply) => reply.json(200, listOf([configMap('a', 1)], 7)));
    rig.server.next(lists, (reply) => reply.json(200, listOf([configMap('a', 1), configMap('c', 4)], 8)));
    rig.server.next(watches, quiet);
    await rig.clock.until(() => rig.server.matching(watches).length === 3, { withinMs: 80_000 });
    assert.ok(informer.isFollowing);
    assert.deepEqual(contents(informer), ['ns/a@1', 'ns/c@4']);
    assert.equal(rig.server.matching(lists)[1]?.query.get('resourceVersion'), null);
    assert.equal(rig.server.matching(watches)[2]?.query.get('resourceVersion'), '8');
    assert.ok(rig.log.some(({ message }) => message.startsWith('The API server has gone back in time')));
  });

  test('a server that is older than the cache may have other content at the same version of an object', async () => {
    await using rig = await Rig.start();
    const { informer } = await broken(rig);
    rig.server.next(comparisons, (reply) => reply.json(200, listOf([], 7)));
    rig.server.next(lists, (reply) => reply.json(200, listOf([configMap('b', 11, { since: 'the restore' })], 12)));
    rig.server.next(watches, quiet);
    await rig.clock.until(() => rig.server.matching(watches).length === 3, { withinMs: 80_000 });
    assert.deepEqual(informer.get('ns/b')?.data, { since: 'the restore' });
  });

  test('after a break and 75 silent seconds, nothing is listed again where the server is not older', async () => {
    await using rig = await Rig.start();
    const { informer } = await broken(rig);
    rig.server.next(
      comparisons,
      (reply) => reply.status(503, 'ServiceUnavailable'),
      (reply) => reply.json(200, listOf([], 11)),
    );
    rig.server.otherwise(quiet);
    await rig.clock.until(() => informer.isFollowing, { withinMs: 160_000 });
    assert.equal(rig.server.matching(comparisons).length, 2);
    assert.equal(rig.server.matching(lists).length, 1);
  });

  test('where something ends each watch after a minute of silence, an older server is found, too', async () => {
    await using rig = await Rig.start();
    const { next } = await broken(rig);
    let second: ScriptedReply | undefined;
    rig.server.next(watches, (reply) => void (second = reply.open()), quiet);
    rig.server.next(comparisons, (reply) => reply.json(200, listOf([], 7)));
    rig.server.next(lists, (reply) => reply.json(200, listOf([configMap('c', 4)], 8)));
    await rig.clock.advance(60_000);
    next?.end();
    await rig.clock.until(() => second !== undefined);
    assert.equal(rig.server.matching(comparisons).length, 0);
    await rig.clock.until(() => rig.server.matching(watches).length === 4, { withinMs: 20_000 });
    assert.equal(rig.server.matching(lists)[1]?.query.get('resourceVersion'), null);
  });

  test('where something ends each watch after a minute of silence, the versions are compared after 75 s of silence', async () => {
    await using rig = await Rig.start();
    const { informer, next } = await broken(rig);
    const open: ScriptedReply[] = [];
    const opens = (reply: ScriptedReply): void => void open.push(reply.open());
    rig.server.next(watches, opens, opens, opens);
    for (const [index, reply] of [() => next, () => open[0], () => open[1]].entries()) {
      await rig.clock.advance(60_000);
      reply()?.end();
      await rig.clock.until(() => open.length === index + 1);
    }
    assert.deepEqual(rig.gapsMs(watches).slice(-3), [60_000, 60_000, 60_000]);
    assert.equal(rig.server.matching(comparisons).length, 1, 'in the second minute');
    await rig.clock.until(() => informer.isFollowing, { withinMs: 20_000 });
    assert.equal(rig.server.matching(comparisons).length, 2, 'in the fourth minute');
    assert.equal(rig.server.matching(lists).length, 1);
  });

  test('a watch that the server ends by a clock that runs a little faster is not taken for a break', async () => {
    await using rig = await Rig.start();
    let open: ScriptedReply | undefined;
    rig.server.next(watches, (reply) => void (open = reply.open()), quiet);
    const informer = await synced(rig);
    for (let minute = 0; minute < 4; minute++) {
      await rig.clock.advance(60_000);
      open?.event('BOOKMARK', bookmark(10));
    }
    await rig.clock.advance(59_900);
    open?.end();
    await rig.clock.until(() => rig.server.matching(watches).length === 2);
    assert.ok(informer.isFollowing);
  });

  test('watches that each end at once after an event that changes nothing are opened at growing gaps, without lists', async () => {
    await using rig = await Rig.start();
    const useless = (reply: ScriptedReply): void => reply.open().event('BOOKMARK', bookmark(10)).end();
    rig.server.next(watches, useless, useless, useless, quiet);
    await synced(rig);
    await rig.clock.until(() => rig.server.matching(watches).length === 4);
    assert.deepEqual(rig.gapsMs(watches), [800, 1600, 3200]);
    assert.equal(rig.server.matching(lists).length, 1);
  });

  test('after a break, an event or bookmark shows that the server is not older: nothing else is requested', async () => {
    await using rig = await Rig.start();
    const { informer, next } = await broken(rig);
    next?.event('BOOKMARK', bookmark(12));
    await rig.clock.until(() => informer.isFollowing);
    await rig.clock.advance(70_000);
    assert.equal(rig.server.matching(comparisons).length, 0);
    assert.equal(rig.server.matching(lists).length, 1);
    assert.equal(rig.server.matching(watches).length, 2);
  });

  test('after two quiet minutes the first pause is short again', async () => {
    await using rig = await Rig.start();
    let open: ScriptedReply | undefined;
    const busy = (reply: ScriptedReply): void => reply.status(429, 'TooManyRequests');
    rig.server.next(watches, busy, busy, busy, busy, (reply) => void (open = reply.open()), busy, quiet);
    await synced(rig);
    await rig.clock.until(() => open !== undefined);
    assert.deepEqual(rig.gapsMs(watches), [800, 1600, 3200, 6400]);
    await rig.clock.advance(60_000);
    open?.event('BOOKMARK', bookmark(11));
    await rig.clock.advance(60_000);
    open?.end();
    await rig.clock.until(() => rig.server.matching(watches).length === 7);
    assert.equal(rig.gapsMs(watches).at(-1), 800);
  });

  test('a bookmark moves the version forward', async () => {
    await using rig = await Rig.start();
    let open: ScriptedReply | undefined;
    rig.server.next(watches, (reply) => void (open = reply.open()), quiet);
    const informer = await synced(rig);
    const calls = heard(informer);
    open?.event('BOOKMARK', bookmark(900));
    await rig.clock.advance(2000);
    open?.cut();
    await rig.clock.until(() => rig.server.matching(watches).length === 2);
    assert.equal(rig.server.matching(watches)[1]?.query.get('resourceVersion'), '900');
    assert.deepEqual(calls, ['add ns/a@1 initial']);
  });

  test('events of a watch that began without a version move nothing forward while they are all ADDED', async () => {
    await using rig = await Rig.start();
    rig.server.next(lists, (reply) => reply.json(200, { kind: 'ConfigMapList', metadata: {}, items: [] }));
    const added = (reply: ScriptedReply): ScriptedReply =>
      reply
        .open()
        .event('ADDED', configMap('a', 5))
        .event('ADDED', configMap('b', 9))
        .event('ADDED', configMap('c', 7));
    rig.server.next(
      watches,
      (reply) => added(reply).cut(),
      (reply) => added(reply).event('MODIFIED', configMap('b', 12)).cut(),
      quiet,
    );
    const informer = rig.informer();
    await rig.clock.until(() => rig.server.matching(watches).length === 3);
    assert.deepEqual(
      rig.server.matching(watches).map(({ query }) => query.get('resourceVersion')),
      [null, null, '12'],
    );
    assert.deepEqual(contents(informer), ['ns/a@5', 'ns/b@12', 'ns/c@7']);
    assert.equal(rig.server.matching(lists).length, 1);
  });

  test('a line that arrives in pieces, split inside a character, is read once and right', async () => {
    await using rig = await Rig.start();
    let open: ScriptedReply | undefined;
    rig.server.next(watches, (reply) => void (open = reply.open()));
    const informer = await synced(rig);
    const calls = heard(informer);
    const line = Buffer.from(
      `${JSON.stringify({ type: 'ADDED', object: configMap('b', 11, { drink: 'café au lait' }) })}\n`,
    );
    const accent = line.indexOf(0xc3);
    for (const piece of [
      line.subarray(0, accent - 3),
      line.subarray(accent - 3, accent + 1),
      line.subarray(accent + 1),
    ]) {
      open?.write(piece);
      await rig.clock.settle();
    }
    assert.equal(informer.get('ns/b')?.data?.['drink'], 'café au lait');
    assert.deepEqual(calls, ['add ns/a@1 initial', 'add ns/b@11']);
  });

  test('an event of three MiB is delivered', async () => {
    await using rig = await Rig.start();
    const big = 'x'.repeat(3 * 1024 * 1024);
    rig.server.next(watches, (reply) => void reply.open().event('ADDED', configMap('b', 11, { big })));
    const informer = await synced(rig);
    while (informer.get('ns/b') === undefined) await rig.clock.settle();
    assert.equal(informer.get('ns/b')?.data?.['big'], big);
  });

  test('a watch that is silent from its start is opened again after 75 s, over a new connection and without a list', async () => {
    await using rig = await Rig.start();
    rig.server.next(watches, quiet, (reply) => void reply.open().event('ADDED', configMap('b', 11)));
    const informer = await synced(rig);
    const waitedMs = await rig.clock.until(() => rig.server.matching(watches).length === 2);
    assert.equal(waitedMs, 75_000);
    await rig.clock.until(() => informer.size === 2);
    assert.deepEqual(contents(informer), ['ns/a@1', 'ns/b@11']);
    assert.equal(rig.server.matching(lists).length, 1);
    const [first, second] = rig.server.matching(watches);
    assert.deepEqual([first?.query.get('resourceVersion'), second?.query.get('resourceVersion')], ['10', '10']);
    assert.notEqual(first?.port, second?.port);
  });

  test('after a silent watch no request goes over a connection that was opened before', async () => {
    await using rig = await Rig.start();
    rig.server.always({ path: '/version' }, (reply) => reply.json(200, {}));
    rig.server.otherwise(quiet);
    await rig.client.raw('/version');
    await synced(rig);
    await rig.clock.until(() => rig.server.matching(watches).length === 2);
    await rig.client.raw('/version');
    const [before, after] = rig.server.matching({ path: '/version' });
    assert.notEqual(before?.port, after?.port);
  });

  test('a server that sends no bookmarks is asked again twice, then its silence is believed', async () => {
    await using rig = await Rig.start();
    rig.random = 0.5; // asks for 450 s
    rig.server.otherwise(quiet);
    await synced(rig);
    await rig.clock.advance(1_500_000);
    assert.deepEqual(rig.gapsMs(watches), [75_000, 75_000, 480_000, 480_000]);
    assert.equal(rig.server.matching(lists).length, 1);
  });

  test('a watch that gets no answer at all is asked for again after 30 s, and the log says so', async () => {
    await using rig = await Rig.start();
    rig.server.next(watches, nothing, nothing, (reply) => void reply.open().event('ADDED', configMap('b', 11)));
    const informer = await synced(rig);
    await rig.clock.until(() => rig.server.matching(watches).length === 3);
    await rig.clock.settle();
    assert.deepEqual(rig.gapsMs(watches), [31_000, 31_000]);
    assert.deepEqual(contents(informer), ['ns/a@1', 'ns/b@11']);
    assert.equal(rig.server.matching(lists).length, 1);
    const errors = rig.log.filter(({ level }) => level === 'error');
    assert.deepEqual(
      errors.map(({ fields }) => (fields as { err: Error }).err.message),
      ['no response to a watch of configmaps within 30000 ms'],
    );
  });

  test('after a bookmark 75 s of silence are enough, and the next watch begins there', async () => {
    await using rig = await Rig.start();
    let open: ScriptedReply | undefined;
    rig.server.next(watches, (reply) => void (open = reply.open()), quiet);
    await synced(rig);
    await rig.clock.advance(60_000);
    open?.event('BOOKMARK', bookmark(20));
    await rig.clock.advance(30_000);
    open?.event('BOOKMARK', bookmark(21));
    const waitedMs = await rig.clock.until(() => rig.server.matching(watches).length === 2);
    assert.equal(waitedMs, 75_000);
    assert.equal(rig.server.matching(watches)[1]?.query.get('resourceVersion'), '21');
  });

  test('rare bookmarks stretch the silence that is taken for death', async () => {
    await using rig = await Rig.start();
    rig.random = 0.999;
    let open: ScriptedReply | undefined;
    rig.server.otherwise((reply) => void (open = reply.open()));
    await synced(rig);
    await rig.clock.until(() => rig.server.matching(watches).length === 3); // the silence of two is not believed
    await rig.clock.advance(100_000);
    open?.event('BOOKMARK', bookmark(20));
    const waitedMs = await rig.clock.until(() => rig.server.matching(watches).length === 4);
    assert.equal(waitedMs, 125_000);
  });

  test('watches are spread evenly over five to ten minutes', async () => {
    await using rig = await Rig.start();
    rig.server.next(lists, (reply) => reply.json(200, listOf([], 10)));
    let version = 10;
    rig.server.otherwise((reply) => {
      reply.open().event('BOOKMARK', bookmark(++version)).end();
    });
    let state = 1;
    rig.informer({
      random: () => {
        state = (state * 48_271) % 2_147_483_647; // the same numbers in every run
        return state / 2_147_483_647;
      },
    });
    await rig.server.requested(1000, watches);
    const asked = rig.server.matching(watches).map(({ query }) => Number(query.get('timeoutSeconds')));
    const mean = asked.reduce((sum, seconds) => sum + seconds, 0) / asked.length;
    assert.ok(Math.min(...asked) >= 300 && Math.max(...asked) <= 600);
    assert.ok(Math.abs(mean - 450) <= 10, `mean ${mean}`);
    assert.equal(rig.server.matching(lists).length, 1);
  });

  test('events of another kind or type change neither cache nor version', async () => {
    await using rig = await Rig.start();
    let open: ScriptedReply | undefined;
    rig.server.next(watches, (reply) => void (open = reply.open()), quiet);
    const informer = await synced(rig);
    open
      ?.event('ADDED', { ...configMap('p', 30), kind: 'Pod' })
      .event('RENAMED', configMap('q', 31))
      .event('ADDED', configMap('a', 11))
      .event('MODIFIED', configMap('b', 12))
      .event('DELETED', configMap('never-seen', 13));
    await rig.clock.advance(1000);
    open?.write('{"type":"ADDED","object":{"kind":"Conf').cut();
    await rig.clock.until(() => rig.server.matching(watches).length === 2);
    assert.deepEqual(contents(informer), ['ns/a@11', 'ns/b@12'], 'an ADDED of a known one updates, and so on');
    assert.equal(rig.server.matching(watches)[1]?.query.get('resourceVersion'), '13');
  });

  test('a watch request that breaks is tried ten more times, a second apart, before a new list', async () => {
    await using rig = await Rig.start();
    rig.server.next({ path, query: { watch: undefined } }, (reply) => reply.json(200, listOf([], 10)));
    rig.server.otherwise((reply) => reply.reset());
    rig.informer();
    await rig.clock.until(() => rig.server.matching(lists).length === 2);
    assert.deepEqual(
      rig.gapsMs(watches),
      Array.from({ length: 10 }, () => 1000),
    );
    assert.equal(rig.server.matching(lists)[1]?.query.toString(), 'resourceVersion=10');
  });

  test('a garbled line leads to a new list', async () => {
    await using rig = await Rig.start();
    rig.server.next(watches, (reply) => void reply.open().write('{"type":"ADDED",\n'));
    await synced(rig);
    rig.server.otherwise(nothing);
    await rig.clock.until(() => rig.server.matching(lists).length === 2);
    assert.deepEqual(rig.gapsMs(lists), [800]);
  });

  for (const line of [
    '{"object":{"metadata":{"name":"a"}}}',
    '{"type":"MODIFIED","object":null}',
    '{"type":"MODIFIED","object":{"kind":"ConfigMap"}}',
    '{"type":"BOOKMARK","object":{"kind":"ConfigMap","metadata":null}}',
    'null',
  ]) {
    test(`a line that is JSON but no event leads to a new list: ${line}`, async () => {
      await using rig = await Rig.start();
      rig.server.next(watches, (reply) => void reply.open().write(`${line}\n`));
      await synced(rig);
      rig.server.otherwise(nothing);
      await rig.clock.until(() => rig.server.matching(lists).length === 2);
      assert.deepEqual(rig.gapsMs(lists), [800]);
      assert.match(
        String(rig.log.find(({ level }) => level === 'error')?.fields['err' as never]),
        /is truncated or garbled/,
      );
    });
  }

  test('events come through a compressed watch as they happen', async () => {
    await using rig = await Rig.start();
    let open: ScriptedReply | undefined;
    rig.server.next(watches, (reply) => void (open = reply.open({ gzip: true })), quiet);
    const informer = await synced(rig);
    for (const version of [11, 12]) {
      open?.event('MODIFIED', configMap('a', version));
      while (informer.get('ns/a')?.metadata.resourceVersion !== String(version)) await rig.clock.settle();
    }
    await rig.clock.advance(1000);
    open?.cut();
    await rig.clock.until(() => rig.server.matching(watches).length === 2);
    assert.equal(rig.server.matching(watches)[1]?.query.get('resourceVersion'), '12');
  });
});
