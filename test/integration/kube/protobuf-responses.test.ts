/** Servers, and proxies before them, that answer a request for protobuf in one way or another. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { messageDecoder } from '../../../src/kube/protobuf/message-decoder.ts';
import type { Informer } from '../../../src/kube/cache/informer.ts';
import type { Resource } from '../../../src/kube/kube-object.ts';
import { type Answer, failure, type RequestMatch, type ScriptedReply } from '../../support/fakes/scripted-server.ts';
import { encodeEvent, encodeList, encodeMessage, encodeStatus, envelope } from '../../support/protobuf-encoding.ts';
import { comparisons, type ConfigMap, contents, Rig } from './rig.ts';

const nodes: Resource = { group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false };
const path = '/api/v1/nodes';
const all: RequestMatch = { path, except: comparisons };
const lists: RequestMatch = { ...all, query: { watch: undefined } };
const watches: RequestMatch = { path, query: { watch: 'true', sendInitialEvents: undefined } };
const streams: RequestMatch = { path, query: { watch: 'true', sendInitialEvents: 'true' } };
const protobuf = 'application/vnd.kubernetes.protobuf';
const inProtobuf = { headers: { 'content-type': protobuf } };
const fallenBack = 'A resource could not be read as protobuf, requesting JSON until protobuf is tried again';

function metadata(name: string, version: number): object {
  return { name, uid: `uid-${name}`, resourceVersion: String(version) };
}

function message(name: string, version: number): Buffer {
  return encodeMessage('Node', { metadata: metadata(name, version) });
}

function listOf(names: readonly string[], version: number, token?: string): Buffer {
  const listMeta = { resourceVersion: String(version), ...(token !== undefined && { continue: token }) };
  return encodeList(
    'NodeList',
    listMeta,
    names.map((name, at) => message(name, at + 1)),
  );
}

function jsonListOf(names: readonly string[], version: number, token?: string): object {
  const items = names.map((name, at) => ({ metadata: metadata(name, at + 1) }));
  return {
    kind: 'NodeList',
    apiVersion: 'v1',
    metadata: { resourceVersion: String(version), ...(token !== undefined && { continue: token }) },
    items,
  };
}

function event(type: string, name: string, version: number): Buffer {
  return encodeEvent(type, envelope('Node', message(name, version)));
}

function bookmark(version: number, annotations?: object): Buffer {
  const listed = { metadata: { resourceVersion: String(version), ...(annotations && { annotations }) } };
  return encodeEvent('BOOKMARK', envelope('Node', encodeMessage('Node', listed)));
}

/** A watch in protobuf that stays open. */
function openWatch(reply: ScriptedReply): ScriptedReply {
  return reply.open({ contentType: `${protobuf};stream=watch` });
}

const quiet: Answer = (reply) => openWatch(reply);

function informer(rig: Rig, options: { watchList?: 'on' | 'off' } = {}): Informer<ConfigMap> {
  return rig.informer({ resource: nodes, protobuf: messageDecoder<ConfigMap>('Node'), ...options });
}

function accepted(rig: Rig, match: RequestMatch): (string | undefined)[] {
  return rig.server.matching(match).map(({ headers }) => headers.accept);
}

function warnings(rig: Rig): number {
  return rig.log.filter(({ message: text }) => text === fallenBack).length;
}

const both = `${protobuf}, application/json`;

