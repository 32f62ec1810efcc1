import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { ExponentialLimiter } from '../../../src/kube/queue/rate-limiter.ts';
import { WorkQueue } from '../../../src/kube/queue/work-queue.ts';
import { runWorkers } from '../../../src/provision/run-workers.ts';
import { hold, iterationsDuring } from '../../support/fakes/event-loop.ts';

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
