import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  AlreadyExistsError,
  ApiError,
  ConflictError,
  ForbiddenError,
  NotFoundError,
  TransportError,
  UnauthorizedError,
} from '../../../../src/kube/client/api-error.ts';
import { KubeClient } from '../../../../src/kube/client/kube-client.ts';
import type { RequestCredentials } from '../../../../src/kube/credentials/credentials.ts';
import { markReduced } from '../../../../src/kube/kube-object.ts';
import { TokenBucket } from '../../../../src/kube/client/token-bucket.ts';
import type { Answer, ScriptedReply } from '../../../support/fakes/scripted-server.ts';
import type { Transport } from '../../../../src/kube/client/transport.ts';
import { configMap, configMaps, listOf, lists, nothing, quiet, Rig, watches } from '../rig.ts';

const name = { namespace: 'ns', name: 'a' };
const ok: Answer = (reply) => reply.json(200, configMap('a', 7));
const busy =
  (headers: Record<string, string>, code = 429): Answer =>
  (reply) =>
    reply.status(code, code === 429 ? 'TooManyRequests' : 'ServiceUnavailable', { headers });

/** The outcome of a promise that may still be open. */
function outcome(promise: Promise<unknown>): { done: boolean; error: unknown; value: unknown } {
  const result: ReturnType<typeof outcome> = { done: false, error: undefined, value: undefined };
  promise.then(
    (value) => Object.assign(result, { done: true, value }),
    (error: unknown) => Object.assign(result, { done: true, error }),
  );
  return result;
}

