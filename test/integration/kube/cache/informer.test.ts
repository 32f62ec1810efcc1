import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Tombstone } from '../../../../src/kube/cache/informer.ts';
import { deepFreeze } from '../../../../src/kube/cache/store.ts';
import { waitForSync } from '../../../../src/kube/cache/wait-for-sync.ts';
import { type LogLine, recordedLogger } from '../../../support/fakes/recorded-logger.ts';
import { failure, type ScriptedReply } from '../../../support/fakes/scripted-server.ts';
import { hold, iterationsDuring } from '../../../support/fakes/event-loop.ts';
import {
  bookmark,
  type ConfigMap,
  configMap,
  contents,
  heard,
  listOf,
  lists,
  quiet,
  Rig,
  streams,
  watches,
} from '../rig.ts';

describe('an informer', () => {
  test('what a new list lacks is deleted, with its last known state', async () => {
    await using rig = await Rig.start();
    rig.server.next(
      lists,
      (reply) => reply.json(200, listOf([configMap('a', 1), configMap('b', 2)], 10)),
      (reply) => reply.json(200, listOf([configMap('b', 2)], 20)),
    );
    rig.server.next(watches, (reply) => void reply.open().event('ERROR', failure(410, 'Expired', 'too old')), quiet);
    const informer = rig.informer();
    const calls = heard(informer);
    await rig.clock.until(() => rig.server.matching(watches).length === 2);
    assert.deepEqual(calls.slice(0, 3), ['add ns/a@1 initial', 'add ns/b@2 initial', 'tombstone ns/a']);
    assert.deepEqual(contents(informer), ['ns/b@2']);
  });

  test('an object that was recreated during an outage is one update, with another uid', async () => {
    await using rig = await Rig.start();
    rig.server.next(
      lists,
      (reply) => reply.json(200, listOf([configMap('a', 1, undefined, 'first')], 10)),
      (reply) => reply.json(200, listOf([configMap('a', 15, undefined, 'second')], 20)),
    );
    rig.server.next(watches, (reply) => void reply.open().event('ERROR', failure(410, 'Expired', 'too old')), quiet);
    const informer = rig.informer();
    const uids: unknown[] = [];
    informer.addHandler({
      onUpdate: (old, object) => uids.push([old.metadata.uid, object.metadata.uid]),
      onDelete: () => uids.push('deleted'),
    });
    await rig.clock.until(() => rig.server.matching(watches).length === 2);
    assert.deepEqual(uids, [['first', 'second']]);
  });

  test('a late handler is notified of everything, without a gap or a repeat, while changes go on', async () => {
    await using rig = await Rig.start();
    let open: ScriptedReply | undefined;
    rig.server.next(lists, (reply) => reply.json(200, listOf([configMap('a', 1), configMap('b', 2)], 10)));
    rig.server.next(watches, (reply) => void (open = reply.open()));
    const informer = rig.informer();
    await rig.server.requested(1, watches);
    for (let version = 11; version < 111; version++) open?.event('ADDED', configMap(`n${version}`, version));
    while (informer.size < 20) await new Promise((resolve) => setImmediate(resolve));
    const calls = heard(informer); // it goes on hearing of the content while the changes come
    open?.event('MODIFIED', configMap('n20', 200)).event('DELETED', configMap('a', 201));
    while (contents(informer).includes('ns/a@1')) await rig.clock.settle();
    await rig.clock.settle();
    assert.ok(calls.filter((call) => call.endsWith(' initial')).length >= 20);
    const added = calls.filter((call) => call.startsWith('add ')).map((call) => call.split(' ')[1]);
    assert.equal(added.length, 102);
    assert.equal(new Set(added).size, 102);
    assert.deepEqual(calls.slice(-2), ['update ns/n20@20 -> ns/n20@200', 'delete ns/a@201']);
  });

  test('a handler that throws disturbs neither the others nor the cache', async () => {
    await using rig = await Rig.start();
    rig.server.next(lists, (reply) => reply.json(200, listOf([configMap('a', 1), configMap('b', 2)], 10)));
    rig.server.otherwise(quiet);
    const informer = rig.newInformer();
    informer.addHandler({
      onAdd: () => {
        throw new Error('broken handler');
      },
    });
    const calls = heard(informer);
    const stop = new AbortController();
    const run = informer.run(stop.signal);
    await rig.clock.until(() => informer.hasSynced);
    assert.deepEqual(calls, ['add ns/a@1 initial', 'add ns/b@2 initial']);
    assert.equal(rig.log.filter(({ message }) => message === 'An informer handler failed').length, 2);
    stop.abort();
    await run;
    await assert.rejects(informer.run(stop.signal), /is already running/);
  });

  test('a handler is synced once it was notified of all; the informer once the cache is full', async () => {
    await using rig = await Rig.start();
    let open: ScriptedReply | undefined;
    rig.server.next(lists, (reply) => void (open = reply.open()));
    rig.server.otherwise(quiet);
    const informer = rig.informer();
    let count = 0;
    const registration = informer.addHandler({ onAdd: () => count++ });
    await rig.clock.settle();
    assert.deepEqual([informer.hasSynced, registration.hasSynced], [false, false]);
    open?.write(JSON.stringify(listOf([configMap('a', 1)], 10))).end();
    await registration.synced;
    assert.deepEqual([informer.hasSynced, registration.hasSynced, count], [true, true, 1]);
    const late = informer.addHandler({ onAdd: () => count++ });
    await late.synced;
    assert.deepEqual([late.hasSynced, count], [true, 2]);
  });

  test('a resync gives every cached object again, without a request, to those who asked', async () => {
    await using rig = await Rig.start();
    rig.server.next(lists, (reply) => reply.json(200, listOf([configMap('a', 1), configMap('b', 2)], 10)));
    rig.server.otherwise(quiet);
    const informer = rig.newInformer();
    const same: boolean[] = [];
    const resynced = informer.addHandler(
      { onUpdate: (old: ConfigMap, object: ConfigMap) => same.push(old === object) },
      { resyncMs: 60_000 },
    );
    const calls = heard(informer);
    const stop = new AbortController();
    const run = informer.run(stop.signal);
    await rig.clock.until(() => informer.hasSynced);
    await rig.clock.advance(121_000);
    assert.deepEqual(same, [true, true, true, true]);
    assert.deepEqual(calls, ['add ns/a@1 initial', 'add ns/b@2 initial']);
    assert.equal(rig.server.matching(lists).length, 1);
    resynced.remove();
    await rig.clock.advance(120_000);
    assert.equal(same.length, 4);
    stop.abort();
    await run;
  });

  test('however much is cached, the event loop runs while handlers are notified: at first, late, and at a resync', async () => {
    await using rig = await Rig.start();
    const objects = Array.from({ length: 6 }, (_, n) => configMap(`n${n}`, n + 1));
    rig.server.next(lists, (reply) => reply.json(200, listOf(objects, 10)));
    rig.server.otherwise(quiet);
    const informer = rig.newInformer();
    let calls = 0;
    const slow = (): void => {
      calls++;
      hold(11);
    };
    informer.addHandler({ onAdd: slow, onUpdate: slow }, { resyncMs: 60_000 });
    const stop = new AbortController();
    const run = informer.run(stop.signal);
    const filled = await iterationsDuring(informer.synced);
    assert.equal(calls, 6);
    const late = await iterationsDuring(informer.addHandler({ onAdd: slow }).synced);
    assert.equal(calls, 12);
    const resynced = await iterationsDuring(rig.clock.advance(60_000).then(() => rig.clock.until(() => calls === 18)));
    for (const iterations of [filled, late, resynced]) assert.ok(iterations >= 4, `${iterations} iterations`);
    stop.abort();
    await run;
  });

  test('a late handler is notified of the content first, then of what happens meanwhile', async () => {
    await using rig = await Rig.start();
    let open: ScriptedReply | undefined;
    const objects = ['a', 'b', 'c', 'd'].map((name, n) => configMap(name, n + 1));
    rig.server.next(lists, (reply) => reply.json(200, listOf(objects, 10)));
    rig.server.next(watches, (reply) => void (open = reply.open()));
    const informer = rig.informer();
    await rig.server.requested(1, watches);
    const calls: string[] = [];
    const late = informer.addHandler({
      onAdd: ({ metadata }) => {
        if (calls.length === 0) {
          open
            ?.event('MODIFIED', configMap('d', 11))
            .event('DELETED', configMap('c', 12))
            .event('ADDED', configMap('e', 13));
        }
        hold(11);
        calls.push(`add ${metadata.name}@${metadata.resourceVersion ?? ''}`);
      },
      onUpdate: (_old, { metadata }) => calls.push(`update ${metadata.name}@${metadata.resourceVersion ?? ''}`),
      onDelete: (gone) => calls.push(`delete ${gone instanceof Tombstone ? gone.key : gone.metadata.name}`),
    });
    await late.synced;
    await rig.clock.until(() => calls.includes('add e@13'));
    assert.deepEqual(calls.slice(0, 4).toSorted(), ['add a@1', 'add b@2', 'add c@3', 'add d@4']);
    assert.deepEqual(calls.slice(4), ['update d@11', 'delete c', 'add e@13']);
  });

  test('a handler that is removed while the content is delivered gets no more of it', async () => {
    await using rig = await Rig.start();
    rig.server.next(lists, (reply) => reply.json(200, listOf([configMap('a', 1), configMap('b', 2)], 10)));
    rig.server.otherwise(quiet);
    const informer = rig.informer();
    await rig.clock.until(() => informer.hasSynced);
    const heardOf: string[] = [];
    const registration = informer.addHandler({
      onAdd: ({ metadata: { name } }) => {
        heardOf.push(name);
        hold(11);
      },
    });
    registration.remove();
    await rig.clock.settle();
    assert.ok(heardOf.length <= 1, heardOf.join());
    assert.equal(registration.hasSynced, false);
  });

  test('an update in which nothing differs that is read reaches the cache but nobody else', async () => {
    await using rig = await Rig.start();
    rig.server.next(lists, (reply) => reply.json(200, listOf([configMap('a', 1, { x: '1' })], 10)));
    rig.server.next(watches, (reply) => {
      reply
        .open()
        .event('MODIFIED', configMap('a', 11, { x: '1' }))
        .event('MODIFIED', configMap('a', 12, { x: '2' }));
    });
    const informer = rig.informer({ sameContent: (old, object) => old.data?.['x'] === object.data?.['x'] });
    const calls = heard(informer);
    await rig.clock.until(() => contents(informer).includes('ns/a@12'));
    assert.deepEqual(calls, ['add ns/a@1 initial', 'update ns/a@11 -> ns/a@12']);
  });

  test('an object that did not change keeps its cached form over a new list', async () => {
    await using rig = await Rig.start();
    rig.server.next(
      lists,
      (reply) => reply.json(200, listOf([configMap('a', 1), configMap('b', 2)], 10)),
      (reply) => reply.json(200, listOf([configMap('a', 1), configMap('b', 15)], 20)),
    );
    rig.server.next(watches, (reply) => void reply.open().event('ERROR', failure(410, 'Expired', 'too old')), quiet);
    const informer = rig.informer();
    await rig.clock.until(() => informer.hasSynced);
    const [a, b] = [informer.get('ns/a'), informer.get('ns/b')];
    await rig.clock.until(() => rig.server.matching(watches).length === 2);
    assert.equal(informer.get('ns/a'), a);
    assert.notEqual(informer.get('ns/b'), b);
  });

  for (const { name, watchList } of [
    { name: 'a list and a watch', watchList: 'off' },
    { name: 'a streaming list', watchList: 'on' },
  ] as const) {
    test(`every object passes the transform before it is kept, from ${name}`, async () => {
      await using rig = await Rig.start();
      const secret = { secret: 'not kept' };
      rig.server.next(lists, (reply) => reply.json(200, listOf([configMap('a', 1, secret)], 10)));
      rig.server.next(watches, (reply) => void reply.open().event('ADDED', configMap('b', 11, secret)));
      rig.server.next(streams, (reply) => {
        reply
          .open()
          .event('ADDED', configMap('a', 1, secret))
          .event('BOOKMARK', bookmark(10, { end: true }))
          .event('ADDED', configMap('b', 11, secret));
      });
      const informer = rig.informer({ watchList, transform: ({ metadata }) => ({ metadata }) });
      await rig.clock.until(() => informer.size === 2);
      assert.deepEqual(
        [...informer.list()].map((object) => object.data),
        [undefined, undefined],
      );
    });
  }

  test('a forbidden list is retried until the rule is granted, and says which rule is missing', async () => {
    await using rig = await Rig.start();
    rig.random = 0.999;
    let granted = false;
    rig.server.otherwise((reply, request) => {
      if (!granted) reply.status(403, 'Forbidden', { message: 'configmaps is forbidden' });
      else if (request.query.has('watch')) reply.open();
      else reply.json(200, listOf([configMap('a', 1)], 10));
    });
    const informer = rig.informer({ watchList: 'auto' });
    await rig.clock.advance(120_000);
    assert.equal(informer.hasSynced, false);
    assert.equal(informer.lastError?.name, 'ForbiddenError');
    const complaints = rig.log.filter(({ level }) => level === 'error');
    assert.ok(complaints.length >= 2 && complaints.length <= 3, 'once, then at most once a minute');
    assert.equal(
      (complaints[0]?.fields as { addRule?: string }).addRule,
      '- apiGroups: [""]\n  resources: ["configmaps"]\n  verbs: ["list", "watch"]',
    );
    granted = true;
    rig.server.next(streams, (reply) => reply.status(403, 'Forbidden'));
    const waitedMs = await rig.clock.until(() => informer.hasSynced);
    assert.ok(waitedMs <= 60_000, `synced after ${waitedMs} ms`);
    assert.equal(informer.lastError, undefined);
  });

  test('a handler that writes into a frozen cached object throws, and the cache stays as it was', async () => {
    await using rig = await Rig.start();
    let open: ScriptedReply | undefined;
    rig.server.next(lists, (reply) => reply.json(200, listOf([configMap('a', 1, { x: '1' })], 10)));
    rig.server.next(watches, (reply) => void (open = reply.open()));
    const informer = rig.informer({ freeze: true });
    const outcomes: string[] = [];
    const spoil = (object: ConfigMap): void => {
      try {
        object.data = {};
      } catch (error) {
        outcomes.push((error as Error).name);
      }
      try {
        (object.data ??= {})['x'] = 'spoilt';
      } catch (error) {
        outcomes.push((error as Error).name);
      }
    };
    informer.addHandler({ onAdd: spoil, onUpdate: (_old, object) => spoil(object) });
    await rig.clock.until(() => rig.server.matching(watches).length === 1);
    open?.event('MODIFIED', configMap('a', 11, { x: '2' }));
    await rig.clock.until(() => contents(informer).includes('ns/a@11'));
    assert.deepEqual(outcomes, ['TypeError', 'TypeError', 'TypeError', 'TypeError']);
    assert.deepEqual(informer.get('ns/a')?.data, { x: '2' });
  });

  test('an object whose transform throws is removed when it is deleted', async () => {
    await using rig = await Rig.start();
    rig.server.next(lists, (reply) => reply.json(200, listOf([configMap('a', 5)], 10)));
    const replies: ScriptedReply[] = [];
    rig.server.otherwise((reply) => replies.push(reply.open()));
    const informer = rig.informer({
      transform: (object) => {
        if ((object as ConfigMap).data !== undefined) throw new TypeError('cannot be read');
        return object;
      },
    });
    const calls = heard(informer);
    await rig.clock.until(() => replies.length > 0);
    replies[0]?.event('DELETED', configMap('a', 11, { broken: 'yes' }));
    await rig.clock.until(() => calls.some((call) => call.startsWith('delete')));
    assert.equal(informer.size, 0);
  });

  test('parts that a transform froze itself do not keep the rest open', async () => {
    await using rig = await Rig.start();
    rig.server.next(lists, (reply) => reply.json(200, listOf([configMap('a', 1, { x: '1' })], 10)));
    rig.server.otherwise(quiet);
    const informer = rig.informer({
      freeze: true,
      transform: (object) => ({ ...(object as ConfigMap), data: deepFreeze({ shared: 'yes' }) }),
    });
    await rig.clock.until(() => informer.hasSynced);
    const cached = informer.get('ns/a');
    assert.ok(cached);
    assert.throws(() => (cached.metadata.name = 'b'), TypeError);
  });
});

