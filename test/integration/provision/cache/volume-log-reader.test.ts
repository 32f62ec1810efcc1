import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { NotReachedError, VolumeLogReader } from '../../../../src/provision/cache/volume-log-reader.ts';
import { VolumeLog } from '../../../../src/provision/cache/volume-log.ts';
import type { PersistentVolume } from '../../../../src/provision/objects.ts';
import { recordedLogger } from '../../../support/fakes/recorded-logger.ts';
import type { ScriptedReply, ScriptedRequest } from '../../../support/fakes/scripted-server.ts';
import { Rig } from '../../kube/rig.ts';

interface Change {
  version: number;
  name: string;
  type?: 'ADDED' | 'DELETED';
}

interface History {
  changes: Change[];
  /** Versions before this one are refused. */
  oldest: number;
  /** As of now. */
  version: number;
  /** It says how far it is. */
  hasBookmarks: boolean;
}

/**
 * An API server with a history of volumes, and the reader of a log whose cache was listed at version 1000.
 *
 * @param history - of the server. Default: it knows everything, and is at version 1000.
 */
async function scene(history: Partial<History> = {}) {
  const rig = await Rig.start();
  const server: History = { changes: [], oldest: 0, version: 1000, hasBookmarks: true, ...history };
  const watch = (reply: ScriptedReply, { query }: ScriptedRequest): void => {
    const from = Number(query.get('resourceVersion'));
    if (from < server.oldest) {
      reply.status(410, 'Expired');
      return;
    }
    reply.open();
    for (const { version, name, type = 'ADDED' } of server.changes)
      if (version > from) reply.event(type, volume(name, version));
    if (server.hasBookmarks) reply.event('BOOKMARK', volume('', server.version));
    reply.end();
  };
  rig.server.otherwise(watch);
  const needed: number[] = [];
  const process = new AbortController();
  const log = new VolumeLog({ storageKeys: ({ spec }) => [spec.csi?.volumeHandle ?? ''] });
  log.usedBy({ neededVersions: () => needed, neededStorageVersions: () => [], lostHistory: () => undefined });
  const reader = new VolumeLogReader({
    log,
    transport: rig.transport,
    abort: process.signal,
    clock: rig.clock,
    logger: recordedLogger(rig.log),
  });
  log.listed('1000', { rewound: false });
  return {
    rig,
    server,
    log,
    reader,
    needed,
    watch,
    /** Aborts when what is under way is to be abandoned. */
    process,
    /** The versions that were asked for. */
    asked: () => rig.server.requests.map(({ query }) => Number(query.get('resourceVersion'))),
    ports: () => new Set(rig.server.requests.map(({ port }) => port)).size,
    /** Waits until nothing is left to be read, while time stands still. */
    filled: async (): Promise<void> => {
      while (log.pending.length > 0) await nextTurn();
    },
  };
}

function volume(name: string, version: number): PersistentVolume {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, resourceVersion: String(version) },
    spec: { csi: { driver: 'drv', volumeHandle: `handle-${name}` } },
  };
}

const expired = {
  kind: 'unknown',
  why: 'the API server no longer knows which PersistentVolumes there were meanwhile',
} as const;