describe('retries', () => {
  test('a POST that is told to come back in two seconds does, and creates one object', async () => {
    await using rig = await Rig.start();
    const later = busy({ 'retry-after': '2' });
    rig.server.next({ method: 'POST' }, later, later, later, (reply) => reply.json(201, configMap('a', 7)));
    const created = outcome(rig.client.create(configMaps, configMap('a', 0)));
    await rig.clock.until(() => created.done);
    assert.equal((created.value as { metadata: { resourceVersion: string } }).metadata.resourceVersion, '7');
    assert.deepEqual(rig.gapsMs({}), [2000, 2000, 2000]);
  });

  for (const { title, code, headers } of [
    { title: 'a 503 without Retry-After', code: 503, headers: {} },
    { title: 'a 429 without Retry-After', code: 429, headers: {} },
    {
      title: 'a 503 with a date to come back at',
      code: 503,
      headers: { 'retry-after': 'Wed, 21 Oct 2026 07:28:00 GMT' },
    },
    { title: 'a 409 with Retry-After', code: 409, headers: { 'retry-after': '1' } },
  ]) {
    test(`${title} is given back at once`, async () => {
      await using rig = await Rig.start();
      rig.server.next({}, (reply) => reply.status(code, 'Whatever', { headers }), ok);
      await assert.rejects(rig.client.create(configMaps, configMap('a', 0)), { code });
      assert.equal(rig.server.requests.length, 1);
    });
  }

  test('a 503 with Retry-After is sent again, whatever the method', async () => {
    await using rig = await Rig.start();
    for (const call of [
      () => rig.client.get(configMaps, name),
      () => rig.client.update(configMaps, configMap('a', 1)),
      () => rig.client.patch(configMaps, name, { type: 'merge', body: {} }),
      () => rig.client.delete(configMaps, name),
    ]) {
      rig.server.next({}, busy({ 'retry-after': '3' }, 503), ok);
      const before = rig.server.requests.length;
      const sent = outcome(call());
      const waitedMs = await rig.clock.until(() => sent.done);
      assert.deepEqual([sent.error, waitedMs, rig.server.requests.length - before], [undefined, 3000, 2]);
    }
  });

  test('a POST is not sent again after a 5xx, after which it may have been carried out', async () => {
    await using rig = await Rig.start();
    rig.server.next({}, busy({ 'retry-after': '1' }, 504), ok);
    await assert.rejects(rig.client.create(configMaps, configMap('a', 1)), { code: 504 });
    assert.equal(rig.server.requests.length, 1);
  });

  test('an answer that asks for hours is followed by another try after a minute', async () => {
    await using rig = await Rig.start();
    rig.server.next({}, busy({ 'retry-after': '86400' }, 503), ok);
    const sent = outcome(rig.client.update(configMaps, configMap('a', 1)));
    assert.equal(await rig.clock.until(() => sent.done), 60_000);
    assert.equal(sent.error, undefined);
  });

  for (const { title, call } of [
    { title: 'PUT', call: (rig: Rig) => rig.client.update(configMaps, configMap('a', 1)) },
    { title: 'POST', call: (rig: Rig) => rig.client.create(configMaps, configMap('a', 1)) },
    { title: 'PATCH', call: (rig: Rig) => rig.client.patch(configMaps, name, { type: 'merge', body: {} }) },
    { title: 'DELETE', call: (rig: Rig) => rig.client.delete(configMaps, name) },
  ]) {
    test(`a ${title} whose connection is reset is not sent again`, async () => {
      await using rig = await Rig.start();
      rig.server.otherwise((reply) => reply.reset());
      await assert.rejects(call(rig), (error) => error instanceof TransportError && error.code !== 'TIMEOUT');
      await rig.clock.advance(10_000);
      assert.equal(rig.server.requests.length, 1);
    });
  }

  for (const { title, broken } of [
    { title: 'reset', broken: (reply: ScriptedReply) => reply.reset() },
    { title: 'closed before the answer', broken: (reply: ScriptedReply) => reply.cut() },
    { title: 'cut inside the answer', broken: (reply: ScriptedReply) => reply.open().write('{"kind":').cut() },
    {
      title: 'cut inside a compressed answer',
      broken: (reply: ScriptedReply) => reply.open({ gzip: true }).write('{"kind":').cut(),
    },
  ]) {
    test(`a GET whose connection is ${title} is sent again after a second`, async () => {
      await using rig = await Rig.start();
      rig.server.next({}, broken, ok);
      const got = outcome(rig.client.get(configMaps, name));
      await rig.clock.until(() => got.done || rig.server.requests.length === 2);
      assert.equal(got.error, undefined);
      await rig.clock.until(() => got.done);
      assert.deepEqual(rig.gapsMs({}), [1000]);
      assert.equal(got.error, undefined);
    });
  }

  test('a GET to a server that is not there fails at once', async () => {
    await using rig = await Rig.start();
    await rig.server.down();
    await assert.rejects(rig.client.get(configMaps, name), { name: 'TransportError', code: 'ECONNREFUSED' });
  });

  test('after eleven answers of 429 the twelfth request is not made', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise(busy({ 'retry-after': '1' }));
    const got = outcome(rig.client.get(configMaps, name));
    await rig.clock.until(() => got.done);
    assert.equal(rig.server.requests.length, 11);
    assert.equal((got.error as ApiError).code, 429);
  });

  test('a request without an answer ends after its time, and a write is not sent again', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise(nothing);
    const sent = outcome(rig.client.update(configMaps, configMap('a', 1)));
    const waitedMs = await rig.clock.until(() => sent.done);
    assert.equal(waitedMs, 30_000);
    assert.equal((sent.error as TransportError).code, 'TIMEOUT');
    assert.equal(rig.server.requests.length, 1);
  });

  test('a 401 leads to one renewal of the credentials and one more try', async () => {
    await using rig = await Rig.start();
    const no: Answer = (reply) => reply.status(401, 'Unauthorized');
    rig.server.next({}, no, ok);
    await rig.client.update(configMaps, configMap('a', 1));
    assert.equal(rig.server.requests.length, 2);
    rig.server.otherwise(no);
    await assert.rejects(rig.client.update(configMaps, configMap('a', 1)), UnauthorizedError);
    assert.equal(rig.server.requests.length, 4);
  });
});