describe('waiting for caches', () => {
  test('ends with the last cache, and says every half minute which are missing', async () => {
    await using rig = await Rig.start();
    let open: ScriptedReply | undefined;
    rig.server.next(
      lists,
      (reply) => reply.json(200, listOf([], 1)),
      (reply) => void (open = reply.open()),
    );
    rig.server.otherwise(quiet);
    const ready = rig.informer();
    await rig.clock.until(() => ready.hasSynced);
    const late = rig.informer();
    const lines: LogLine[] = [];
    const options = { signal: new AbortController().signal, clock: rig.clock, logger: recordedLogger(lines) };
    const waiting = waitForSync({ ready, late }, options);
    await rig.clock.advance(59_000);
    assert.deepEqual(
      lines.map(({ fields }) => fields),
      [{ missing: ['late'] }],
    );
    open?.write(JSON.stringify(listOf([], 2))).end();
    await waiting;
    assert.equal(late.hasSynced, true);
  });

  test('ends at once when it is aborted', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise(quiet);
    const informer = rig.informer();
    const stop = new AbortController();
    const waiting = waitForSync(
      { informer },
      { signal: stop.signal, clock: rig.clock, logger: recordedLogger(rig.log) },
    );
    stop.abort(new Error('stopping'));
    await assert.rejects(waiting, /stopping/);
  });
});