describe('what happened before the cache began', () => {
  test('is read by one watch from the oldest version that is asked for', async () => {
    const { rig, log, asked, filled } = await scene({
      changes: [
        { version: 500, name: 'kept' },
        { version: 510, name: 'kept', type: 'DELETED' },
      ],
    });
    await using _rig = rig;
    log.extend(400);
    assert.deepEqual(log.verdict('kept', 400), { kind: 'pending' });
    await filled();
    assert.deepEqual(asked(), [400]);
    assert.equal(log.verdict('kept', 505).kind, 'seen'); // also the later one
    assert.deepEqual(log.verdict('other', 400), { kind: 'never' });
    assert.equal(log.sawStorage('handle-kept', 400), true);
  });

  test('is read for each version that is older than those before', async () => {
    const { rig, log, asked, filled } = await scene({ changes: [{ version: 150, name: 'old' }] });
    await using _rig = rig;
    for (const since of [400, 700, 100]) log.extend(since);
    await filled();
    assert.deepEqual(asked(), [400, 100]);
    assert.deepEqual(log.verdict('old', 400), { kind: 'never' });
    assert.equal(log.verdict('old', 100).kind, 'seen');
  });

  test('is read again after a pause when the server fails, and the log says so', async () => {
    const { rig, log, asked, filled } = await scene();
    await using _rig = rig;
    rig.server.next({}, (reply) => reply.status(500, 'InternalError'));
    log.extend(400);
    await rig.clock.until(() => asked().length === 2);
    await filled();
    assert.deepEqual(asked(), [400, 400]);
    assert.ok((rig.gapsMs({})[0] ?? 0) >= 800);
    assert.deepEqual(
      rig.log.map(({ level, message }) => [level, message]),
      [['warn', 'The history of the PersistentVolumes could not be read, trying again']],
    );
    assert.deepEqual(log.verdict('any', 400), { kind: 'never' });
  });

  test('is not read any more, without a word, when the process ends', async () => {
    const { rig, log, process } = await scene();
    await using _rig = rig;
    const opened = Promise.withResolvers<ScriptedReply>();
    rig.server.next({}, (reply) => opened.resolve(reply.open()));
    log.extend(400);
    const reply = await opened.promise;
    process.abort(new Error('the end'));
    await reply.closed;
    await rig.clock.settle();
    assert.deepEqual(rig.log, []);
    assert.equal(rig.clock.pending, 0);
    assert.deepEqual(log.verdict('any', 400), { kind: 'pending' });
  });
});

describe('what a server has forgotten', () => {
  test('is asked for on two new connections, as another server may know it', async () => {
    const { rig, log, asked, ports, filled, watch } = await scene();
    await using _rig = rig;
    const refuse = (reply: ScriptedReply): void => reply.status(410, 'Expired');
    rig.server.next({}, refuse, refuse, watch);
    log.extend(400);
    await filled();
    assert.deepEqual(asked(), [400, 400, 400]);
    assert.equal(ports(), 3);
    assert.deepEqual(log.verdict('any', 400), { kind: 'never' });
  });

  test('is lost when no connection leads to a server that knows it', async () => {
    const { rig, log, asked, filled } = await scene({ oldest: 900 });
    await using _rig = rig;
    log.extend(400);
    await filled();
    assert.deepEqual(asked(), [400, 400, 400]);
    assert.deepEqual(log.verdict('any', 400), expired);
    assert.deepEqual(log.verdict('any', 1000), { kind: 'never' });
  });

  test('leaves the younger versions: the oldest that is known is found among them', async () => {
    const { rig, log, needed, asked, filled } = await scene({
      oldest: 600,
      changes: [{ version: 650, name: 'seen' }],
    });
    await using _rig = rig;
    needed.push(800, 700, 600, 500, 400, 800);
    log.extend(400);
    await filled();
    assert.deepEqual([...new Set(asked())], [400, 700, 600, 500]);
    assert.equal(log.verdict('seen', 600).kind, 'seen');
    assert.equal(log.verdict('seen', 500).kind, 'seen', 'that is certain, whatever else is lost');
    assert.deepEqual(log.verdict('other', 500), expired);
    for (const since of [600, 700, 800]) assert.deepEqual(log.verdict('other', since), { kind: 'never' });
  });

  for (const { count, title } of [
    { count: 100, title: 'exactly among 100' },
    { count: 900, title: 'on the safe side among 900' },
  ]) {
    test(`is searched with at most eight versions, ${title}`, async () => {
      const oldest = 37;
      const { rig, log, needed, asked, filled } = await scene({ oldest });
      await using _rig = rig;
      for (let version = 1; version <= count; version++) needed.push(version);
      log.extend(1);
      await filled();
      const versions = new Set(asked());
      assert.ok(versions.size <= 8, `${versions.size} versions`);
      assert.ok(asked().length <= 3 * 8, `${asked().length} requests`);
      const firstKnown = needed.find((since) => log.verdict('any', since).kind === 'never') ?? Infinity;
      assert.ok(firstKnown >= oldest, `${firstKnown} counts as known`);
      if (count === 100) assert.equal(firstKnown, oldest);
      else assert.ok(firstKnown <= oldest + 8, `${firstKnown} is the first that is known`);
      assert.deepEqual(log.verdict('any', firstKnown - 1), expired);
    });
  }
});

