import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Informer } from '../../../../src/kube/cache/informer.ts';
import { failure, type ScriptedReply } from '../../../support/fakes/scripted-server.ts';
import {
  bookmark,
  type ConfigMap,
  configMap,
  contents,
  heard,
  listOf,
  lists,
  nothing,
  quiet,
  Rig,
  streams,
  watches,
} from '../rig.ts';

/** An informer that fills its cache from a stream, which stays open. */
async function streaming(rig: Rig): Promise<{ informer: Informer<ConfigMap>; open: ScriptedReply }> {
  let open: ScriptedReply | undefined;
  rig.server.next(streams, (reply) => {
    open = reply
      .open()
      .event('ADDED', configMap('a', 1))
      .event('BOOKMARK', bookmark(10, { end: true }));
  });
  const informer = rig.informer({ watchList: 'auto' });
  await rig.clock.until(() => informer.hasSynced);
  assert.ok(open);
  return { informer, open };
}

describe('the streaming list', () => {
  test('fills the cache without a list, and notifies nobody before all has come', async () => {
    await using rig = await Rig.start();
    let open: ScriptedReply | undefined;
    rig.server.next(streams, (reply) => {
      open = reply.open();
      for (let i = 0; i < 1000; i++) open.event('ADDED', configMap(`c${i}`, 2000 - i));
    });
    const informer = rig.informer({ watchList: 'auto' });
    const calls = heard(informer);
    const [request] = await rig.server.requested(1, streams);
    assert.deepEqual(Object.fromEntries(request?.query ?? []), {
      watch: 'true',
      sendInitialEvents: 'true',
      resourceVersionMatch: 'NotOlderThan',
      allowWatchBookmarks: 'true',
      timeoutSeconds: '300',
    });
    await rig.clock.advance(1000);
    assert.deepEqual([calls.length, informer.size, informer.hasSynced], [0, 0, false]);
    open?.event('BOOKMARK', bookmark(2100, { end: true }));
    await informer.synced;
    assert.equal(calls.length, 1000);
    assert.ok(calls.every((call) => call.endsWith(' initial')));
    assert.equal(rig.server.requests.length, 1, 'neither a list nor a second watch');
  });

  test('goes on as a watch, whose version is that of the bookmark and then of the events', async () => {
    await using rig = await Rig.start();
    const { informer, open } = await streaming(rig);
    const calls = heard(informer);
    open.event('MODIFIED', configMap('a', 11)).event('ADDED', configMap('b', 12));
    await rig.clock.advance(5000);
    open.end();
    rig.server.otherwise(quiet);
    await rig.clock.until(() => rig.server.matching(watches).length === 1);
    assert.equal(rig.server.matching(watches)[0]?.query.get('resourceVersion'), '12');
    assert.deepEqual(calls, ['add ns/a@1 initial', 'update ns/a@1 -> ns/a@11', 'add ns/b@12']);
  });

  test('that is older than the cache, as after a restore of etcd, is requested again, and nothing is taken for known', async () => {
    await using rig = await Rig.start();
    const { informer, open } = await streaming(rig);
    const older = (reply: ScriptedReply): void => {
      reply
        .open()
        .event('ADDED', configMap('a', 1, { other: 'content' }))
        .event('BOOKMARK', bookmark(5, { end: true }));
    };
    rig.server.next(streams, older, older);
    open.event('ERROR', failure(410, 'Expired', 'too old'));
    await rig.clock.until(() => informer.get('ns/a')?.data !== undefined);
    assert.deepEqual(informer.get('ns/a')?.data, { other: 'content' });
    assert.equal(rig.server.matching(streams).length, 3);
    assert.equal(rig.server.matching(lists).length, 0);
    assert.ok(rig.log.some(({ message }) => message.startsWith('The API server has gone back in time')));
  });

  test('a 422 leads to a classic list in the same cycle, and the server is asked again with the first list an hour later', async () => {
    await using rig = await Rig.start();
    rig.server.next(streams, (reply) => reply.status(422, 'Invalid', { message: 'sendInitialEvents: Forbidden' }));
    rig.server.next(
      lists,
      (reply) => reply.json(200, listOf([configMap('a', 1)], 10)),
      (reply) => reply.json(200, listOf([configMap('a', 1)], 20)),
    );
    let open: ScriptedReply | undefined;
    const expire = (reply: ScriptedReply | undefined): void =>
      void reply?.event('ERROR', failure(410, 'Expired', 'too old'));
    rig.server.next(
      watches,
      (reply) => expire(reply.open()),
      (reply) => void (open = reply.open()),
    );
    const informer = rig.informer({ watchList: 'auto' });
    const waitedMs = await rig.clock.until(() => informer.hasSynced);
    assert.equal(waitedMs, 0);
    await rig.clock.until(() => open !== undefined);
    assert.equal(rig.server.matching(lists).length, 2);
    assert.equal(rig.server.matching(streams).length, 1);
    rig.server.otherwise((reply) => void (open = reply.open()));
    for (let quarter = 0; quarter < 6; quarter++) {
      await rig.clock.advance(10 * 60_000);
      open?.event('BOOKMARK', bookmark(20 + quarter)); // it stays alive
    }
    assert.equal(rig.server.matching(streams).length, 1);
    expire(open);
    await rig.clock.until(() => rig.server.matching(streams).length === 2);
    assert.equal(rig.server.matching(lists).length, 2);
  });

  test('another failure leads to a classic list, and the next cycle tries to stream again', async () => {
    await using rig = await Rig.start();
    rig.server.next(streams, (reply) => reply.status(500, 'InternalError'), quiet);
    rig.server.next(lists, (reply) => reply.json(200, listOf([configMap('a', 1)], 10)));
    rig.server.next(watches, (reply) => void reply.open().event('ERROR', failure(410, 'Expired', 'too old')));
    rig.informer({ watchList: 'auto' });
    await rig.clock.until(() => rig.server.matching(streams).length === 2);
    assert.equal(rig.server.matching(streams)[1]?.query.get('resourceVersion'), '10');
  });

  for (const { name, answer } of [
    { name: 'a 429', answer: (reply: ScriptedReply) => reply.status(429, 'TooManyRequests') },
    {
      name: 'a 429 inside the stream',
      answer: (reply: ScriptedReply) => void reply.open().event('ERROR', failure(429, 'TooManyRequests', 'slow')),
    },
  ]) {
    test(`${name} leads to another try after a pause`, async () => {
      await using rig = await Rig.start();
      rig.server.next(streams, answer, quiet);
      rig.informer({ watchList: 'auto' });
      await rig.clock.until(() => rig.server.matching(streams).length === 2);
      assert.deepEqual(rig.gapsMs(streams), [800]);
      assert.equal(rig.server.matching(lists).length, 0);
    });
  }

  test('a version that is gone is dropped at once', async () => {
    await using rig = await Rig.start();
    const { open } = await streaming(rig);
    rig.server.next(streams, (reply) => reply.status(410, 'Expired'), quiet);
    open.event('ERROR', failure(410, 'Expired', 'too old'));
    await rig.clock.until(() => rig.server.matching(streams).length === 3);
    assert.deepEqual(
      rig.server.matching(streams).map(({ query }) => query.get('resourceVersion')),
      [null, '10', null],
    );
    assert.deepEqual(rig.gapsMs(streams), [800, 0]);
  });

  test('a server that knows no streaming list is given up after 60 s of silence', async () => {
    await using rig = await Rig.start();
    rig.server.next(streams, (reply) => void reply.open().event('ADDED', configMap('a', 1)));
    rig.server.next(lists, (reply) => reply.json(200, listOf([configMap('a', 1)], 10)));
    rig.server.next(watches, (reply) => void reply.open().event('ERROR', failure(410, 'Expired', 'too old')));
    const informer = rig.informer({ watchList: 'auto' });
    const waitedMs = await rig.clock.until(() => informer.hasSynced);
    assert.equal(waitedMs, 60_000);
    rig.server.otherwise(nothing);
    await rig.clock.until(() => rig.server.matching(lists).length === 2);
    assert.equal(rig.server.matching(streams).length, 1, 'it is remembered');
  });

  test('a server that ignores the streaming list is given up after 30 s when other events show an ordinary watch', async () => {
    await using rig = await Rig.start();
    let open: ScriptedReply | undefined;
    rig.server.next(streams, (reply) => void (open = reply.open()));
    rig.server.next(lists, (reply) => reply.json(200, listOf([configMap('a', 11)], 12)));
    rig.server.otherwise(quiet);
    const informer = rig.informer({ watchList: 'auto' });
    await rig.clock.settle();
    open?.event('ADDED', configMap('a', 1)).event('MODIFIED', configMap('a', 10));
    await rig.clock.advance(29_000);
    assert.equal(rig.server.matching(lists).length, 0);
    await rig.clock.advance(2000);
    open?.event('ADDED', configMap('b', 11));
    const waitedMs = await rig.clock.until(() => informer.hasSynced);
    assert.equal(waitedMs, 0);
    await open?.closed;
  });

  test('a stream that breaks half way leaves nothing behind, so a deletion meanwhile is not missed', async () => {
    await using rig = await Rig.start();
    rig.server.next(
      streams,
      (reply) => reply.open().event('ADDED', configMap('gone', 1)).event('ADDED', configMap('a', 2)).cut(),
      (reply) =>
        void reply
          .open()
          .event('ADDED', configMap('a', 2))
          .event('BOOKMARK', bookmark(10, { end: true })),
    );
    const informer = rig.informer({ watchList: 'auto' });
    const calls = heard(informer);
    await rig.clock.until(() => informer.hasSynced);
    assert.deepEqual(calls, ['add ns/a@2 initial']);
    assert.equal(rig.server.matching(streams)[1]?.query.get('resourceVersion'), null);
  });

  test('a stream that breaks after more than a minute of objects is requested again, since the server does stream', async () => {
    await using rig = await Rig.start();
    let open: ScriptedReply | undefined;
    rig.server.next(
      streams,
      (reply) => void (open = reply.open()),
      (reply) =>
        void reply
          .open()
          .event('ADDED', configMap('a', 1))
          .event('BOOKMARK', bookmark(10, { end: true })),
    );
    const informer = rig.informer({ watchList: 'auto' });
    await rig.server.requested(1, streams);
    for (let i = 0; i < 3; i++) {
      open?.event('ADDED', configMap(`c${i}`, i + 1));
      await rig.clock.settle();
      await rig.clock.advance(30_000);
    }
    open?.event('ADDED', configMap('last', 9));
    await rig.clock.settle();
    open?.cut();
    await rig.clock.until(() => informer.hasSynced);
    assert.deepEqual(contents(informer), ['ns/a@1']);
    assert.equal(rig.server.matching(lists).length, 0);
  });

  test('streams that break half way three times in a row lead to a list in pages', async () => {
    await using rig = await Rig.start();
    rig.server.next(
      streams,
      ...Array.from({ length: 4 }, () => (reply: ScriptedReply) => {
        reply.open().event('ADDED', configMap('a', 1)).cut();
      }),
    );
    rig.server.next(lists, (reply) => reply.json(200, listOf([configMap('a', 1)], 10)));
    rig.server.otherwise(quiet);
    const informer = rig.informer({ watchList: 'auto' });
    await rig.clock.until(() => informer.hasSynced);
    assert.equal(rig.server.matching(streams).length, 3);
    assert.equal(rig.server.matching(lists)[0]?.query.get('limit'), '500');
  });

  test('a deletion inside the stream, before its end, never reaches the cache', async () => {
    await using rig = await Rig.start();
    rig.server.next(streams, (reply) => {
      reply
        .open()
        .event('ADDED', configMap('gone', 1))
        .event('ADDED', configMap('a', 2))
        .event('DELETED', configMap('gone', 3))
        .event('BOOKMARK', bookmark(10, { end: true }));
    });
    const informer = rig.informer({ watchList: 'auto' });
    await rig.clock.until(() => informer.hasSynced);
    assert.deepEqual(contents(informer), ['ns/a@2']);
  });

  test('a stream that ends at once leads to a classic list', async () => {
    await using rig = await Rig.start();
    rig.server.next(streams, (reply) => reply.open().end());
    rig.server.next(lists, (reply) => reply.json(200, listOf([], 10)));
    rig.server.otherwise(quiet);
    const informer = rig.informer({ watchList: 'auto' });
    await rig.clock.until(() => informer.hasSynced);
    assert.equal(rig.server.matching(lists).length, 1);
  });

  test('once all has come, an Expired leads to a new cycle after a pause, from the version of the watch', async () => {
    await using rig = await Rig.start();
    const { open } = await streaming(rig);
    open.event('MODIFIED', configMap('a', 11)).event('ERROR', failure(410, 'Expired', 'too old'));
    rig.server.otherwise(quiet);
    await rig.clock.until(() => rig.server.requests.length === 2);
    assert.deepEqual(rig.gapsMs({}), [800]);
    assert.equal(rig.server.matching(streams)[1]?.query.get('resourceVersion'), '11');
  });

  test('once all has come, a 429 leads to a watch after a pause, not to the objects again', async () => {
    await using rig = await Rig.start();
    const { open } = await streaming(rig);
    open.event('MODIFIED', configMap('a', 11)).event('ERROR', failure(429, 'TooManyRequests', 'slow down'));
    rig.server.otherwise(quiet);
    await rig.clock.until(() => rig.server.matching(watches).length === 1);
    assert.equal(rig.server.matching(streams).length, 1);
    assert.equal(rig.server.matching(watches)[0]?.atMs, 800);
    assert.equal(rig.server.matching(watches)[0]?.query.get('resourceVersion'), '11');
  });

  test('once all has come, a garbled line leads to a new cycle after a pause', async () => {
    await using rig = await Rig.start();
    const { open } = await streaming(rig);
    open.write('{"type":\n');
    rig.server.otherwise(quiet);
    await rig.clock.until(() => rig.server.requests.length === 2);
    assert.deepEqual(rig.gapsMs({}), [800]);
    assert.equal(rig.server.matching(streams).length, 2);
  });
});
