import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { ExponentialLimiter } from '../../../src/kube/queue/rate-limiter.ts';
import { WorkQueue } from '../../../src/kube/queue/work-queue.ts';
import { runWorkers, type SyncEnd } from '../../../src/provision/run-workers.ts';
import { hold, iterationsDuring } from '../../support/fakes/event-loop.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';

test('many workers with many keys that wait for nothing let the event loop run', async () => {
  const queue = new WorkQueue({ limiter: new ExponentialLimiter({ baseMs: 1000, maxMs: 1000 }) });
  for (let key = 0; key < 8; key++) queue.add(String(key));
  const stop = new AbortController();
  const running = runWorkers({
    queue,
    count: 4,
    sync: async (key) => {
      hold(11);
      if (key === '7') stop.abort(new Error('the test is over'));
      await Promise.resolve();
    },
    failureThreshold: 0,
    timeoutMs: 0,
    stop: stop.signal,
    abort: new AbortController().signal,
    clock: systemClock,
    logger: silentLogger,
    what: 'claim',
  });
  const iterations = await iterationsDuring(running);
  assert.ok(iterations >= 6, `${iterations} iterations for eight keys`);
});

for (const count of [1, 3]) {
  test(`no more than ${count} of 20 keys are worked on at the same time, and all are in the end`, async () => {
    const queue = new WorkQueue({ limiter: new ExponentialLimiter({ baseMs: 1000, maxMs: 1000 }) });
    for (let key = 0; key < 20; key++) queue.add(String(key));
    const stop = new AbortController();
    const done = new Set<string>();
    let [underWay, most] = [0, 0];
    await runWorkers({
      queue,
      count,
      sync: async (key) => {
        most = Math.max(most, ++underWay);
        for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
        underWay--;
        if (done.add(key).size === 20) stop.abort(new Error('the test is over'));
      },
      failureThreshold: 0,
      timeoutMs: 0,
      stop: stop.signal,
      abort: new AbortController().signal,
      clock: systemClock,
      logger: silentLogger,
      what: 'claim',
    });
    assert.equal(most, count);
    assert.equal(done.size, 20);
  });
}

test('a worker that fails ends the others, which finish what they have begun', async () => {
  const queue = new WorkQueue({ limiter: new ExponentialLimiter({ baseMs: 1000, maxMs: 1000 }) });
  for (const key of ['begun', 'doomed', 'left']) queue.add(key);
  const begun = Promise.withResolvers<undefined>();
  const doomed = Promise.withResolvers<undefined>();
  const finished: string[] = [];
  const running = runWorkers({
    queue,
    count: 2,
    sync: async (key) => {
      await begun.promise;
      finished.push(key);
    },
    failureThreshold: 0,
    describe: (key) => {
      if (key !== 'doomed') return {};
      doomed.resolve(undefined);
      throw new Error('a defect');
    },
    timeoutMs: 0,
    stop: new AbortController().signal,
    abort: new AbortController().signal,
    clock: systemClock,
    logger: silentLogger,
    what: 'claim',
  });
  await doomed.promise;
  await new Promise(setImmediate);
  begun.resolve(undefined);
  await assert.rejects(running, { message: 'a defect' });
  assert.deepEqual(finished, ['begun'], 'no new key is taken');
});

for (const { title, end, inMs, failures, lines } of [
  { title: 'with nothing left to do is not synced again, and its failures are forgotten', end: { next: 'change' } },
  {
    title: 'that waits is synced again after the back-off, and nothing is logged',
    end: { next: 'back-off' },
    inMs: 2000,
    failures: 2,
  },
  { title: 'whose time is known is synced again then', end: { next: 'time', afterMs: 700 }, inMs: 700, failures: 1 },
  {
    title: 'that has failed is synced again after the back-off, with a line',
    end: { next: 'retry', error: new Error('busy') },
    inMs: 2000,
    failures: 2,
    lines: ['Error syncing claim, trying again'],
  },
] satisfies { title: string; end: SyncEnd; inMs?: number; failures?: number; lines?: string[] }[]) {
  test(`a key ${title}`, async () => {
    const clock = new ManualClock();
    const queue = new WorkQueue({ limiter: new ExponentialLimiter({ baseMs: 1000, maxMs: 60_000 }), clock });
    const log: LogLine[] = [];
    queue.addRateLimited('k'); // it has failed before
    await clock.advance(1000);
    const stop = new AbortController();
    const running = runWorkers({
      queue,
      count: 1,
      sync: () => Promise.resolve(end),
      failureThreshold: 0,
      timeoutMs: 0,
      stop: stop.signal,
      abort: new AbortController().signal,
      clock,
      logger: recordedLogger(log),
      what: 'claim',
    });
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    assert.deepEqual(queue.stateOf('k'), inMs === undefined ? { state: 'absent' } : { state: 'delayed', inMs });
    assert.equal(queue.failures('k'), failures ?? 0);
    assert.deepEqual(
      log.map(({ message }) => message),
      lines ?? [],
    );
    stop.abort(new Error('the test is over'));
    await running;
  });
}
