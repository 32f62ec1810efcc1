import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EventRecorder } from '../../../../src/kube/events/event-recorder.ts';
import { KubeClient } from '../../../../src/kube/client/kube-client.ts';
import { recordedLogger } from '../../../support/fakes/recorded-logger.ts';
import type { ScriptedReply } from '../../../support/fakes/scripted-server.ts';
import { configMap, configMaps, Rig } from '../rig.ts';

/** Responds to each request after this time, and knows how many were under way at once. */
function respondAfter(rig: Rig, ms: number): { most: number } {
  const seen = { most: 0 };
  let underWay = 0;
  rig.server.otherwise((reply) => {
    seen.most = Math.max(seen.most, ++underWay);
    void rig.clock.after(ms, () => {
      underWay--;
      reply.json(201, configMap('a', 7));
    });
  });
  return seen;
}

async function createMany(rig: Rig, count: number): Promise<number> {
  let done = false;
  const all = Promise.all(
    Array.from({ length: count }, (_, i) => rig.client.create(configMaps, configMap(`c${i}`, 0))),
  );
  all.then(
    () => (done = true),
    () => (done = true),
  );
  const tookMs = await rig.clock.until(() => done);
  await all;
  return tookMs;
}

/** Holds all responses until the test gives them. */
function hold(rig: Rig): (() => void)[] {
  const held: (() => void)[] = [];
  rig.server.otherwise((reply: ScriptedReply) => held.push(() => reply.json(201, configMap('a', 7))));
  return held;
}

function recorderOf(rig: Rig): EventRecorder {
  return new EventRecorder({
    client: rig.client,
    component: 'test',
    clock: rig.clock,
    logger: recordedLogger(rig.log),
  });
}

const events = { path: '/api/v1/namespaces/ns/events' };