describe('answers', () => {
  const cases = [
    { code: 404, reason: 'NotFound', ErrorClass: NotFoundError },
    { code: 409, reason: 'Conflict', ErrorClass: ConflictError },
    { code: 409, reason: 'AlreadyExists', ErrorClass: AlreadyExistsError },
    { code: 403, reason: 'Forbidden', ErrorClass: ForbiddenError },
  ];
  for (const { code, reason, ErrorClass } of cases) {
    test(`a Status with ${reason} becomes its own error, with the server's words`, async () => {
      await using rig = await Rig.start();
      rig.server.otherwise((reply) => reply.status(code, reason, { message: `about ${reason}` }));
      await assert.rejects(rig.client.get(configMaps, name), (error: unknown) => {
        assert.ok(error instanceof ErrorClass);
        assert.deepEqual([error.message, error.code, error.request.verb], [`about ${reason}`, code, 'get']);
        return true;
      });
    });
  }

  test('a bare 409 means another version, but to a POST that the name is taken', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise((reply) => reply.text(409, 'no'));
    await assert.rejects(rig.client.update(configMaps, configMap('a', 1)), ConflictError);
    await assert.rejects(rig.client.create(configMaps, configMap('a', 1)), AlreadyExistsError);
  });

  test('a failure behind a 200 is a failure', async () => {
    await using rig = await Rig.start();
    rig.server.next(
      {},
      (reply) =>
        reply.json(200, { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 }),
      (reply) => reply.json(200, { kind: 'Status', apiVersion: 'v1', status: 'Success' }),
    );
    await assert.rejects(rig.client.delete(configMaps, name), NotFoundError);
    await rig.client.delete(configMaps, name);
  });

  test('an answer that is no JSON is an error of the connection, not of the object', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise((reply) => reply.text(200, '<html>a proxy</html>'));
    await assert.rejects(rig.client.get(configMaps, name), { name: 'TransportError', code: 'BAD_JSON' });
  });

  for (const [what, body] of [
    ['no body', ''],
    ['null', 'null'],
    ['a text', '"ok"'],
  ] as const) {
    test(`a success with ${what} is an error where an object is expected`, async () => {
      await using rig = await Rig.start();
      const failure = { name: 'TransportError', code: 'BAD_JSON', sent: true };
      rig.server.next({}, (reply) => reply.text(201, body));
      await assert.rejects(rig.client.create(configMaps, configMap('a', 1)), failure);
      rig.server.next({}, (reply) => reply.text(200, body));
      await assert.rejects(rig.client.get(configMaps, { namespace: 'ns', name: 'a' }), failure);
    });
  }

  test('a deletion needs no body', async () => {
    await using rig = await Rig.start();
    rig.server.next({}, (reply) => reply.text(200, ''));
    await rig.client.delete(configMaps, { namespace: 'ns', name: 'a' });
  });

  test('a success that is not the list that was asked for is an error: it says nothing about what exists', async () => {
    await using rig = await Rig.start();
    for (const answer of [{}, { kind: 'Table', rows: [] }, { kind: 'Status', status: 'Success' }]) {
      rig.server.next({}, (reply) => reply.json(200, answer));
      await assert.rejects(rig.client.list(configMaps), /expected a ConfigMapList/);
    }
  });

  test('compressed answers are read, failures and lists too', async () => {
    await using rig = await Rig.start();
    rig.server.next(
      {},
      (reply) => reply.json(200, configMap('a', 7), { gzip: true }),
      (reply) => reply.json(404, { kind: 'Status', apiVersion: 'v1', reason: 'NotFound', code: 404 }, { gzip: true }),
      (reply) => reply.json(200, listOf([configMap('a', 1)], 10), { gzip: true }),
    );
    rig.server.otherwise(quiet);
    assert.equal((await rig.client.get(configMaps, name)).metadata.resourceVersion, '7');
    await assert.rejects(rig.client.get(configMaps, name), NotFoundError);
    const informer = rig.informer();
    await informer.synced;
    assert.equal(informer.size, 1);
  });

  test('an answer that claims to be compressed and is not is an error, and the process lives', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise((reply) => reply.text(200, 'not gzip', { headers: { 'content-encoding': 'gzip' } }));
    await assert.rejects(rig.client.update(configMaps, configMap('a', 1)), { name: 'TransportError' });
  });

  test('each warning of the server is logged once', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise((reply) =>
      reply.json(200, configMap('a', 7), { headers: { warning: '299 - "v1 ConfigMap is old"' } }),
    );
    await rig.client.get(configMaps, name);
    await rig.client.get(configMaps, name);
    assert.deepEqual(
      rig.log.filter(({ level }) => level === 'warn').map(({ fields }) => fields),
      [{ warning: 'v1 ConfigMap is old' }],
    );
  });

  test('fields that nobody knows survive a read and a write', async () => {
    await using rig = await Rig.start();
    const object = { ...configMap('a', 7), future: { list: [1, null, { x: 'é' }] } };
    rig.server.otherwise((reply, request) => reply.json(200, request.body ?? object));
    const read = await rig.client.get(configMaps, name);
    await rig.client.update(configMaps, read);
    assert.deepEqual(rig.server.requests[1]?.body, object);
  });
});

