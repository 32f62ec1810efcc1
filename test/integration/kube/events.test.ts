import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CoreEvent } from '../../../src/kube/events/event-correlator.ts';
import { EventRecorder } from '../../../src/kube/events/event-recorder.ts';
import type { ObjectReference } from '../../../src/kube/kube-object.ts';
import { recordedLogger } from '../../support/fakes/recorded-logger.ts';
import type { Answer, ScriptedReply } from '../../support/fakes/scripted-server.ts';
import { nothing, Rig } from './rig.ts';

const claim = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  namespace: 'ns',
  name: 'data',
  uid: 'u1',
  resourceVersion: '42',
};
const collection = '/api/v1/namespaces/ns/events';

/** Takes events as the API server does: a PATCH answers with the whole, and what was deleted is not there. */
function storing(): { answer: Answer; stored: Map<string, CoreEvent> } {
  const stored = new Map<string, CoreEvent>();
  const answer: Answer = (reply, { method, path, body }) => {
    const name = path.slice(collection.length + 1);
    if (method === 'POST') {
      const event = body as CoreEvent;
      stored.set(event.metadata.name, event);
      reply.json(201, event);
      return;
    }
    const old = stored.get(name);
    if (old === undefined) {
      reply.status(404, 'NotFound');
      return;
    }
    const patch = body as Partial<CoreEvent>;
    const event = { ...old, ...patch, metadata: { ...old.metadata, ...patch.metadata } };
    stored.set(name, event);
    reply.json(200, event);
  };
  return { answer, stored };
}

function recorderOf(rig: Rig): EventRecorder {
  return new EventRecorder({
    client: rig.client,
    component: 'd.example.com_host_uuid',
    clock: rig.clock,
    logger: recordedLogger(rig.log),
    random: () => rig.random,
  });
}

function methods(rig: Rig): string[] {
  return rig.server.requests.map(({ method }) => method);
}