describe('connections of single requests', () => {
  test('sixteen are enough for a hundred requests that are responded to quickly', async () => {
    await using rig = await Rig.start();
    const seen = respondAfter(rig, 20);
    const tookMs = await createMany(rig, 100);
    assert.deepEqual([seen.most, tookMs], [16, 140]);
  });

  test('requests that have waited for a quarter of a second get more, twice as many each time', async () => {
    await using rig = await Rig.start();
    const seen = respondAfter(rig, 2000);
    const tookMs = await createMany(rig, 100);
    assert.ok(seen.most > 64 && tookMs < 5000, `${seen.most} at once, ${tookMs} ms`); // with sixteen it takes 14 s
  });

  test('once they were not needed for ten seconds, there are sixteen again', async () => {
    await using rig = await Rig.start();
    const slow = respondAfter(rig, 2000);
    await createMany(rig, 100);
    const before = slow.most;
    await rig.clock.advance(10_001);
    const seen = respondAfter(rig, 20);
    await createMany(rig, 100);
    assert.ok(before > 64, String(before));
    assert.equal(seen.most, 16);
  });

  test('there are never fewer than the requests that are under way', async () => {
    await using rig = await Rig.start();
    const seen = respondAfter(rig, 12_000);
    const all = createMany(rig, 100);
    await rig.clock.until(() => seen.most > 64);
    await rig.clock.advance(10_500);
    const before = rig.server.requests.length;
    const one = rig.client.create(configMaps, configMap('one-more', 0));
    await rig.clock.settle();
    assert.equal(rig.server.requests.length, before + 1);
    await all;
    await rig.clock.advance(12_000);
    await one;
  });

  test('a write that has waited for its turn is checked again, and is not sent if that fails', async () => {
    await using rig = await Rig.start();
    const held = hold(rig);
    const sent = Array.from({ length: 16 }, (_, i) => rig.client.create(configMaps, configMap(`c${i}`, 0)));
    await rig.server.requested(16);
    let isOurs = true;
    const recheck = (): void => {
      if (!isOurs) throw new RangeError('another process has it now');
    };
    const kept = rig.client.create(configMaps, configMap('kept', 0), { recheck });
    const lost = rig.client.create(configMaps, configMap('lost', 0), { recheck });
    await rig.clock.settle();
    held.shift()?.();
    await rig.server.requested(17);
    isOurs = false;
    held.shift()?.();
    await assert.rejects(lost, { name: 'RangeError', message: 'another process has it now' });
    for (const respond of held) respond();
    await Promise.all([...sent, kept]);
    assert.equal(rig.server.requests.length, 17);
  });

  test('a request that is given up while it waits is never sent, and takes no place', async () => {
    await using rig = await Rig.start();
    const held = hold(rig);
    const sent = Array.from({ length: 16 }, (_, i) => rig.client.create(configMaps, configMap(`c${i}`, 0)));
    await rig.server.requested(16);
    const stop = new AbortController();
    const given = rig.client.create(configMaps, configMap('given-up', 0), { signal: stop.signal });
    const kept = rig.client.create(configMaps, configMap('kept', 0));
    await rig.clock.settle();
    stop.abort(new Error('no longer wanted'));
    await assert.rejects(given, /no longer wanted/);
    held.shift()?.();
    const requests = await rig.server.requested(17);
    assert.deepEqual((requests[16]?.body as { metadata: { name: string } }).metadata.name, 'kept');
    for (const respond of held) respond();
    await Promise.all([...sent, kept]);
    assert.equal(rig.server.requests.length, 17);
  });

  test('a fenced transport sends nothing that waits', async () => {
    await using rig = await Rig.start();
    hold(rig);
    const all = Array.from({ length: 20 }, (_, i) => rig.client.create(configMaps, configMap(`c${i}`, 0)));
    const settled = Promise.allSettled(all);
    await rig.server.requested(16);
    rig.transport.fence(new Error('the lease is lost'));
    const results = await settled;
    await rig.clock.advance(10_000);
    assert.ok(results.every(({ status }) => status === 'rejected'));
    assert.equal(rig.server.requests.length, 16);
  });

  test('a request over a connection of its own waits for no other', async () => {
    await using rig = await Rig.start();
    const held = hold(rig);
    const all = Array.from({ length: 17 }, (_, i) => rig.client.create(configMaps, configMap(`c${i}`, 0)));
    await rig.server.requested(16);
    const read = rig.client.get(configMaps, { namespace: 'ns', name: 'a' }, { newConnection: true });
    const requests = await rig.server.requested(17);
    assert.equal(requests[16]?.method, 'GET');
    while (held.length > 0) {
      held.shift()?.();
      await rig.clock.settle();
    }
    await Promise.all([...all, read]);
  });
});

test('a request on which others depend is sent at once, however many are under way', async () => {
  await using rig = await Rig.start();
  hold(rig);
  const all = Array.from({ length: 40 }, (_, i) => rig.client.create(configMaps, configMap(`c${i}`, 0)));
  await rig.server.requested(16);
  const record = rig.client.update(configMaps, configMap('record', 1), { waitsForNone: true });
  const requests = await rig.server.requested(17);
  assert.equal(requests[16]?.method, 'PUT');
  rig.transport.fence(new Error('the end'));
  await Promise.allSettled([...all, record]);
});