describe('objects requested as protobuf', () => {
  for (const gzip of [false, true]) {
    test(`are listed and followed${gzip ? ', compressed' : ''}`, async () => {
      await using rig = await Rig.start();
      rig.server.next(lists, (reply) => reply.text(200, listOf(['a', 'b'], 10), { ...inProtobuf, gzip }));
      rig.server.next(watches, (reply) =>
        openWatch(reply)
          .write(event('ADDED', 'c', 11))
          .write(event('DELETED', 'a', 12))
          .write(bookmark(20))
          .end(),
      );
      rig.server.otherwise(quiet);
      const cache = informer(rig);
      await rig.server.requested(2, watches);
      assert.deepEqual(contents(cache), ['b@2', 'c@11']);
      assert.deepEqual(accepted(rig, all), [both, both, both]);
      assert.equal(rig.server.matching(watches)[1]?.query.get('resourceVersion'), '20');
    });
  }

  test('come as a streaming list up to its bookmark', async () => {
    await using rig = await Rig.start();
    rig.server.next(streams, (reply) =>
      openWatch(reply)
        .write(event('ADDED', 'a', 1))
        .write(bookmark(30, { 'k8s.io/initial-events-end': 'true' })),
    );
    const cache = informer(rig, { watchList: 'on' });
    await cache.synced;
    assert.deepEqual(contents(cache), ['a@1']);
    assert.equal(rig.server.matching(lists).length, 0);
  });

  test('may have megabytes each, as large as an API server stores them', async () => {
    await using rig = await Rig.start();
    const size = 1_500_000;
    const large = (name: string, version: number): Buffer => {
      const annotations = { large: 'é'.repeat(size / 2) };
      return encodeMessage('Node', { metadata: { ...metadata(name, version), annotations } });
    };
    const list = encodeList('NodeList', { resourceVersion: '10' }, [large('a', 1), message('b', 2)]);
    rig.server.next(lists, (reply) => reply.text(200, list, inProtobuf));
    rig.server.next(watches, (reply) =>
      openWatch(reply)
        .write(encodeEvent('ADDED', envelope('Node', large('c', 11))))
        .write(event('ADDED', 'd', 12)),
    );
    rig.server.otherwise(quiet);
    const cache = informer(rig);
    await rig.clock.until(() => cache.size === 4);
    assert.deepEqual(contents(cache), ['a@1', 'b@2', 'c@11', 'd@12']);
    for (const name of ['a', 'c']) {
      assert.equal(Buffer.byteLength(cache.get(name)?.metadata.annotations?.['large'] ?? ''), size);
    }
  });

  test('may come as JSON, as those of custom resources and aggregated APIs do', async () => {
    await using rig = await Rig.start();
    rig.server.next(lists, (reply) => reply.json(200, jsonListOf(['a'], 10)));
    rig.server.next(watches, (reply) =>
      reply
        .open()
        .event('ADDED', { kind: 'Node', apiVersion: 'v1', metadata: metadata('b', 11) })
        .end(),
    );
    rig.server.otherwise(quiet);
    const cache = informer(rig);
    await rig.clock.until(() => rig.server.matching(watches).length === 2);
    assert.deepEqual(contents(cache), ['a@1', 'b@11']);
    assert.deepEqual(accepted(rig, all), [both, both, both]);
    assert.equal(warnings(rig), 0);
  });

  for (const [code, reason] of [
    [406, 'NotAcceptable'],
    [415, 'UnsupportedMediaType'],
  ] as const) {
    test(`are requested as JSON at once, and for a while, when the answer is ${code}`, async () => {
      await using rig = await Rig.start();
      rig.server.next(
        lists,
        (reply) => reply.text(code, 'no such media type', { headers: { 'content-type': 'text/plain' } }),
        (reply) => reply.json(200, jsonListOf(['a'], 10)),
      );
      rig.server.otherwise((reply) => reply.open());
      const cache = informer(rig);
      await cache.synced;
      await rig.server.requested(1, watches);
      assert.deepEqual(accepted(rig, all), [both, 'application/json', 'application/json']);
      assert.equal(warnings(rig), 1);
      assert.deepEqual(contents(cache), ['a@1'], reason);
    });
  }

  const whole = listOf(['a', 'b'], 10);
  const turned = (kind: string, list: Buffer): Buffer => {
    const typeMeta = encodeMessage('Unknown', { typeMeta: { apiVersion: 'v1', kind } });
    return Buffer.concat([list.subarray(0, 4), list.subarray(4 + typeMeta.length), typeMeta]);
  };
  const huge = Buffer.concat([Buffer.from('ffffffff', 'hex'), Buffer.from('abc')]);
  for (const { name, answer } of [
    { name: 'a list that ends early', answer: whole.subarray(0, -20) },
    { name: 'a list with another prefix', answer: Buffer.concat([Buffer.from('K8S\0'), whole.subarray(4)]) },
    { name: 'a list without anything', answer: Buffer.alloc(0) },
    { name: 'a list with an object without metadata', answer: encodeList('NodeList', {}, [Buffer.alloc(0)]) },
    { name: 'a list that says its kind last', answer: turned('NodeList', whole) },
    { name: 'text', answer: Buffer.from('<html>Bad gateway</html>') },
    { name: 'a list whose message is compressed', answer: envelope('NodeList', whole, { encoding: 'gzip' }) },
    {
      name: 'an item of more than any object has',
      answer: Buffer.concat([whole.subarray(0, 4), Buffer.from('0affffffff0f', 'hex')]),
    },
  ]) {
    test(`are requested as JSON after a pause, and for a while, when the answer is ${name}`, async () => {
      await using rig = await Rig.start();
      rig.server.next(
        lists,
        (reply) => reply.text(200, answer, inProtobuf),
        (reply) => reply.json(200, jsonListOf(['a'], 10)),
      );
      rig.server.otherwise((reply) => reply.open());
      const cache = informer(rig);
      await rig.clock.until(() => rig.server.matching(watches).length === 1);
      assert.deepEqual(contents(cache), ['a@1']);
      assert.deepEqual(accepted(rig, all), [both, 'application/json', 'application/json']);
      assert.equal(warnings(rig), 1);
    });
  }

  test('are requested as protobuf again after an hour, and after two more when that fails again', async () => {
    await using rig = await Rig.start();
    rig.server.next(lists, (reply) => reply.json(200, jsonListOf(['a'], 10)));
    const hour = 3_600_000;
    const startMs = rig.clock.monotonicMs();
    const askedAtHours: number[] = [];
    rig.server.otherwise((reply, { headers }) => {
      if (headers.accept === 'application/json') {
        reply.open();
        return;
      }
      askedAtHours.push(Math.floor((rig.clock.monotonicMs() - startMs) / hour));
      reply.text(406, 'no such media type');
    });
    informer(rig);
    await rig.clock.until(() => askedAtHours.length === 4, { withinMs: 8 * hour });
    assert.deepEqual(askedAtHours, [0, 1, 3, 7]);
    assert.equal(warnings(rig), 4);
  });

  test('are requested as JSON after a pause when the decoder fails', async () => {
    await using rig = await Rig.start();
    rig.server.next(
      lists,
      (reply) => reply.text(200, listOf(['a'], 10), inProtobuf),
      (reply) => reply.json(200, jsonListOf(['a'], 10)),
    );
    rig.server.otherwise((reply) => reply.open());
    const cache = rig.informer({
      resource: nodes,
      protobuf: () => {
        throw new TypeError('a bug');
      },
    });
    await rig.clock.until(() => cache.hasSynced);
    assert.deepEqual(accepted(rig, lists), [both, 'application/json']);
    assert.equal(warnings(rig), 1);
  });

  for (const { name, frame } of [
    { name: 'an event that is none', frame: encodeEvent('', Buffer.alloc(0)) },
    { name: 'an object without its envelope', frame: encodeEvent('ADDED', message('b', 11)) },
    { name: 'a length beyond every object', frame: huge },
  ]) {
    test(`are listed again as JSON when a watch has ${name}`, async () => {
      await using rig = await Rig.start();
      rig.server.next(
        lists,
        (reply) => reply.text(200, listOf(['a'], 10), inProtobuf),
        (reply) => reply.json(200, jsonListOf(['a', 'b'], 12)),
      );
      rig.server.next(watches, (reply) => openWatch(reply).write(frame));
      rig.server.otherwise((reply) => reply.open());
      const cache = informer(rig);
      await rig.clock.until(() => rig.server.matching(watches).length === 2);
      assert.deepEqual(contents(cache), ['a@1', 'b@2']);
      assert.deepEqual(accepted(rig, all), [both, both, 'application/json', 'application/json']);
      assert.equal(warnings(rig), 1);
    });
  }

  test('of a watch that breaks within an event are watched again from the event before', async () => {
    await using rig = await Rig.start();
    rig.server.next(lists, (reply) => reply.text(200, listOf(['a'], 10), inProtobuf));
    rig.server.next(watches, (reply) =>
      openWatch(reply)
        .write(event('ADDED', 'b', 11))
        .write(event('ADDED', 'c', 12).subarray(0, 30))
        .end(),
    );
    rig.server.otherwise(quiet);
    const cache = informer(rig);
    await rig.clock.until(() => rig.server.matching(watches).length === 2);
    assert.deepEqual(contents(cache), ['a@1', 'b@11']);
    assert.equal(rig.server.matching(watches)[1]?.query.get('resourceVersion'), '11');
    assert.equal(warnings(rig), 0);
  });

  test('are listed again when a watch says in protobuf that its version is too old', async () => {
    await using rig = await Rig.start();
    const status = { status: 'Failure', code: 410, reason: 'Expired', message: 'too old resource version: 10 (20)' };
    rig.server.next(
      lists,
      (reply) => reply.text(200, listOf(['a'], 10), inProtobuf),
      (reply) => reply.text(200, listOf(['a', 'b'], 20), inProtobuf),
    );
    rig.server.next(watches, (reply) => openWatch(reply).write(encodeEvent('ERROR', encodeStatus(status))));
    rig.server.otherwise(quiet);
    const cache = informer(rig);
    await rig.clock.until(() => rig.server.matching(watches).length === 2);
    assert.deepEqual(contents(cache), ['a@1', 'b@2']);
    assert.equal(warnings(rig), 0);
  });

  test('that are forbidden are reported with the message and the right, out of a Status in protobuf', async () => {
    await using rig = await Rig.start();
    const text = 'nodes is forbidden: User "u" cannot list resource "nodes" in API group "" at the cluster scope';
    const status = encodeStatus({
      metadata: {},
      status: 'Failure',
      code: 403,
      reason: 'Forbidden',
      message: text,
      details: { kind: 'nodes', causes: [{ reason: 'r', message: 'm', field: 'f' }] },
    });
    rig.server.otherwise((reply) => reply.text(403, status, inProtobuf));
    const cache = informer(rig);
    await rig.server.requested(1);
    await rig.clock.until(() => cache.lastError !== undefined);
    assert.equal(cache.lastError?.name, 'ForbiddenError');
    assert.equal(cache.lastError.message, text);
    assert.equal((cache.lastError as { hasCause?: (type: string) => boolean }).hasCause?.('r'), true);
    assert.match(JSON.stringify(rig.log), /Not permitted to use a resource/);
    assert.equal(warnings(rig), 0);
  });

  test('fail with the code alone where a failure in protobuf is no Status', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise((reply) => reply.text(503, Buffer.from('k8s\0garbage'), inProtobuf));
    const cache = informer(rig);
    await rig.clock.until(() => cache.lastError !== undefined);
    assert.equal(cache.lastError?.message, 'the server responded with 503 to list nodes');
  });

  test('of another kind are never taken for those of the resource', async () => {
    await using rig = await Rig.start();
    rig.server.next(lists, (reply) => reply.text(200, encodeList('Table', {}, [message('a', 1)]), inProtobuf));
    rig.server.next(lists, (reply) => reply.text(200, listOf(['b'], 10), inProtobuf));
    rig.server.next(watches, (reply) =>
      openWatch(reply)
        .write(encodeEvent('ADDED', envelope('Pod', message('c', 11))))
        .write(event('ADDED', 'd', 12)),
    );
    rig.server.otherwise(quiet);
    const cache = informer(rig);
    await rig.clock.until(() => contents(cache).length === 2);
    assert.deepEqual(contents(cache), ['b@1', 'd@12']);
    assert.match(JSON.stringify(rig.log), /expected a NodeList, got \\"Table\\"/);
    assert.match(JSON.stringify(rig.log), /Watch event of another kind ignored/);
  });

  test('are not written back, in whichever coding they came', async () => {
    await using rig = await Rig.start();
    rig.server.next(lists, (reply) => reply.text(200, listOf(['a'], 10), inProtobuf));
    rig.server.next(watches, (reply) =>
      reply.open().event('ADDED', { kind: 'Node', apiVersion: 'v1', metadata: metadata('b', 11) }),
    );
    const cache = informer(rig);
    await rig.clock.until(() => cache.size === 2);
    for (const name of ['a', 'b']) {
      assert.throws(() => rig.client.update(nodes, cache.get(name)!), /must not be written back/);
    }
  });
});