describe('what happens until now', () => {
  test('is there already where the log has reached it: nothing is requested', async () => {
    const { rig, reader } = await scene();
    await using _rig = rig;
    for (const version of [999, 1000]) await reader.reach(version, new AbortController().signal);
    assert.deepEqual(rig.server.requests, []);
  });

  test('is read once for all who wait, up to the latest version', async () => {
    const { rig, server, log, reader, asked } = await scene();
    await using _rig = rig;
    Object.assign(server, { version: 1030, changes: [{ version: 1010, name: 'new' }] });
    const { signal } = new AbortController();
    await Promise.all([1010, 1030, 1020].map((version) => reader.reach(version, signal)));
    assert.deepEqual(asked(), [1000]);
    assert.equal(log.reached, 1030);
    assert.equal(log.verdict('new', 1000).kind, 'seen');
    assert.deepEqual(log.verdict('new', 1010), { kind: 'never' });
  });

  test('is read on for who comes while others wait', async () => {
    const { rig, server, reader, asked, watch } = await scene();
    await using _rig = rig;
    const { signal } = new AbortController();
    const opened = Promise.withResolvers<() => void>();
    server.version = 1010;
    rig.server.next({}, (reply, request) => opened.resolve(() => watch(reply, request)));
    const first = reader.reach(1010, signal);
    const answer = await opened.promise;
    const second = reader.reach(1020, signal);
    answer();
    await first;
    server.version = 1020;
    await rig.clock.until(() => asked().length >= 2);
    await second;
    assert.equal(asked()[1], 1010);
  });

  test('is asked for on a new connection where the server is silent', async () => {
    const { rig, server, reader, asked, ports, watch } = await scene({ version: 1010 });
    await using _rig = rig;
    server.hasBookmarks = false;
    rig.server.next({}, watch, (reply, request) => {
      server.hasBookmarks = true;
      watch(reply, request);
    });
    const reached = reader.reach(1010, new AbortController().signal);
    await rig.clock.until(() => asked().length === 2);
    await reached;
    assert.equal(ports(), 2);
  });

  test('is waited for no longer than 15 s', async () => {
    const { rig, log, reader } = await scene({ version: 1010, hasBookmarks: false });
    await using _rig = rig;
    const reached = reader.reach(1010, new AbortController().signal);
    const settled = reached.then(
      () => 'reached',
      (error: unknown) => error,
    );
    let isOver = false;
    void settled.then(() => (isOver = true));
    assert.equal(await rig.clock.until(() => isOver), 15_000);
    const error = await settled;
    assert.ok(error instanceof NotReachedError);
    assert.match(error.message, /within 15000 ms/);
    assert.equal(log.reached, 1000);
    await rig.clock.advance(1);
    assert.equal(rig.clock.pending, 0);
  });

  test('is not read where versions are no numbers', async () => {
    const { rig, reader } = await scene();
    await using _rig = rig;
    await assert.rejects(reader.reach(NaN, new AbortController().signal), NotReachedError);
    assert.deepEqual(rig.server.requests, []);
  });

  test('is not reached where the server has forgotten where the log ends', async () => {
    const { rig, reader } = await scene({ oldest: 1005, version: 1010 });
    await using _rig = rig;
    const reached = reader.reach(1010, new AbortController().signal);
    await assert.rejects(reached, (error) => error instanceof NotReachedError && error.cause !== undefined);
  });

  test('ends for one who waits with the reason of its signal, and goes on for the others', async () => {
    const { rig, server, reader, watch } = await scene();
    await using _rig = rig;
    server.version = 1010;
    const opened = Promise.withResolvers<() => void>();
    rig.server.next({}, (reply, request) => opened.resolve(() => watch(reply, request)));
    const one = new AbortController();
    const reason = new Error('not needed any more');
    const given = reader.reach(1010, one.signal);
    const other = reader.reach(1010, new AbortController().signal);
    given.catch(() => undefined);
    const answer = await opened.promise;
    one.abort(reason);
    await assert.rejects(given, (error) => error === reason);
    answer();
    await other;
  });

  test('ends with the reason of the process when that ends', async () => {
    const { rig, reader, process } = await scene();
    await using _rig = rig;
    const opened = Promise.withResolvers<ScriptedReply>();
    rig.server.next({}, (reply) => opened.resolve(reply.open()));
    const reached = reader.reach(1010, new AbortController().signal);
    reached.catch(() => undefined);
    await opened.promise;
    const reason = new Error('the end');
    process.abort(reason);
    await assert.rejects(reached, (error) => error === reason);
  });
});
