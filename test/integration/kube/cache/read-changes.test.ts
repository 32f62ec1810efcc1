import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ExpiredError, ForbiddenError, TransportError } from '../../../../src/kube/client/api-error.ts';
import { CodingChoice } from '../../../../src/kube/cache/coding-choice.ts';
import { readChanges, type ReadChangesOptions } from '../../../../src/kube/cache/read-changes.ts';
import { recordedLogger } from '../../../support/fakes/recorded-logger.ts';
import { failure, type ScriptedReply } from '../../../support/fakes/scripted-server.ts';
import { bookmark, configMap, configMaps, quiet, Rig, watches } from '../rig.ts';

/** Reads from version 10 up to version 20, unless told otherwise. */
function read(rig: Rig, options: Partial<ReadChangesOptions> = {}) {
  const seen: string[] = [];
  const done = readChanges({
    coding: new CodingChoice({ transport: rig.transport, clock: rig.clock, logger: recordedLogger(rig.log) }),
    clock: rig.clock,
    resource: configMaps,
    from: '10',
    until: '20',
    onChange: (type, { metadata }) => seen.push(`${type} ${metadata.name}`),
    signal: new AbortController().signal,
    ...options,
  });
  done.catch(() => undefined);
  return { seen, done };
}

const froms = (rig: Rig): (string | null)[] =>
  rig.server.matching(watches).map(({ query }) => query.get('resourceVersion'));

/** A watch that the server ends regularly without a word. */
const silent = (reply: ScriptedReply): void => reply.open().end();

describe('the changes between two versions', () => {
  test('come from a short watch of the first, and end with a bookmark of the second', async () => {
    await using rig = await Rig.start();
    rig.server.next(watches, (reply) =>
      reply
        .open()
        .event('ADDED', configMap('a', 11))
        .event('MODIFIED', configMap('a', 12))
        .event('BOOKMARK', bookmark(15))
        .event('DELETED', configMap('a', 17))
        .event('BOOKMARK', bookmark(20))
        .event('ADDED', configMap('later', 21)),
    );
    const { seen, done } = read(rig);
    await done;
    assert.deepEqual(seen, ['ADDED a', 'MODIFIED a', 'DELETED a']);
    const [request] = rig.server.matching(watches);
    assert.equal(request?.query.toString(), 'watch=true&allowWatchBookmarks=true&resourceVersion=10&timeoutSeconds=4');
    assert.equal(rig.server.requests.length, 1);
    assert.equal(rig.clock.pending, 0);
  });

  test('end with a change of the second version, or of a later one', async () => {
    await using rig = await Rig.start();
    for (const version of [20, 25]) {
      rig.server.next(watches, (reply) => reply.open().event('ADDED', configMap('a', version)));
      const { seen, done } = read(rig);
      await done;
      assert.deepEqual(seen, ['ADDED a']);
    }
  });

  test('are none where the second version is not later: nothing is requested', async () => {
    await using rig = await Rig.start();
    for (const until of ['10', '9']) await read(rig, { until }).done;
    assert.deepEqual(rig.server.requests, []);
  });

  for (const { title, end } of [
    { title: 'the server ends a watch', end: (reply: ScriptedReply) => reply.end() },
    { title: 'the connection of a watch breaks', end: (reply: ScriptedReply) => reply.cut() },
  ]) {
    test(`are read on from the last one when ${title}`, async () => {
      await using rig = await Rig.start();
      rig.server.next(
        watches,
        (reply) => end(reply.open().event('ADDED', configMap('a', 14))),
        (reply) => end(reply.open().event('BOOKMARK', bookmark(16))),
        (reply) => reply.open().event('ADDED', configMap('b', 18)).event('BOOKMARK', bookmark(20)),
      );
      const { seen, done } = read(rig);
      await done;
      assert.deepEqual(froms(rig), ['10', '14', '16']);
      assert.deepEqual(seen, ['ADDED a', 'ADDED b']);
    });
  }

  test('are unknown once the server has forgotten the first version, however it says so', async () => {
    await using rig = await Rig.start();
    for (const answer of [
      (reply: ScriptedReply) => reply.status(410, 'Expired'),
      (reply: ScriptedReply) => reply.open().event('ERROR', failure(410, 'Expired', 'too old resource version')),
    ]) {
      rig.server.next(watches, answer);
      await assert.rejects(read(rig).done, ExpiredError);
    }
    assert.equal(rig.server.requests.length, 2, 'it is not asked again');
  });

  test('are not read without the right to', async () => {
    await using rig = await Rig.start();
    rig.server.next(watches, (reply) => reply.status(403, 'Forbidden'));
    await assert.rejects(read(rig).done, ForbiddenError);
  });

  test('are not read any more once the signal aborts, and the watch is ended', async () => {
    await using rig = await Rig.start();
    const opened = Promise.withResolvers<ScriptedReply>();
    rig.server.next(watches, (reply) => opened.resolve(reply.open()));
    const abort = new AbortController();
    const { done } = read(rig, { signal: abort.signal });
    const reply = await opened.promise;
    const reason = new Error('enough');
    abort.abort(reason);
    await assert.rejects(done, (error) => error === reason);
    await reply.closed;
    assert.equal(rig.clock.pending, 0);
  });
});

describe('a server that says nothing', () => {
  test('is asked again after a second, each time on a new connection: it may be one of several', async () => {
    await using rig = await Rig.start();
    rig.server.next(watches, silent, silent, silent, (reply) => reply.open().event('BOOKMARK', bookmark(20)));
    const { done } = read(rig);
    await rig.clock.until(() => rig.server.matching(watches).length === 4);
    await done;
    assert.deepEqual(froms(rig), ['10', '10', '10', '10']);
    assert.deepEqual(rig.gapsMs(watches), [1000, 1000, 1000]);
    assert.equal(new Set(rig.server.requests.map(({ port }) => port)).size, 4);
  });

  test('is left alone after 30 watches', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise(silent);
    const { done } = read(rig);
    await rig.clock.until(() => rig.server.matching(watches).length === 30);
    await assert.rejects(done, (error) => error instanceof TransportError && error.code === 'TIMEOUT');
    assert.equal(rig.server.matching(watches).length, 30);
  });

  test('that ends none of its watches is given up 30 s after each should have ended', async () => {
    await using rig = await Rig.start();
    rig.server.next(watches, quiet, (reply) => reply.open().event('BOOKMARK', bookmark(20)));
    const { done } = read(rig);
    await rig.clock.until(() => rig.server.matching(watches).length === 2);
    await done;
    assert.deepEqual(rig.gapsMs(watches), [35_000]);
  });

  test('counts from anew once it has said something', async () => {
    await using rig = await Rig.start();
    const silents = Array.from({ length: 29 }, () => silent);
    rig.server.next(watches, ...silents, (reply) => reply.open().event('BOOKMARK', bookmark(15)).end(), ...silents);
    rig.server.otherwise((reply) => reply.open().event('BOOKMARK', bookmark(20)));
    const { done } = read(rig);
    await rig.clock.until(() => rig.server.matching(watches).length === 60);
    await done;
  });
});

test('with a new connection from the start none that is open is used', async () => {
  await using rig = await Rig.start();
  rig.server.next(
    watches,
    ...[14, 16, 20].map((version) => (reply: ScriptedReply) => reply.open().event('BOOKMARK', bookmark(version)).end()),
  );
  await read(rig, { newConnection: true }).done;
  const ports = rig.server.requests.map(({ port }) => port);
  assert.equal(new Set(ports).size, 3);
});