test('lists of different kinds run side by side', async () => {
  await using rig = await Rig.start();
  let answer = (): void => undefined;
  rig.server.next({ path: '/api/v1/configmaps' }, (reply) => {
    answer = () => reply.json(200, { kind: 'ConfigMapList', metadata: { resourceVersion: '1' }, items: [] });
  });
  rig.server.next(lists, (reply) => reply.text(200, listOf(['a'], 10), inProtobuf));
  rig.server.otherwise(quiet);
  const configMaps = rig.informer();
  await rig.server.requested(1, { path: '/api/v1/configmaps' });
  await informer(rig).synced;
  assert.equal(configMaps.hasSynced, false);
  answer();
  await configMaps.synced;
});

describe('pages', () => {
  for (const { coding, first, second } of [
    { coding: 'JSON', first: JSON.stringify(jsonListOf(['a', 'b'], 10, 'more')), second: jsonListOf(['c'], 10) },
    { coding: 'protobuf', first: listOf(['a', 'b'], 10, 'more'), second: listOf(['c'], 10) },
  ]) {
    const type = coding === 'JSON' ? 'application/json' : protobuf;
    const page = Buffer.from(first);

    test(`in ${coding} are requested while the one before is still on its way`, async () => {
      await using rig = await Rig.start();
      let rest = (): void => undefined;
      rig.server.next(
        lists,
        (reply) => {
          reply.open({ contentType: type }).write(page.subarray(0, -20));
          rest = () => reply.write(page.subarray(-20)).end();
        },
        (reply) =>
          reply.text(200, Buffer.isBuffer(second) ? second : JSON.stringify(second), {
            headers: { 'content-type': type },
          }),
      );
      rig.server.otherwise(quiet);
      const cache = informer(rig);
      await rig.server.requested(2, lists);
      assert.equal(rig.server.matching(lists)[1]?.query.get('continue'), 'more');
      rest();
      await cache.synced;
      assert.deepEqual(contents(cache), ['a@1', 'b@2', 'c@1']);
      assert.equal(rig.server.matching(lists).length, 2);
    });

    test(`in ${coding} that were requested are given up when the one before breaks`, async () => {
      await using rig = await Rig.start();
      let ahead: ScriptedReply | undefined;
      rig.server.next(
        lists,
        (reply) => reply.open({ contentType: type }).write(page.subarray(0, -20)),
        (reply) => {
          ahead = reply.open({ contentType: type });
        },
      );
      const whole = { headers: { 'content-type': type } };
      const list = Buffer.isBuffer(second) ? second : JSON.stringify(second);
      rig.server.otherwise((reply, { query }) =>
        query.get('watch') === null ? reply.text(200, list, whole) : openWatch(reply),
      );
      const cache = informer(rig);
      await rig.server.requested(2, lists);
      await rig.clock.until(() => ahead?.isClosed === true);
      await rig.clock.until(() => cache.hasSynced);
      assert.deepEqual(contents(cache), ['c@1']);
    });
  }

  test('that expire are listed again in one answer, also when they were requested ahead', async () => {
    await using rig = await Rig.start();
    rig.server.next(
      lists,
      (reply) => reply.text(200, listOf(['a'], 10, 'more'), inProtobuf),
      (reply) => reply.json(410, failure(410, 'Expired', 'too old')),
      (reply) => reply.text(200, listOf(['b'], 20), inProtobuf),
    );
    rig.server.otherwise(quiet);
    const cache = informer(rig);
    await cache.synced;
    assert.deepEqual(contents(cache), ['b@1']);
    assert.deepEqual(
      rig.server.matching(lists).map(({ query }) => query.get('limit')),
      ['500', '500', null],
    );
  });
});