describe('EventRecorder', () => {
  test('an event says what happened, to which object, reported by whom and when', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise(storing().answer);
    await using recorder = recorderOf(rig);
    const message = `long, with % and é,\nand more lines ${'x'.repeat(3000)}`;
    recorder.event(claim, 'Warning', 'ProvisioningFailed', message);
    const [request] = await rig.server.requested(1);
    assert.equal(request?.path, collection);
    const { metadata, ...rest } = request.body as CoreEvent;
    const nanoseconds = BigInt(Date.UTC(2026, 0, 1)) * 1_000_000n;
    assert.deepEqual(metadata, { namespace: 'ns', name: `data.${nanoseconds.toString(16)}` });
    assert.deepEqual(rest, {
      apiVersion: 'v1',
      kind: 'Event',
      involvedObject: claim,
      type: 'Warning',
      reason: 'ProvisioningFailed',
      message,
      count: 1,
      firstTimestamp: '2026-01-01T00:00:00Z',
      lastTimestamp: '2026-01-01T00:00:00Z',
      source: { component: 'd.example.com_host_uuid' },
      reportingComponent: 'd.example.com_host_uuid',
      reportingInstance: '',
    });
  });

  test('cluster-scoped objects have their events in default; a name too long gives way to a UUID', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise((reply, { body }) => reply.json(201, body));
    await using recorder = recorderOf(rig);
    recorder.event({ kind: 'PersistentVolume', name: 'v'.repeat(250) }, 'Normal', 'X', 'm');
    recorder.event({ kind: 'PersistentVolume', name: 'Not_A_Dns_Name' }, 'Normal', 'X', 'm');
    const requests = await rig.server.requested(2);
    for (const { path, body } of requests) {
      assert.equal(path, '/api/v1/namespaces/default/events');
      assert.match(
        (body as CoreEvent).metadata.name,
        /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      );
    }
  });

  test('an event has the name of its object where its own has 253 characters, and no longer', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise((reply, { body }) => reply.json(201, body));
    await using recorder = recorderOf(rig);
    const suffixLength = '.'.length + 16; // nanoseconds since 1970 in hexadecimal
    const names = [253, 254].map((length) => 'v'.repeat(length - suffixLength));
    for (const name of names) recorder.event({ kind: 'PersistentVolume', name }, 'Normal', 'X', 'm');
    const requests = await rig.server.requested(2);
    const own = requests.map(({ body }) => (body as CoreEvent).metadata.name).filter((name) => name.startsWith('v'));
    assert.deepEqual(
      own.map(({ length }) => length),
      [253],
    );
  });

  test('two recorders name their events about one object apart, also in the same millisecond', async () => {
    await using rig = await Rig.start();
    const { answer, stored } = storing();
    rig.server.otherwise(answer);
    for (const random of [0.25, 0.75]) {
      await using recorder = new EventRecorder({
        client: rig.client,
        component: `recorder ${random}`,
        clock: rig.clock, // stands still
        random: () => random,
      });
      recorder.event(claim, 'Normal', 'Provisioning', 'm');
    }
    assert.deepEqual(
      [...stored.values()].map(({ source }) => source.component),
      ['recorder 0.25', 'recorder 0.75'],
    );
  });

  test('an event that is to be recorded once has one name, whoever records it and when', async () => {
    await using rig = await Rig.start();
    const { answer, stored } = storing();
    rig.server.otherwise((reply, request) => {
      const { name } = (request.body as CoreEvent).metadata;
      if (stored.has(name)) reply.status(409, 'AlreadyExists');
      else answer(reply, request);
    });
    const tell = async (component: string, message: string, about: ObjectReference = claim): Promise<void> => {
      await using recorder = new EventRecorder({
        client: rig.client,
        component,
        clock: rig.clock,
        logger: recordedLogger(rig.log),
      });
      recorder.event(about, 'Normal', 'ProvisioningWaiting', message, { once: true });
    };
    await tell('one', 'for a class');
    await rig.clock.advance(60_000);
    await tell('two', 'for a class');
    await tell('two', 'for a node');
    await tell('two', 'for a class', { ...claim, uid: 'of-a-successor' });
    await tell('two', 'for a name', { kind: 'Node', namespace: 'ns' });
    assert.deepEqual(
      [...stored.values()].map(({ source, message }) => `${source.component}: ${message}`),
      ['one: for a class', 'two: for a node', 'two: for a class', 'two: for a name'],
    );
    assert.match([...stored.keys()].at(-1) ?? '', /^[0-9a-f]{32}$/, 'of an object without a name');
    assert.deepEqual(
      rig.log.filter(({ level }) => level === 'error'),
      [],
    );
  });

  test('five equal events are one POST and four PATCHes of count, time and message', async () => {
    await using rig = await Rig.start();
    const { answer, stored } = storing();
    rig.server.otherwise(answer);
    await using recorder = recorderOf(rig);
    for (let i = 0; i < 5; i++) {
      recorder.event(claim, 'Warning', 'ProvisioningFailed', 'no space');
      await rig.clock.advance(1000);
    }
    assert.deepEqual(methods(rig), ['POST', 'PATCH', 'PATCH', 'PATCH', 'PATCH']);
    const [event, ...others] = stored.values();
    assert.deepEqual([event?.count, event?.firstTimestamp, others.length], [5, '2026-01-01T00:00:00Z', 0]);
    const last = rig.server.requests.at(-1);
    assert.equal(last?.headers['content-type'], 'application/strategic-merge-patch+json');
    assert.deepEqual(last.body, { count: 5, lastTimestamp: '2026-01-01T00:00:04Z', message: 'no space' });
  });

  test('twelve different messages are nine events and one combined with count 3', async () => {
    await using rig = await Rig.start();
    const { answer, stored } = storing();
    rig.server.otherwise(answer);
    await using recorder = recorderOf(rig);
    for (let i = 0; i < 12; i++) recorder.event(claim, 'Warning', 'ProvisioningFailed', `error ${i}`);
    await rig.server.requested(12);
    await rig.clock.settle();
    assert.deepEqual(
      [...stored.values()].map(({ message, count }) => [message, count]),
      [...Array.from({ length: 9 }, (_, i) => [`error ${i}`, 1]), ['(combined from similar events): error 11', 3]],
    );
  });

  test('a combined event has the annotations of its newest one, also none', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise(storing().answer);
    await using recorder = recorderOf(rig);
    for (let i = 0; i < 11; i++) {
      recorder.event(claim, 'Warning', 'ProvisioningFailed', `error ${i}`, { annotations: { cause: `${i}` } });
    }
    recorder.event(claim, 'Warning', 'ProvisioningFailed', 'error 11');
    const requests = await rig.server.requested(12);
    assert.deepEqual(
      requests.slice(-3).map(({ body }) => (body as Partial<CoreEvent>).metadata?.annotations),
      [{ cause: '9' }, { cause: '10' }, null],
    );
  });

  test('of 40 equal events 25 are written, and the next after five minutes shows 41', async () => {
    await using rig = await Rig.start();
    const { answer, stored } = storing();
    rig.server.otherwise(answer);
    await using recorder = recorderOf(rig);
    for (let i = 0; i < 40; i++) recorder.event(claim, 'Warning', 'ProvisioningFailed', 'no space');
    await rig.server.requested(25);
    await rig.clock.advance(300_000);
    assert.equal(rig.server.requests.length, 25);
    recorder.event(claim, 'Warning', 'ProvisioningFailed', 'no space');
    await rig.server.requested(26);
    await rig.clock.settle();
    assert.deepEqual(
      [...stored.values()].map(({ count }) => count),
      [41],
    );
  });

  test('an event that the server no longer has is recreated under its name, and counts on', async () => {
    await using rig = await Rig.start();
    const { answer, stored } = storing();
    rig.server.otherwise(answer);
    await using recorder = recorderOf(rig);
    const again = async (requests: number): Promise<void> => {
      recorder.event(claim, 'Warning', 'ProvisioningFailed', 'no space');
      await rig.server.requested(requests);
      await rig.clock.settle();
    };
    await again(1);
    const [name] = stored.keys();
    stored.clear();
    await again(3);
    await again(4);
    assert.deepEqual(methods(rig), ['POST', 'PATCH', 'POST', 'PATCH']);
    assert.deepEqual(
      [...stored].map(([key, { count }]) => [key, count]),
      [[name, 3]],
    );
    assert.equal((rig.server.requests[2]?.body as CoreEvent).metadata.resourceVersion, undefined);
  });

  for (const { code, reason, level, details } of [
    { code: 403, reason: 'Forbidden', level: 'debug' },
    { code: 403, reason: 'Forbidden', details: { causes: [{ reason: 'NamespaceTerminating' }] }, level: 'trace' },
    { code: 409, reason: 'AlreadyExists', level: 'trace' },
    { code: 422, reason: 'Invalid', level: 'error' },
    { code: 500, reason: 'InternalError', level: 'error' },
  ]) {
    const cause = details === undefined ? '' : ' for its namespace';
    test(`an event answered ${code}${cause} is dropped without another try, and the next is sent`, async () => {
      await using rig = await Rig.start();
      rig.server.otherwise((reply) => reply.status(code, reason, details && { details }));
      await using recorder = recorderOf(rig);
      recorder.event(claim, 'Warning', 'ProvisioningFailed', 'first');
      recorder.event(claim, 'Warning', 'ProvisioningFailed', 'second');
      await rig.clock.advance(600_000);
      assert.deepEqual(
        rig.server.requests.map(({ body }) => (body as CoreEvent).message),
        ['first', 'second'],
      );
      const refused = rig.log.filter(({ message }) => message === 'The API server rejected an event');
      assert.deepEqual(
        refused.map((line) => line.level),
        [level, level],
      );
    });
  }

  test('over a broken connection an event is tried twelve times, ten seconds apart', async () => {
    await using rig = await Rig.start();
    rig.random = 0.3;
    rig.server.otherwise((reply) => reply.reset());
    await using recorder = recorderOf(rig);
    recorder.event(claim, 'Warning', 'ProvisioningFailed', 'no space');
    await rig.clock.until(() => rig.log.some(({ message }) => message === 'An event could not be sent'));
    assert.deepEqual(rig.gapsMs({}), [3000, ...Array.from({ length: 10 }, () => 10_000)]);
  });

  test('events that wait behind one that is retried keep their order', async () => {
    await using rig = await Rig.start();
    const { answer } = storing();
    rig.server.next({}, (reply) => reply.reset());
    rig.server.otherwise(answer);
    await using recorder = recorderOf(rig);
    for (const message of ['one', 'two', 'three']) recorder.event(claim, 'Normal', 'Provisioning', message);
    await rig.clock.until(() => rig.server.requests.length === 4);
    assert.deepEqual(
      rig.server.requests.map(({ body }) => (body as CoreEvent).message),
      ['one', 'one', 'two', 'three'],
    );
  });

  test('eight events are under way at most, and those about one object one after another', async () => {
    await using rig = await Rig.start();
    const held: { reply: ScriptedReply; message: string }[] = [];
    rig.server.otherwise((reply, { body }) => held.push({ reply, message: (body as CoreEvent).message }));
    const recorder = recorderOf(rig);
    const record = (uid: string, message: string): void =>
      recorder.event({ ...claim, uid }, 'Normal', 'Provisioning', message);
    record('u0', 'first of u0');
    record('u0', 'second of u0');
    for (let i = 1; i < 10; i++) record(`u${i}`, `first of u${i}`);
    await rig.server.requested(8);
    await rig.clock.settle();
    const firsts = Array.from({ length: 8 }, (_, i) => `first of u${i}`);
    assert.deepEqual(held.map(({ message }) => message).toSorted(), firsts);
    held.find(({ message }) => message === 'first of u3')?.reply.json(201, {});
    await rig.server.requested(9);
    assert.equal(held[8]?.message, 'first of u8', 'the second of u0 still waits');
    held.find(({ message }) => message === 'first of u0')?.reply.json(201, {});
    await rig.server.requested(10);
    assert.equal(held[9]?.message, 'second of u0');
    const closing = recorder[Symbol.asyncDispose]();
    await rig.clock.advance(5000);
    await closing;
  });

  test('what comes back for a new event is not read, and equal ones still count on', async () => {
    await using rig = await Rig.start();
    const { answer } = storing();
    rig.server.next({ method: 'POST' }, (reply) => reply.text(201, 'no JSON'));
    rig.server.otherwise(answer);
    await using recorder = recorderOf(rig);
    for (let i = 0; i < 2; i++) recorder.event(claim, 'Warning', 'ProvisioningFailed', 'no space');
    const [created, patched] = await rig.server.requested(2);
    const { name } = (created?.body as CoreEvent).metadata;
    assert.deepEqual([patched?.method, patched?.path], ['PATCH', `${collection}/${name}`]);
    assert.equal((patched?.body as CoreEvent).count, 2);
    assert.ok(!rig.log.some(({ level }) => level === 'error'));
  });

  test('at most ten thousand events wait; further ones are dropped, which is logged once a minute, and nobody is held up', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise(nothing);
    const recorder = recorderOf(rig);
    const dropped = (): unknown[] =>
      rig.log
        .filter(({ message }) => message === 'Event dropped, too many are waiting')
        .map(({ fields }) => (fields as { dropped?: number }).dropped);
    for (let i = 0; i < 10_001; i++) recorder.event(claim, 'Normal', 'Provisioning', `m${i}`);
    assert.deepEqual(dropped(), [], 'one is on its way, ten thousand wait');
    for (let i = 0; i < 10; i++) recorder.event(claim, 'Normal', 'Provisioning', `n${i}`);
    assert.deepEqual(dropped(), [1]);
    await rig.clock.advance(60_000);
    rig.server.otherwise(nothing);
    for (let i = 0; i < 10; i++) recorder.event(claim, 'Normal', 'Provisioning', `o${i}`);
    assert.equal(dropped().length, 2);
    const closing = recorder[Symbol.asyncDispose]();
    await rig.clock.advance(5000);
    await closing;
  });

  test('an event recorded in the very moment in which the last one is done is sent too', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise((reply) => reply.status(422, 'Invalid'));
    const logger = recordedLogger(rig.log);
    let told = 0;
    const tellNext = async (): Promise<void> => {
      // each time one promise later than the time before: one of them meets the moment
      for (let i = 0; i < told; i++) await Promise.resolve();
      recorder.event({ ...claim, uid: `u${told++}` }, 'Normal', 'Provisioning', 'm');
    };
    await using recorder = new EventRecorder({
      client: rig.client,
      component: 'd.example.com',
      clock: rig.clock,
      logger: { ...logger, error: () => void (told < 20 && tellNext()) }, // called when one was refused
    });
    await tellNext();
    await rig.clock.settle();
    await rig.clock.until(() => told === 20);
    await rig.server.requested(20);
    assert.equal(rig.server.requests.length, 20);
  });

  test('closing sends the events that wait and takes no more', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise(storing().answer);
    const recorder = recorderOf(rig);
    for (const message of ['one', 'two']) recorder.event(claim, 'Normal', 'Provisioning', message);
    await recorder[Symbol.asyncDispose]();
    recorder.event(claim, 'Normal', 'Provisioning', 'too late');
    await recorder[Symbol.asyncDispose]();
    await rig.clock.settle();
    assert.deepEqual(
      rig.server.requests.map(({ body }) => (body as CoreEvent).message),
      ['one', 'two'],
    );
    assert.ok(rig.log.some(({ level, message }) => level === 'error' && message === 'Event dropped, shutting down'));
  });

  test('closing gives up after five seconds', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise(nothing);
    const recorder = recorderOf(rig);
    recorder.event(claim, 'Normal', 'Provisioning', 'm');
    await rig.server.requested(1);
    let closed = false;
    void recorder[Symbol.asyncDispose]().then(() => (closed = true));
    assert.equal(await rig.clock.until(() => closed), 5000);
  });

  for (const { title, answer } of [
    { title: 'is on its way', answer: nothing },
    { title: 'waits to be tried again', answer: (reply: ScriptedReply) => reply.reset() },
  ]) {
    test(`a lost lease waits for no event, also while one ${title}`, async () => {
      await using rig = await Rig.start();
      rig.random = 0.5; // the pause before the second try is 5 s
      rig.server.otherwise(answer);
      const recorder = recorderOf(rig);
      for (const message of ['one', 'two']) recorder.event(claim, 'Normal', 'Provisioning', message);
      await rig.server.requested(1);
      await rig.clock.settle();
      rig.transport.fence(new Error('the lease is lost'));
      recorder.event(claim, 'Normal', 'LeaderElection', 'stopped leading');
      await rig.clock.settle(); // time enough to begin a pause before the next try
      let closed = false;
      void recorder[Symbol.asyncDispose]().then(() => (closed = true));
      assert.equal(await rig.clock.until(() => closed), 0);
      assert.equal(rig.clock.pending, 0);
      assert.equal(rig.server.requests.length, 1);
    });
  }

  test('closing tries once over a broken connection, no more', async () => {
    await using rig = await Rig.start();
    rig.server.otherwise((reply) => reply.reset());
    const recorder = recorderOf(rig);
    recorder.event(claim, 'Normal', 'Provisioning', 'm');
    await recorder[Symbol.asyncDispose]();
    assert.equal(rig.server.requests.length, 1);
    assert.equal(rig.clock.monotonicMs(), 0);
  });
});