describe('events', () => {
  const about = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'ns', name: 'a', uid: 'u' };

  test('are sent at once while few other requests are under way', async () => {
    await using rig = await Rig.start();
    hold(rig);
    await using recorder = recorderOf(rig);
    const others = Promise.allSettled(
      Array.from({ length: 3 }, (_, i) => rig.client.create(configMaps, configMap(`c${i}`, 0))),
    );
    recorder.event(about, 'Normal', 'Provisioning', 'm');
    await rig.server.requested(1, events);
    rig.transport.fence(new Error('the end'));
    await others;
  });

  test('give way to other requests until few of those are under way', async () => {
    await using rig = await Rig.start();
    const held = hold(rig);
    await using recorder = recorderOf(rig);
    const others = Array.from({ length: 30 }, (_, i) => rig.client.create(configMaps, configMap(`c${i}`, 0)));
    await rig.server.requested(16);
    recorder.event(about, 'Normal', 'Provisioning', 'm');
    for (let left = 30; left > 3; left--) {
      assert.equal(rig.server.matching(events).length, 0, `${left} others are left`);
      held.shift()?.();
      await rig.clock.until(() => held.length === Math.min(left - 1, 16) || rig.server.matching(events).length > 0);
    }
    await rig.server.requested(1, events);
    while (held.length > 0) {
      held.shift()?.();
      await rig.clock.settle();
    }
    await Promise.all(others);
  });

  test('are all sent five seconds after they were recorded, however busy the API server is', async () => {
    await using rig = await Rig.start();
    rig.server.always({ method: 'POST', ...events }, (reply, { body }) => reply.json(201, body));
    hold(rig);
    await using recorder = recorderOf(rig);
    const others = Promise.allSettled(
      Array.from({ length: 8 }, (_, i) => rig.client.create(configMaps, configMap(`c${i}`, 0))),
    );
    await rig.server.requested(8);
    for (let i = 0; i < 50; i++) recorder.event({ ...about, uid: `u${i}` }, 'Normal', 'Provisioning', `m${i}`);
    await rig.clock.advance(4500);
    assert.equal(rig.server.matching(events).length, 0);
    await rig.clock.advance(1000);
    const sent = await rig.server.requested(50, events);
    assert.equal(new Set(sent.map(({ body }) => (body as { message: string }).message)).size, 50);
    rig.transport.fence(new Error('the end'));
    await others;
  });

  test('are sent five seconds after they were recorded while ever more requests wait', async () => {
    await using rig = await Rig.start();
    rig.server.always({ method: 'POST', ...events }, (reply, { body }) => reply.json(201, body));
    respondAfter(rig, 20);
    await using recorder = recorderOf(rig);
    let ended = false;
    const busy = Array.from({ length: 40 }, async () => {
      while (!ended) await rig.client.create(configMaps, configMap('c', 0));
    });
    await rig.server.requested(16);
    for (let i = 0; i < 8; i++) recorder.event({ ...about, uid: `u${i}` }, 'Normal', 'Provisioning', `m${i}`);
    const tookMs = await rig.clock.until(() => rig.server.matching(events).length === 8);
    assert.ok(tookMs >= 4900 && tookMs < 6000, `${tookMs} ms`);
    ended = true;
    let left = busy.length;
    for (const each of busy) void each.then(() => left--);
    await rig.clock.until(() => left === 0);
  });

  test('get connections of their own while all requests under way hang', async () => {
    await using rig = await Rig.start();
    rig.server.always({ method: 'POST', ...events }, (reply, { body }) => reply.json(201, body));
    hold(rig);
    await using recorder = recorderOf(rig);
    const others = Promise.allSettled(
      Array.from({ length: 16 }, (_, i) => rig.client.create(configMaps, configMap(`c${i}`, 0))),
    );
    await rig.server.requested(16);
    recorder.event(about, 'Normal', 'Provisioning', 'm');
    const tookMs = await rig.clock.until(() => rig.server.matching(events).length === 1);
    assert.ok(tookMs >= 5000 && tookMs < 6000, `${tookMs} ms`);
    rig.transport.fence(new Error('the end'));
    await others;
  });

  test('wait for nothing once their recorder is closing', async () => {
    await using rig = await Rig.start();
    rig.server.always({ method: 'POST', ...events }, (reply, { body }) => reply.json(201, body));
    hold(rig);
    const recorder = recorderOf(rig);
    const client = new KubeClient({ transport: rig.transport, fieldManager: 'test' });
    const others = Promise.allSettled(
      Array.from({ length: 8 }, (_, i) => client.create(configMaps, configMap(`c${i}`, 0))),
    );
    await rig.server.requested(8);
    for (let i = 0; i < 50; i++) recorder.event({ ...about, uid: `u${i}` }, 'Normal', 'Provisioning', `m${i}`);
    let closed = false;
    const closing = recorder[Symbol.asyncDispose]().then(() => (closed = true));
    const tookMs = await rig.clock.until(() => closed);
    await closing;
    assert.equal(rig.server.matching(events).length, 50, `closed after ${tookMs} ms`);
    rig.transport.fence(new Error('the end'));
    await others;
  });
});