describe('requests', () => {
  test('a field manager that the server would refuse is refused before any request', async () => {
    await using rig = await Rig.start();
    for (const fieldManager of ['', 'x'.repeat(129), 'a\nb']) {
      assert.throws(() => new KubeClient({ transport: rig.transport, fieldManager }), {
        name: 'TypeError',
        message: /^fieldManager must have 1 to 128 printable characters, got "/,
      });
    }
    new KubeClient({ transport: rig.transport, fieldManager: 'NFS-Verwalter (Köln)'.padEnd(128, '.') });
  });

  test('say who writes, how a patch is to be read, and what must still be so for a deletion', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise(ok);
    await rig.client.create(configMaps, configMap('a', 0));
    await rig.client.update(configMaps, configMap('a', 1), { subresource: 'status' });
    for (const type of ['merge', 'strategic', 'json'] as const)
      await rig.client.patch(configMaps, name, { type, body: [] });
    await rig.client.delete(configMaps, name, { preconditions: { uid: 'u1' } });
    const path = '/api/v1/namespaces/ns/configmaps';
    assert.deepEqual(
      rig.server.requests.map(({ method, path, query, headers }) => [
        method,
        `${path}?${query.toString()}`,
        headers['content-type'],
      ]),
      [
        ['POST', `${path}?fieldManager=test`, 'application/json'],
        ['PUT', `${path}/a/status?fieldManager=test`, 'application/json'],
        ['PATCH', `${path}/a?fieldManager=test`, 'application/merge-patch+json'],
        ['PATCH', `${path}/a?fieldManager=test`, 'application/strategic-merge-patch+json'],
        ['PATCH', `${path}/a?fieldManager=test`, 'application/json-patch+json'],
        ['DELETE', `${path}/a?`, 'application/json'],
      ],
    );
    assert.deepEqual(rig.server.requests.at(-1)?.body, {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      preconditions: { uid: 'u1' },
    });
    assert.ok(rig.server.requests.every(({ headers }) => headers['user-agent'] === 'test'));
  });

  test('a request that cannot be right is not sent', async () => {
    await using rig = await Rig.start();
    const nowhere = { ...configMap('a', 1), metadata: { name: 'a' } };
    assert.throws(() => rig.client.create(configMaps, nowhere), TypeError);
    assert.throws(() => rig.client.get(configMaps, { name: 'a' }), TypeError);
    assert.throws(() => rig.client.get(configMaps, { namespace: 'ns', name: '..' }), TypeError);
    assert.equal(rig.server.requests.length, 0);
  });

  test('an object that lost parts on its way into the cache is not sent back, nor is a copy of it', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise(ok);
    const whole = configMap('a', 1, { x: '1' });
    const reduced = markReduced({ metadata: { ...whole.metadata } });
    const copy = { ...reduced, metadata: { ...reduced.metadata, finalizers: [] } };
    for (const object of [reduced, copy]) assert.throws(() => rig.client.update(configMaps, object), TypeError);
    assert.equal(rig.server.requests.length, 0);
    await rig.client.update(configMaps, whole);
    await rig.client.patch(configMaps, reduced.metadata, { type: 'merge', body: { metadata: { finalizers: [] } } });
    assert.deepEqual(
      rig.server.requests.map(({ method }) => method),
      ['PUT', 'PATCH'],
    );
  });

  test('each attempt is observed, with its code or the lack of one', async () => {
    await using rig = await Rig.start();
    rig.server.next({}, busy({ 'retry-after': '1' }), (reply) => reply.reset(), ok);
    const got = outcome(rig.client.get(configMaps, name));
    await rig.clock.until(() => got.done);
    assert.deepEqual(
      rig.observations.map(({ code, verb, resource, method }) => [code, verb, resource, method]),
      [
        ['429', 'get', 'configmaps', 'GET'],
        ['<error>', 'get', 'configmaps', 'GET'],
        ['200', 'get', 'configmaps', 'GET'],
      ],
    );
  });

  test('the rate limit holds back single requests and lists, but no watch', async () => {
    await using rig = await Rig.start({ rateLimit: (clock) => new TokenBucket({ qps: 1, burst: 1, clock }) });
    rig.server.next({ method: 'PUT' }, ok);
    rig.server.next(lists, (reply) => reply.json(200, listOf([], 10)));
    rig.server.otherwise(quiet);
    await rig.client.update(configMaps, configMap('a', 1));
    rig.informer();
    await rig.clock.until(() => rig.server.matching(watches).length === 1);
    assert.deepEqual(rig.gapsMs({}), [1000, 0]);
    assert.deepEqual(
      rig.log.filter(({ message }) => message.includes('throttling')).map(({ level, fields }) => [level, fields]),
      [['debug', { delayMs: 1000, verb: 'GET', path: '/api/v1/configmaps' }]],
    );
  });

  test('long waits for the rate limit are logged once in ten seconds, the others at a higher verbosity', async () => {
    await using rig = await Rig.start({ rateLimit: (clock) => new TokenBucket({ qps: 0.5, burst: 1, clock }) });
    rig.server.otherwise(ok);
    const got = outcome(Promise.all(Array.from({ length: 8 }, () => rig.client.get(configMaps, name))));
    await rig.clock.until(() => got.done);
    const told = rig.log.filter(({ message }) => message.includes('throttling')).map(({ level }) => level);
    assert.deepEqual(told, ['info', 'debug', 'debug', 'debug', 'debug', 'info', 'debug']);
  });

  test('every retry takes a token too', async () => {
    await using rig = await Rig.start({ rateLimit: (clock) => new TokenBucket({ qps: 0.1, burst: 2, clock }) });
    rig.server.next({}, busy({ 'retry-after': '1' }), busy({ 'retry-after': '1' }), ok);
    const got = outcome(rig.client.get(configMaps, name));
    await rig.clock.until(() => got.done);
    assert.deepEqual(rig.gapsMs({}), [1000, 9000]);
  });

  test('a write is sent at once while 100 watches are open', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise((reply, request) => {
      if (request.method === 'PUT') reply.json(200, configMap('a', 7));
      else if (request.query.has('watch')) reply.open();
      else reply.json(200, listOf([], 10));
    });
    for (let i = 0; i < 100; i++) rig.informer();
    await rig.server.requested(100, watches);
    await rig.client.update(configMaps, configMap('a', 1));
    assert.equal(rig.server.matching({ method: 'PUT' })[0]?.atMs, 0, 'no time has passed');
  });
});

