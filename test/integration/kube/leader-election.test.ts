import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { queryObjects } from 'node:v8';
import { LeaseLostError } from '../../../src/kube/election/leader-elector.ts';
import { checkElectionTimings } from '../../../src/kube/election/leader-elector-options.ts';
import { KubeClient } from '../../../src/kube/client/kube-client.ts';
import { type Lease, leases as leaseResource } from '../../../src/kube/election/lease-record.ts';
import type { RequestCredentials } from '../../../src/kube/credentials/credentials.ts';
import { Transport } from '../../../src/kube/client/transport.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { LeaseServer } from './lease-server.ts';

/** Waits for the next renewal. @returns when it was sent. */
async function renewed(leases: LeaseServer, identity: string): Promise<number> {
  const before = leases.writesOf(identity).length;
  await leases.clock.until(() => leases.writesOf(identity).length > before);
  return leases.writesOf(identity).at(-1)?.atMs ?? NaN;
}

/** When the next renewal begins that is no further try of the one under way. */
async function untilAnswered(leases: LeaseServer): Promise<number> {
  await leases.clock.advance(4900);
  return renewed(leases, 'a');
}

describe('an election', () => {
  test('the first candidate makes the Lease and leads', async () => {
    await using leases = await LeaseServer.start();
    const a = leases.elector('a', { labels: { team: 'storage' } }).run();
    await leases.clock.until(() => a.leads);
    const start = new Date(leases.clock.wallMs()).toISOString().replace('Z', '000Z');
    assert.deepEqual(leases.spec, {
      holderIdentity: 'a',
      leaseDurationSeconds: 15,
      acquireTime: start,
      renewTime: start,
      leaseTransitions: 0,
    });
    assert.match(start, /\.\d{6}Z$/, 'microseconds');
    assert.deepEqual(leases.lease?.metadata.labels, { team: 'storage' });
    assert.deepEqual(a.events, ['Normal LeaderElection: a became leader']);
    assert.equal(a.elector.isLeader, true);
  });

  test('renews every two seconds with one PUT, which changes the time only', async () => {
    await using leases = await LeaseServer.start();
    const a = leases.elector('a').run();
    await leases.clock.until(() => a.leads);
    const before = leases.spec;
    const from = leases.server.requests.length;
    await leases.clock.advance(10_000);
    const renewals = leases.server.requests.slice(from);
    assert.deepEqual(
      renewals.map(({ method, atMs }) => [method, atMs]),
      [2000, 4000, 6000, 8000, 10_000].map((atMs) => ['PUT', atMs]),
    );
    assert.deepEqual({ ...leases.spec, renewTime: undefined }, { ...before, renewTime: undefined });
    assert.equal(Date.parse(leases.spec?.renewTime ?? '') - Date.parse(before?.renewTime ?? ''), 10_000);
  });

  test('labels and fields of others stay', async () => {
    await using leases = await LeaseServer.start();
    leases.edit({ holderIdentity: '', strategy: 'OldestEmulationVersion' } as object, { other: 'kept' });
    const a = leases.elector('a', { labels: { team: 'storage' } }).run();
    await leases.clock.until(() => a.leads);
    assert.deepEqual(leases.lease?.metadata.labels, { other: 'kept', team: 'storage' });
    assert.equal((leases.spec as { strategy?: string }).strategy, 'OldestEmulationVersion');
  });

  test('clocks an hour apart never make two leaders, and silence is taken over after 16 s', async () => {
    await using leases = await LeaseServer.start();
    leases.tellsWatches = false;
    const hour = { wallMs: 3_600_000, monotonicMs: 777_000 };
    const a = leases.elector('a').run();
    await leases.clock.until(() => a.leads);
    const b = leases.elector('b', { clock: leases.clock.elsewhere(hour) }).run();
    for (let i = 0; i < 60; i++) {
      await leases.clock.advance(1000);
      assert.ok(a.leads && !b.leads);
    }
    leases.cutOff('a');
    const lastRenewalMs = leases.writesOf('a').at(-1)?.atMs ?? 0;
    while (!b.leads) {
      await leases.clock.advance(100);
      assert.ok(!(a.leads && b.leads), 'two leaders');
    }
    const tookMs = (b.leadsSinceMs ?? 0) - lastRenewalMs;
    assert.ok(tookMs >= 16_000 && tookMs <= 16_000 + 4400, `took ${tookMs} ms`);
    assert.equal(leases.spec?.leaseTransitions, 1);
  });

  test('clocks an hour apart the other way never make two leaders', async () => {
    await using leases = await LeaseServer.start();
    const a = leases.elector('a', { clock: leases.clock.elsewhere({ wallMs: 3_600_000 }) }).run();
    await leases.clock.until(() => a.leads);
    const b = leases.elector('b').run();
    await leases.clock.advance(60_000);
    assert.ok(a.leads && !b.leads);
    leases.cutOff('a');
    await leases.clock.until(() => b.leads);
    assert.equal(a.leads, false);
  });

  test('a newcomer waits a whole lease and a second from its own first look, however old the Lease says it is', async () => {
    await using leases = await LeaseServer.start();
    leases.edit({ holderIdentity: 'dead', leaseDurationSeconds: 20, renewTime: '2001-01-01T00:00:00.000000Z' });
    const b = leases.elector('b').run();
    const waitedMs = await leases.clock.until(() => b.leads);
    assert.equal(waitedMs, 21_000, 'the duration in the record counts, and not a retry later');
  });

  test('a leader without a network stops 12 s after its last renewal, before the Lease expires', async () => {
    await using leases = await LeaseServer.start();
    const a = leases.elector('a').run();
    await leases.clock.until(() => a.leads);
    await leases.clock.advance(20_000);
    const lastRenewalMs = leases.writesOf('a').at(-1)?.atMs ?? 0;
    leases.cutOff('a');
    await leases.clock.until(() => a.outcome !== undefined);
    assert.equal((a.lostAtMs ?? 0) - lastRenewalMs, 12_000);
    assert.ok(a.lostBecause instanceof LeaseLostError);
    assert.deepEqual([a.outcome, a.elector.isLeader], ['lost', false]);
    assert.equal(leases.spec?.holderIdentity, 'a', 'a lost lease is not released');
  });

  for (const { title, options, want } of [
    { title: 'the name of the Lease', options: {}, want: 'lock' },
    { title: 'the field manager given', options: { fieldManager: 'my-program' }, want: 'my-program' },
  ]) {
    test(`the Lease is written as ${title}`, async () => {
      await using leases = await LeaseServer.start();
      const a = leases.elector('a', options).run();
      await leases.clock.until(() => a.leads);
      await leases.clock.advance(2000);
      const managers = leases.writesOf('a').map(({ query }) => query.get('fieldManager'));
      assert.ok(managers.length >= 2, 'a create and an update');
      assert.deepEqual([...new Set(managers)], [want]);
    });
  }

  test('what the work still sends when the lease is lost does not leave the process', async () => {
    await using leases = await LeaseServer.start();
    const guarded = leases.transport('work', leases.clock);
    const client = new KubeClient({ transport: guarded, fieldManager: 'test' });
    const a = leases.elector('a', { guarded }).run();
    await leases.clock.until(() => a.leads);
    await client.get(leaseResource, { namespace: 'ns', name: 'lock' });
    let late: Promise<unknown> | undefined;
    a.onLost = () => {
      late = assert.rejects(client.get(leaseResource, { namespace: 'ns', name: 'lock' }), LeaseLostError);
    };
    leases.cutOff('a');
    await leases.clock.until(() => a.outcome !== undefined);
    assert.ok(late);
    await late;
    assert.equal(leases.server.requests.filter(({ headers }) => headers['user-agent'] === 'work').length, 1);
  });

  test('a leader whose server refuses connections knows it 12 s after its last renewal, too', async () => {
    await using leases = await LeaseServer.start();
    const a = leases.elector('a').run();
    await leases.clock.until(() => a.leads);
    const lastRenewalMs = leases.clock.monotonicMs();
    await leases.server.down();
    await leases.clock.until(() => a.outcome !== undefined);
    assert.equal((a.lostAtMs ?? 0) - lastRenewalMs, 12_000);
    assert.deepEqual(a.events, ['Normal LeaderElection: a became leader', 'Normal LeaderElection: a stopped leading']);
  });

  test('a renewal that fails now and then costs nothing', async () => {
    await using leases = await LeaseServer.start();
    let slowPaths = 0;
    const a = leases.elector('a', { metrics: { leading: () => undefined, slowPath: () => slowPaths++ } }).run();
    await leases.clock.until(() => a.leads);
    const fails = { method: 'PUT' };
    leases.server.next(
      fails,
      (reply) => reply.status(500, 'InternalError'),
      (reply) => reply.reset(),
      (reply) => reply.status(409, 'Conflict'),
    );
    await leases.clock.advance(30_000);
    assert.equal(a.leads, true);
    assert.ok(slowPaths >= 1);
    assert.equal(leases.spec?.leaseTransitions, 0);
  });

  test('a leader that finds another in the Lease gives up at once', async () => {
    await using leases = await LeaseServer.start();
    const a = leases.elector('a').run();
    await leases.clock.until(() => a.leads);
    leases.edit({ holderIdentity: 'usurper', leaseDurationSeconds: 15, leaseTransitions: 1 });
    const waitedMs = await leases.clock.until(() => a.outcome !== undefined);
    assert.ok(waitedMs <= 2000);
    assert.equal(a.outcome, 'lost');
    assert.equal(leases.spec?.holderIdentity, 'usurper');
  });

  test('a release is seen and taken over within a moment, with one transition more', async () => {
    await using leases = await LeaseServer.start();
    const a = leases.elector('a').run();
    await leases.clock.until(() => a.leads);
    const b = leases.elector('b').run();
    await leases.clock.advance(30_100);
    a.finish();
    const waitedMs = await leases.clock.until(() => b.leads);
    assert.equal(waitedMs, 0);
    assert.equal(a.outcome, 'done');
    assert.equal(leases.spec?.leaseTransitions, 1);
    const [release] = leases.writesOf('a').slice(-1);
    const { holderIdentity, leaseDurationSeconds, leaseTransitions, acquireTime, renewTime } = (
      release?.body as { spec: Record<string, unknown> }
    ).spec;
    assert.deepEqual([holderIdentity, leaseDurationSeconds, leaseTransitions], ['', 1, 0]);
    assert.equal(acquireTime, renewTime);
    assert.deepEqual(a.events.slice(1), ['Normal LeaderElection: a stopped leading']);
  });

  test('without word from the watch the other leads within its retry pause', async () => {
    await using leases = await LeaseServer.start();
    leases.tellsWatches = false;
    const a = leases.elector('a').run();
    await leases.clock.until(() => a.leads);
    const b = leases.elector('b').run();
    await leases.clock.advance(30_100);
    a.finish();
    const waitedMs = await leases.clock.until(() => b.leads);
    assert.ok(waitedMs <= 4400, `waited ${waitedMs} ms`);
    assert.equal(leases.spec?.leaseTransitions, 1);
  });

  test('a standby whose watch reports nothing keeps nothing of its attempts', async () => {
    await using leases = await LeaseServer.start();
    leases.tellsWatches = false;
    leases.edit({ holderIdentity: 'a', leaseDurationSeconds: 86_400 });
    leases.elector('b').run();
    const promises = (): number => queryObjects(Promise, { format: 'count' });
    await leases.clock.advance(10_000);
    const before = promises();
    await leases.clock.advance(90_000); // some 25 attempts
    const grown = promises() - before;
    assert.ok(grown < 25, `${grown} promises more`);
  });

  test('work that fails releases the Lease too', async () => {
    await using leases = await LeaseServer.start();
    const a = leases.elector('a').run();
    await leases.clock.until(() => a.leads);
    a.fail(new Error('broken work'));
    await leases.clock.until(() => a.outcome !== undefined);
    assert.equal(a.outcome, 'threw Error: broken work');
    assert.equal(leases.spec?.holderIdentity, '');
    assert.equal(a.elector.isLeader, false);
  });

  test('a renewal that is written while the Lease is released does not keep it', async () => {
    await using leases = await LeaseServer.start();
    const a = leases.elector('a').run();
    await leases.clock.until(() => a.leads);
    leases.onRead = () => {
      leases.onRead = () => undefined;
      leases.edit({ ...leases.spec, renewTime: '2026-01-01T00:00:00.000000Z' });
    };
    a.finish();
    await leases.clock.until(() => a.outcome !== undefined);
    assert.equal(leases.spec?.holderIdentity, '');
    assert.ok(a.elector.released);
    assert.ok(!leases.log.some(({ level }) => level === 'error'));
  });

  test('nothing is released where that is not wanted', async () => {
    await using leases = await LeaseServer.start();
    const a = leases.elector('a', { releaseOnExit: false }).run();
    await leases.clock.until(() => a.leads);
    a.finish();
    await leases.clock.until(() => a.outcome !== undefined);
    assert.equal(leases.spec?.holderIdentity, 'a');
  });

  test('a release that gets no answer ends after the renew deadline', async () => {
    await using leases = await LeaseServer.start();
    const a = leases.elector('a').run();
    await leases.clock.until(() => a.leads);
    leases.cutOff('a');
    a.finish();
    const waitedMs = await leases.clock.until(() => a.outcome !== undefined);
    assert.deepEqual([waitedMs, a.outcome], [10_000, 'done']);
  });

  for (const { name, timings, delayMs, lead } of [
    { name: 'the default times of the library', timings: {}, delayMs: 4900, lead: 30_000 },
    { name: 'the times of the sidecar', timings: { retryPeriodMs: 5000 }, delayMs: 4900, lead: 40_000 },
    { name: 'an answer to the very first write', timings: {}, delayMs: 4900, lead: 5000 },
    {
      name: 'a pause that is longer than what is left of the lease',
      timings: { leaseDurationMs: 3000, renewDeadlineMs: 2500, retryPeriodMs: 2000 },
      delayMs: 1200,
      lead: 0,
    },
  ]) {
    test(`a leader whose writes are answered late gives up before a standby takes over: ${name}`, async () => {
      await using leases = await LeaseServer.start();
      leases.delayAnswers('a', delayMs);
      const a = leases.elector('a', timings).run();
      await leases.clock.until(() => a.leads);
      const b = leases.elector('b', timings).run();
      await leases.clock.advance(lead);
      assert.ok(a.leads && !b.leads);
      leases.cutOff('a');
      await leases.clock.until(() => b.leads);
      assert.ok(a.lostAtMs !== undefined, 'two leaders');
      const lastWriteMs = leases.writesOf('a').at(-1)?.atMs ?? 0;
      assert.ok((b.leadsSinceMs ?? 0) - a.lostAtMs >= 1000, `only ${(b.leadsSinceMs ?? 0) - a.lostAtMs} ms between`);
      assert.ok(lastWriteMs <= a.lostAtMs);
    });
  }

  for (const { name, timings } of [
    { name: 'the default times of the library', timings: { retryPeriodMs: 2000 } },
    { name: 'the times of the sidecar', timings: { retryPeriodMs: 5000 } },
    { name: 'short times', timings: { leaseDurationMs: 3000, renewDeadlineMs: 2000, retryPeriodMs: 500 } },
  ]) {
    const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs } = timings;
    const phases = Array.from({ length: 8 }, (_, i) => Math.ceil((i * retryPeriodMs) / 7)); // the last one just after a renewal

    test(`a leader lives while its server stands still up to half a second less than the renew deadline: ${name}`, async () => {
      await using leases = await LeaseServer.start();
      const a = leases.elector('a', timings).run();
      await leases.clock.until(() => a.leads);
      const b = leases.elector('b', timings).run();
      for (const phaseMs of phases) {
        for (const stallMs of [
          renewDeadlineMs / 4,
          renewDeadlineMs / 2,
          renewDeadlineMs - 1000,
          renewDeadlineMs - 500,
        ]) {
          await renewed(leases, 'a');
          await leases.clock.advance(phaseMs);
          leases.standStill();
          await leases.clock.advance(stallMs);
          leases.goOn();
          await leases.clock.advance(500);
          assert.deepEqual([a.leads, b.leads], [true, false], `${stallMs} ms, ${phaseMs} ms after a renewal`);
        }
      }
      assert.deepEqual([leases.spec?.holderIdentity, leases.spec?.leaseTransitions], ['a', 0]);
    });

    test(`a leader lives when its connections go silent and new ones work: ${name}`, async () => {
      await using leases = await LeaseServer.start();
      const a = leases.elector('a', timings).run();
      await leases.clock.until(() => a.leads);
      for (const phaseMs of phases) {
        await renewed(leases, 'a');
        await leases.clock.advance(phaseMs);
        leases.silenceConnections();
        await leases.clock.advance(2 * leaseDurationMs);
        assert.equal(a.leads, true, `${phaseMs} ms after a renewal`);
      }
      assert.deepEqual([leases.spec?.holderIdentity, leases.spec?.leaseTransitions], ['a', 0]);
    });

    test(`a leader whose server stands still for longer sends nothing after the time of its lease: ${name}`, async () => {
      await using leases = await LeaseServer.start();
      const a = leases.elector('a', timings).run();
      await leases.clock.until(() => a.leads);
      const lastMs = await renewed(leases, 'a');
      leases.standStill();
      await leases.clock.until(() => a.outcome !== undefined);
      assert.equal(a.outcome, 'lost');
      assert.equal((a.lostAtMs ?? 0) - lastMs, Math.min(retryPeriodMs + renewDeadlineMs, leaseDurationMs));
      const sent = leases.server.requests.filter(({ headers }) => headers['user-agent'] === 'a');
      assert.ok((sent.at(-1)?.atMs ?? Infinity) < lastMs + leaseDurationMs);
      leases.goOn();
      await leases.clock.advance(2 * leaseDurationMs);
      const late = leases.server.requests.filter(
        ({ headers, atMs }) => headers['user-agent'] === 'a' && atMs > (a.lostAtMs ?? 0),
      );
      assert.deepEqual(late, []);
    });
  }

  test('a permit is not valid for longer than the renew deadline, however late a response to an older try comes', async () => {
    await using leases = await LeaseServer.start();
    const a = leases.elector('a').run();
    await leases.clock.until(() => a.leads);
    await renewed(leases, 'a');
    await leases.clock.advance(1900);
    leases.standStill();
    await leases.clock.advance(9000); // the first try is 8.9 s old
    const sentMs = leases.writesOf('a').find(({ atMs }) => atMs > leases.clock.monotonicMs() - 9000)?.atMs ?? 0;
    leases.goOn();
    leases.standStill();
    await leases.clock.advance(0);
    assert.equal(a.elector.permit.isValid, true, 'renewed by the first try');
    await leases.clock.advance(sentMs + 10_000 - leases.clock.monotonicMs());
    assert.equal(a.elector.permit.isValid, true);
    await leases.clock.advance(1);
    assert.equal(a.elector.permit.isValid, false);
  });

  test('a process that stood still while a try had no connection yet does not send it', async () => {
    await using leases = await LeaseServer.start();
    let stoodStillMs = 0;
    const clock = { ...leases.clock.elsewhere({}), monotonicMs: () => leases.clock.monotonicMs() + stoodStillMs };
    const held = Promise.withResolvers<undefined>();
    let isHeld = false;
    const tls = {};
    const credentials: RequestCredentials = {
      serverUrl: new URL(leases.server.url),
      proxyUrl: undefined,
      disableCompression: true,
      generation: 0,
      headers: () => (isHeld ? held.promise.then(() => ({ 'user-agent': 'a' })) : { 'user-agent': 'a' }),
      tls: () => tls,
      recheckTls: () => undefined,
      renew: () => undefined,
    };
    await using transport = new Transport({ credentials, userAgent: 'a', clock, logger: silentLogger });
    const a = leases.elector('a', { clock, transport }).run();
    await leases.clock.until(() => a.leads);
    await renewed(leases, 'a');
    const writes = leases.writesOf('a').length;
    isHeld = true;
    await leases.clock.advance(2000);
    stoodStillMs = 20_000;
    held.resolve(undefined);
    await leases.clock.until(() => a.outcome !== undefined);
    assert.deepEqual([a.outcome, leases.writesOf('a').length], ['lost', writes]);
  });

  test('late responses do not stretch the time between renewals', async () => {
    await using leases = await LeaseServer.start();
    leases.delayAnswers('a', 4000);
    const a = leases.elector('a', { retryPeriodMs: 5000 }).run();
    await leases.clock.until(() => a.leads);
    await renewed(leases, 'a');
    leases.delayAnswers('a', 4900);
    const [first, second] = [await renewed(leases, 'a'), await untilAnswered(leases)];
    assert.ok(second - first <= 5000, `${second - first} ms`);
  });

  test('a lease is released though its connections are silent', async () => {
    await using leases = await LeaseServer.start();
    const a = leases.elector('a').run();
    await leases.clock.until(() => a.leads);
    leases.silenceConnections();
    a.finish();
    const waitedMs = await leases.clock.until(() => a.outcome !== undefined);
    assert.deepEqual([a.outcome, a.elector.released, leases.spec?.holderIdentity], ['done', true, '']);
    assert.ok(waitedMs <= 1250, `${waitedMs} ms`);
  });

  test('an answer that is read after its lease expired does not make a leader', async () => {
    await using leases = await LeaseServer.start();
    let stoodStillMs = 0;
    const clock = { ...leases.clock.elsewhere({}), monotonicMs: () => leases.clock.monotonicMs() + stoodStillMs };
    const a = leases.elector('a', { clock }).run();
    await leases.clock.until(() => a.leads);
    await leases.clock.advance(3000);
    let answer = (): void => undefined;
    leases.server.next({ method: 'PUT' }, (reply, { body }) => {
      leases.edit((body as Lease).spec ?? {});
      answer = () => reply.json(200, leases.lease);
    });
    await leases.clock.until(() => leases.writesOf('a').at(-1)?.atMs === 4000);
    stoodStillMs = 20_000; // the process was stopped, and reads its socket before it looks at its timers
    answer();
    const waitedMs = await leases.clock.until(() => a.outcome !== undefined);
    assert.deepEqual([a.outcome, waitedMs], ['lost', 0]);
  });

  test('a standby takes a silent leader over a second after its lease expired', async () => {
    await using leases = await LeaseServer.start();
    const a = leases.elector('a').run();
    await leases.clock.until(() => a.leads);
    const b = leases.elector('b').run();
    await leases.clock.advance(31_300);
    leases.cutOff('a');
    const lastRenewalMs = leases.writesOf('a').at(-1)?.atMs ?? 0;
    await leases.clock.until(() => b.leads);
    assert.equal((b.leadsSinceMs ?? 0) - lastRenewalMs, 16_000);
    assert.equal(a.leads, false);
  });

  test('a Lease that somebody emptied by hand is taken at once', async () => {
    await using leases = await LeaseServer.start();
    leases.edit({ holderIdentity: 'gone', leaseDurationSeconds: 3600, leaseTransitions: 4 });
    const b = leases.elector('b').run();
    await leases.clock.advance(30_000);
    assert.equal(b.leads, false);
    leases.edit({ holderIdentity: '', leaseDurationSeconds: 3600, leaseTransitions: 4 });
    const waitedMs = await leases.clock.until(() => b.leads);
    assert.deepEqual([waitedMs, leases.spec?.leaseTransitions], [0, 5]);
  });

  test('a Lease that somebody deleted is recreated at once', async () => {
    await using leases = await LeaseServer.start();
    leases.edit({ holderIdentity: 'gone', leaseDurationSeconds: 3600, leaseTransitions: 4 });
    const b = leases.elector('b').run();
    await leases.clock.advance(30_000);
    leases.remove();
    const waitedMs = await leases.clock.until(() => b.leads);
    assert.deepEqual([waitedMs, leases.spec?.leaseTransitions], [0, 0]);
  });

  test('a process that stood still for 20 s counts the lease as lost and sends no PUT', async () => {
    await using leases = await LeaseServer.start();
    const a = leases.elector('a').run();
    await leases.clock.until(() => a.leads);
    await leases.clock.advance(9000);
    const writes = leases.writesOf('a').length;
    await leases.clock.jump(20_000);
    await leases.clock.until(() => a.outcome !== undefined);
    assert.equal(a.outcome, 'lost');
    assert.equal(a.lostAtMs, leases.clock.monotonicMs());
    assert.equal(leases.writesOf('a').length, writes);
  });

  test('a process that stood still between a renewal and its answer counts the lease as lost', async () => {
    await using leases = await LeaseServer.start();
    const a = leases.elector('a').run();
    await leases.clock.until(() => a.leads);
    await leases.clock.advance(4000);
    leases.server.next({ method: 'PUT' }, () => undefined);
    await leases.clock.advance(2000);
    const writes = leases.writesOf('a').length;
    await leases.clock.jump(20_000);
    await leases.clock.until(() => a.outcome !== undefined);
    assert.equal(a.outcome, 'lost');
    assert.equal(leases.writesOf('a').length, writes);
  });

  test('a standby that is stopped ends at once, and never led', async () => {
    await using leases = await LeaseServer.start();
    leases.edit({ holderIdentity: 'other', leaseDurationSeconds: 15 });
    const b = leases.elector('b').run();
    await leases.clock.advance(1000);
    b.stop();
    const waitedMs = await leases.clock.until(() => b.outcome !== undefined);
    assert.deepEqual([waitedMs, b.outcome, b.events], [0, 'stopped', []]);
    assert.equal(leases.clock.pending, 0);
  });

  test('health passes for a leader that renews and for a standby', async () => {
    await using leases = await LeaseServer.start();
    const a = leases.elector('a').run();
    const b = leases.elector('b').run();
    await leases.clock.until(() => a.leads);
    await leases.clock.advance(40_000);
    assert.deepEqual([a.elector.unhealthyReason, b.elector.unhealthyReason], [undefined, undefined]);
  });

  test('health fails for a leader that no longer renews, 20 s after its lease ran out', async () => {
    await using leases = await LeaseServer.start();
    const hung = {
      ...leases.clock.elsewhere({}),
      sleep: (_ms: number, options?: { signal?: AbortSignal }) => leases.clock.sleep(1e9, options),
    };
    const a = leases.elector('a', { clock: hung }).run();
    await leases.clock.until(() => a.leads);
    await leases.clock.advance(35_000);
    assert.equal(a.elector.unhealthyReason, undefined);
    await leases.clock.advance(1);
    assert.equal(a.elector.unhealthyReason, 'failed election to renew leadership on lease lock');
  });

  for (const { name, timings, message } of [
    { name: 'a lease no longer than the deadline', timings: [10, 10, 2], message: /leaseDuration/ },
    { name: 'a deadline within the jitter of a retry', timings: [15, 6, 5], message: /renewDeadline/ },
    { name: 'a lease of less than a second', timings: [0.9, 0.5, 0.1], message: /leaseDuration must be at least 1s/ },
    { name: 'no retry pause', timings: [15, 10, 0], message: /retryPeriod/ },
  ] as const) {
    test(`${name} is refused`, () => {
      const [lease, deadline, retry] = timings.map((seconds) => seconds * 1000);
      assert.throws(
        () =>
          checkElectionTimings({
            leaseDurationMs: lease ?? 0,
            renewDeadlineMs: deadline ?? 0,
            retryPeriodMs: retry ?? 0,
          }),
        (error) => error instanceof RangeError && message.test(error.message),
      );
    });
  }

  test('a candidate needs a name', async () => {
    await using leases = await LeaseServer.start();
    assert.throws(() => leases.elector(''), RangeError);
  });
});