describe('connections', () => {
  /** Creates this many objects at once. */
  function createMany(transport: Transport, count: number): ReturnType<typeof outcome> {
    const client = new KubeClient({ transport, fieldManager: 'test' });
    const objects = Array.from({ length: count }, (_, i) => configMap(`c${i}`, 0));
    return outcome(Promise.all(objects.map((object) => client.create(configMaps, object))));
  }

  test('the wait for a connection takes nothing from the time for the answer', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise((reply) => void rig.clock.after(1000, () => reply.json(201, configMap('a', 7))));
    await using transport = rig.newTransport({ maxConnections: 16, requestTimeoutMs: 3000 });
    const created = createMany(transport, 100);
    const tookMs = await rig.clock.until(() => created.done);
    assert.deepEqual([created.error, tookMs, rig.server.requests.length], [undefined, 7000, 100]);
  });

  test('a write that got no connection for a minute fails as never sent', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise(nothing);
    await using transport = rig.newTransport({ maxConnections: 1, requestTimeoutMs: 90_000 });
    const client = new KubeClient({ transport, fieldManager: 'test' });
    const sent = outcome(client.update(configMaps, configMap('a', 1)));
    await rig.server.requested(1);
    const waiting = outcome(client.update(configMaps, configMap('b', 1)));
    const waitedMs = await rig.clock.until(() => waiting.done);
    const never = waiting.error as TransportError;
    assert.deepEqual([waitedMs, never.code, never.sent], [60_000, 'TIMEOUT', false]);
    assert.match(never.message, /^PUT .*\/b: no connection was free within 60000 ms, the request was not sent$/);
    await rig.clock.until(() => sent.done);
    assert.deepEqual([(sent.error as TransportError).code, (sent.error as TransportError).sent], ['TIMEOUT', true]);
    assert.equal(rig.server.requests.length, 1);
  });

  test('deletions with a precondition leave their connection open for the next one', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise((reply) => reply.json(200, { kind: 'Status', status: 'Success' }));
    for (let n = 0; n < 10; n++) await rig.client.delete(configMaps, name, { preconditions: { uid: `u${n}` } });
    const { requests } = rig.server;
    const connections = new Set(requests.map(({ port }) => port)).size;
    assert.equal(requests.length, 10);
    assert.ok(connections <= 2, `${connections} connections`); // a response may end just after the next request began
  });

  test('a refused connection means never sent, one that breaks under the request does not', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise((reply) => reply.reset());
    await assert.rejects(rig.client.update(configMaps, configMap('a', 1)), { name: 'TransportError', sent: true });
    await rig.server.down();
    await assert.rejects(rig.client.update(configMaps, configMap('a', 1)), { code: 'ECONNREFUSED', sent: false });
  });

  test('certificates that change with each attempt do not have it sent again without end', async () => {
    await using rig = await Rig.start();
    await rig.server.down();
    let tls = {};
    let rechecks = 0;
    const credentials: RequestCredentials = {
      serverUrl: new URL(rig.server.url),
      proxyUrl: undefined,
      disableCompression: false,
      generation: 0,
      headers: () => ({}),
      tls: () => tls,
      recheckTls: () => {
        assert.ok(++rechecks < 100, 'it goes on');
        tls = {};
      },
      renew: () => undefined,
    };
    await using transport = rig.newTransport({ credentials });
    const client = new KubeClient({ transport, fieldManager: 'test' });
    await assert.rejects(client.update(configMaps, configMap('a', 1)), { code: 'ECONNREFUSED', sent: false });
  });
});

describe('stopping', () => {
  /** Runs an informer into a state and stops it there. No time passes meanwhile, and no answer comes: it waits for neither. */
  async function stopped(rig: Rig, reach: () => Promise<unknown>): Promise<void> {
    const stop = new AbortController();
    let ended = false;
    const run = rig
      .newInformer()
      .run(stop.signal)
      .then(() => (ended = true));
    await reach();
    assert.equal(ended, false);
    stop.abort(new Error('stopping'));
    await run;
  }

  const states: { state: string; reach: (rig: Rig) => Promise<unknown>; rateLimit?: boolean }[] = [
    {
      state: 'a pause',
      reach: (rig) => {
        rig.server.otherwise((reply) => reply.status(500, 'InternalError'));
        return rig.clock.until(() => rig.log.length > 0);
      },
    },
    {
      state: 'a list that has no answer',
      reach: (rig) => {
        rig.server.otherwise(nothing);
        return rig.server.requested(1);
      },
    },
    {
      state: 'a list half way',
      reach: async (rig) => {
        rig.server.otherwise((reply) => void reply.open().write('{"items":['));
        await rig.server.requested(1);
        await rig.clock.settle();
      },
    },
    {
      state: 'a watch',
      reach: async (rig) => {
        rig.server.next(lists, (reply) => reply.json(200, listOf([configMap('a', 1)], 10)));
        rig.server.otherwise(quiet);
        await rig.server.requested(1, watches);
        await rig.clock.settle();
      },
    },
    {
      state: 'the wait after a 429 that asks for a minute',
      reach: (rig) => {
        rig.server.otherwise(busy({ 'retry-after': '60' }));
        return rig.server.requested(1).then(() => rig.clock.settle());
      },
    },
    {
      state: 'the wait for the rate limit',
      rateLimit: true,
      reach: async (rig) => {
        rig.server.otherwise((reply) => reply.status(404, 'NotFound'));
        await rig.clock.until(() => rig.server.requests.length === 1);
        await rig.clock.advance(800);
      },
    },
  ];
  for (const { state, reach, rateLimit } of states) {
    test(`an informer in ${state} ends at once and leaves no timer`, async () => {
      await using rig = await Rig.start(
        rateLimit === true ? { rateLimit: (clock) => new TokenBucket({ qps: 0.01, burst: 1, clock }) } : {},
      );
      await stopped(rig, () => reach(rig));
      assert.equal(rig.clock.pending, 0);
    });
  }

  test('a single request ends at once with the reason of its signal, and leaves no timer', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise(nothing);
    const stop = new AbortController();
    const request = rig.client.get(configMaps, name, { signal: stop.signal });
    await rig.server.requested(1);
    const reason = new Error('enough');
    stop.abort(reason);
    await assert.rejects(request, reason);
    assert.equal(rig.clock.pending, 0);
  });

  test('a fence aborts what is under way and lets nothing out any more', async () => {
    await using rig = await Rig.start({ rateLimit: (clock) => new TokenBucket({ qps: 1, burst: 1, clock }) });
    rig.server.otherwise(nothing);
    const underWay = rig.client.update(configMaps, configMap('a', 1));
    const throttled = rig.client.update(configMaps, configMap('b', 1));
    await rig.server.requested(1);
    const reason = new Error('the lease is lost');
    rig.transport.fence(reason);
    await Promise.all([assert.rejects(underWay, reason), assert.rejects(throttled, reason)]);
    await assert.rejects(rig.client.get(configMaps, name), reason);
    await rig.clock.advance(2000);
    assert.equal(rig.server.requests.length, 1);
  });

  /** A transport whose credentials come when the test says so, as those of a slow plugin. */
  function slowlyKnown(rig: Rig) {
    const known = Promise.withResolvers<Record<string, string>>();
    const tls = {};
    const credentials: RequestCredentials = {
      serverUrl: new URL(rig.server.url),
      proxyUrl: undefined,
      disableCompression: false,
      generation: 0,
      headers: () => known.promise,
      tls: () => tls,
      recheckTls: () => undefined,
      renew: () => undefined,
    };
    const transport = rig.newTransport({ credentials });
    return { transport, client: new KubeClient({ transport, fieldManager: 'test' }), known };
  }

  test('a single request that waits for its credentials ends at once with its signal', async () => {
    await using rig = await Rig.start();
    const { transport, client } = slowlyKnown(rig);
    await using _closed = transport;
    const stop = new AbortController();
    const got = outcome(client.get(configMaps, name, { signal: stop.signal }));
    await rig.clock.settle();
    const reason = new Error('enough');
    stop.abort(reason);
    await rig.clock.settle();
    assert.equal(got.error, reason);
  });

  for (const { state, reach } of states.filter((each) => each.rateLimit !== true)) {
    test(`a fence in ${state} is no failure of the informer`, async () => {
      await using rig = await Rig.start();
      const informer = rig.newInformer();
      const stop = new AbortController();
      const run = informer.run(stop.signal);
      await reach(rig);
      const logged = rig.log.length;
      rig.transport.fence(new Error('the lease is lost'));
      await rig.clock.advance(60_000);
      assert.deepEqual(rig.log.slice(logged), []);
      stop.abort(new Error('stopping'));
      await run;
    });
  }

  test('a fence keeps in what waits for its credentials', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise(ok);
    const { transport, client, known } = slowlyKnown(rig);
    await using _closed = transport;
    const got = outcome(client.update(configMaps, configMap('a', 1)));
    await rig.clock.settle();
    const reason = new Error('the lease is lost');
    transport.fence(reason);
    known.resolve({});
    await rig.clock.settle();
    assert.deepEqual([got.error, rig.server.requests.length], [reason, 0]);
  });

  test('closing the transport ends watches', async () => {
    await using rig = await Rig.start();
    let open: ScriptedReply | undefined;
    rig.server.otherwise((reply) => void (open = reply.open()));
    const { body } = await rig.transport.stream({
      method: 'GET',
      path: '/api/v1/configmaps',
      info: { verb: 'watch', resource: configMaps },
      watch: true,
    });
    const reading = (async () => {
      for await (const _chunk of body) assert.fail('nothing was sent');
    })();
    const ended = assert.rejects(reading, /closed/);
    await rig.transport[Symbol.asyncDispose]();
    await ended;
    await open?.closed;
  });
});
