import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { createRegistry } from '../../../../src/base/metrics.ts';
import { ExponentialLimiter } from '../../../../src/kube/queue/rate-limiter.ts';
import { WorkQueue } from '../../../../src/kube/queue/work-queue.ts';
import { workQueueMetrics } from '../../../../src/kube/queue/work-queue-metrics.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { hold } from '../../../support/fakes/event-loop.ts';

function newQueue(): { queue: WorkQueue; clock: ManualClock } {
  const clock = new ManualClock({ turns: 1 });
  const queue = new WorkQueue({ limiter: new ExponentialLimiter({ baseMs: 1000, maxMs: 300_000 }), clock });
  return { queue, clock };
}

/** Takes keys and finishes them at once; `taken` says when. */
async function work(queue: WorkQueue, clock: ManualClock, taken: [string, number][]): Promise<void> {
  for (let key = await queue.get(); key !== undefined; key = await queue.get()) {
    taken.push([key, clock.monotonicMs()]);
    queue.done(key);
  }
}

describe('WorkQueue', () => {
  test('hands keys out in the order they were added', async () => {
    const { queue } = newQueue();
    for (const key of ['b', 'a', 'c']) queue.add(key);
    assert.deepEqual([await queue.get(), await queue.get(), await queue.get()], ['b', 'a', 'c']);
  });

  test('a key that failed is added again after the back-off, or after the min pause if that is longer', async () => {
    const { queue, clock } = newQueue();
    const taken: [string, number][] = [];
    void work(queue, clock, taken);
    queue.addRateLimited('a', 1500);
    await clock.advance(1500);
    queue.addRateLimited('a', 1500);
    await clock.advance(2000);
    assert.deepEqual(taken, [
      ['a', 1500],
      ['a', 3500],
    ]);
  });

  test('a key added again before it is taken counts once', async () => {
    const { queue } = newQueue();
    queue.add('a');
    queue.add('a');
    assert.equal(queue.length, 1);
    assert.equal(await queue.get(), 'a');
    queue.done('a');
    assert.equal(queue.length, 0);
  });

  test('three adds during the work lead to exactly one more sync after it', async () => {
    const { queue, clock } = newQueue();
    queue.add('a');
    await queue.get();
    for (let i = 0; i < 3; i++) queue.add('a');
    let second: string | undefined;
    let takes = 0;
    void queue.get().then((key) => {
      second = key;
      takes++;
    });
    await clock.settle();
    assert.equal(takes, 0, 'not while it is worked on');
    queue.done('a');
    await clock.settle();
    assert.deepEqual([second, takes], ['a', 1]);
    queue.done('a');
    assert.equal(queue.length, 0);
  });

  test('no key is worked on twice at once, and none is lost, whatever the workers do', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 60 }),
        fc.scheduler(),
        async (adds, scheduler) => {
          const { queue } = newQueue();
          const busy = new Set<string>();
          const lastAdd = new Map<string, number>();
          const lastTake = new Map<string, number>();
          let step = 0;
          const worker = async (): Promise<void> => {
            for (let key = await queue.get(); key !== undefined; key = await queue.get()) {
              assert.ok(!busy.has(key), `${key} is worked on twice`);
              busy.add(key);
              lastTake.set(key, ++step);
              await scheduler.schedule(Promise.resolve());
              busy.delete(key);
              queue.done(key);
            }
          };
          const workers = [worker(), worker(), worker()];
          const adding = scheduler.scheduleSequence(
            adds.map((add) => () => {
              lastAdd.set(String(add), ++step);
              queue.add(String(add));
              return Promise.resolve();
            }),
          );
          await scheduler.waitFor(adding.task);
          queue.shutDown();
          await scheduler.waitFor(Promise.all(workers));
          for (const [key, added] of lastAdd) assert.ok((lastTake.get(key) ?? 0) > added, `${key} was lost`);
        },
      ),
      { numRuns: 100 },
    );
  });

  test('of several delays the shortest wins, and leads to one sync', async () => {
    const { queue, clock } = newQueue();
    const taken: [string, number][] = [];
    const worker = work(queue, clock, taken);
    queue.addAfter('a', 10_000);
    queue.addAfter('a', 1000);
    queue.addAfter('a', 20_000);
    assert.equal(queue.delayedKeys.length, 1);
    await clock.advance(60_000);
    assert.deepEqual(taken, [['a', 1000]]);
    queue.shutDown();
    await worker;
  });

  test('delayed keys come in the order of their times; without a delay at once', async () => {
    const { queue, clock } = newQueue();
    const taken: [string, number][] = [];
    const worker = work(queue, clock, taken);
    queue.addAfter('late', 25_000);
    queue.addAfter('soon', 50);
    queue.addAfter('now', 0);
    queue.addAfter('middle', 12_000);
    await clock.advance(30_000);
    assert.deepEqual(taken, [
      ['now', 0],
      ['soon', 50],
      ['middle', 12_000],
      ['late', 25_000],
    ]);
    queue.shutDown();
    await worker;
  });

  test('after the machine slept, what is due comes within ten seconds, not when its old timer ends', async () => {
    const base = new ManualClock({ turns: 1 });
    let sleptMs = 0;
    const clock = { ...base.elsewhere({}), monotonicMs: () => base.monotonicMs() + sleptMs };
    const queue = new WorkQueue({ limiter: new ExponentialLimiter({ baseMs: 1, maxMs: 1 }), clock });
    queue.addAfter('a', 3_600_000);
    await base.advance(5000);
    sleptMs = 3_600_000;
    await base.advance(10_000);
    assert.deepEqual([queue.length, queue.delayedKeys.length], [1, 0]);
  });

  test('failures wait 1, 2, 4 ... 128 s, and once forgotten 1 s again', async () => {
    const { queue, clock } = newQueue();
    const delays: number[] = [];
    for (let i = 0; i < 8; i++) {
      const failedMs = clock.monotonicMs();
      queue.addRateLimited('a');
      const turn = queue.get();
      await clock.until(() => queue.delayedKeys.length === 0);
      assert.equal(await turn, 'a');
      queue.done('a');
      delays.push((clock.monotonicMs() - failedMs) / 1000);
    }
    assert.deepEqual(delays, [1, 2, 4, 8, 16, 32, 64, 128]);
    assert.equal(queue.failures('a'), 8);
    queue.forget('a');
    queue.addRateLimited('a');
    assert.equal(await clock.until(() => queue.delayedKeys.length === 0), 1000);
  });

  test('forgetting a key leaves its delayed requeue', async () => {
    const { queue, clock } = newQueue();
    queue.addRateLimited('a');
    queue.forget('a');
    assert.equal(queue.failures('a'), 0);
    await clock.advance(1000);
    assert.equal(await queue.get(), 'a');
  });

  test('once the cause of failures is mended, delayed keys come spread over the time given, with no failures left', async () => {
    const { queue, clock } = newQueue();
    const taken: [string, number][] = [];
    for (const key of ['a', 'b', 'c', 'd']) for (let failure = 0; failure < 6; failure++) queue.addRateLimited(key);
    queue.retrySoon(1000);
    void work(queue, clock, taken);
    await clock.advance(999);
    assert.deepEqual(taken.map(([key]) => key).sort(), ['a', 'b', 'c', 'd']);
    assert.deepEqual(
      taken.map(([, atMs]) => atMs),
      [0, 250, 500, 750],
    );
    assert.equal(queue.failures('a'), 0);
    assert.equal(queue.delayedKeys.length, 0);
    queue.shutDown();
  });

  test('once the cause of failures is mended, a key that is at work or due earlier than the spread stays where it is', async () => {
    const { queue, clock } = newQueue();
    queue.add('working');
    for (let failure = 0; failure < 6; failure++) queue.addRateLimited('working');
    await queue.get();
    queue.addAfter('soon', 10);
    queue.retrySoon(1000);
    assert.equal(queue.failures('working'), 0);
    const taken: [string, number][] = [];
    void work(queue, clock, taken);
    await clock.advance(10);
    assert.deepEqual(taken.at(-1)?.[0], 'soon');
    queue.shutDown();
  });

  test('shutting down refuses new keys, drops delayed ones and hands out the rest', async () => {
    const { queue, clock } = newQueue();
    queue.add('a');
    queue.addAfter('later', 1000);
    queue.shutDown();
    queue.add('b');
    queue.addAfter('c', 0);
    queue.addAfter('d', 1000);
    await clock.advance(5000);
    assert.deepEqual([await queue.get(), await queue.get(), await queue.get()], ['a', undefined, undefined]);
    assert.equal(clock.pending, 0);
  });

  test('shutting down ends the wait of a worker', async () => {
    const { queue } = newQueue();
    const turns = [queue.get(), queue.get()];
    queue.shutDown();
    assert.deepEqual(await Promise.all(turns), [undefined, undefined]);
  });

  test('adds and takes cost no more in a long queue: none scans it', async () => {
    /** CPU time for each key of a queue that holds so many. */
    async function cost(keys: number): Promise<number> {
      const { queue } = newQueue();
      const before = process.cpuUsage();
      for (let round = 0; round < 2; round++) for (let i = 0; i < keys; i++) queue.add(`k${i}`);
      assert.equal(queue.length, keys);
      for (let i = 0; i < keys; i++) {
        const key = await queue.get();
        assert.equal(key, `k${i}`);
        queue.done(key);
      }
      const { user, system } = process.cpuUsage(before);
      return (user + system) / keys;
    }
    await cost(1000); // compiles
    const [short, long] = [await cost(1000), await cost(40_000)];
    assert.ok(long < short * 10, `${long} against ${short} µs for each key`);
  });

  test('metrics show depth, adds, retries and the time of waiting and of work', async () => {
    const registry = createRegistry();
    const clock = new ManualClock({ turns: 1 });
    const queue = new WorkQueue({
      limiter: new ExponentialLimiter({ baseMs: 1000, maxMs: 1000 }),
      clock,
      metrics: workQueueMetrics(registry).forQueue('claims'),
    });
    const value = async (name: string): Promise<number | undefined> => {
      const metric = await registry.getSingleMetric(name)?.get();
      const sum = metric?.values.find((sample) => !('metricName' in sample) || sample.metricName === `${name}_sum`);
      return sum?.value;
    };
    assert.deepEqual([await value('workqueue_depth'), await value('workqueue_adds_total')], [0, 0]);
    queue.add('a');
    queue.add('b');
    queue.add('a');
    await clock.advance(2000);
    await queue.get();
    queue.add('a');
    assert.equal(await value('workqueue_depth'), 2, 'the repeat during work counts');
    await clock.advance(3000);
    await queue.get();
    await clock.advance(1000);
    assert.equal(await value('workqueue_unfinished_work_seconds'), 5);
    assert.equal(await value('workqueue_longest_running_processor_seconds'), 4);
    queue.addRateLimited('a');
    queue.done('a');
    queue.done('b');
    assert.equal(await value('workqueue_adds_total'), 3);
    assert.equal(await value('workqueue_retries_total'), 1);
    assert.equal(await value('workqueue_queue_duration_seconds'), 7);
    assert.equal(await value('workqueue_work_duration_seconds'), 5);
    assert.equal(await value('workqueue_unfinished_work_seconds'), 0);
  });

  test('thousands of keys whose time comes at once do not hold the event loop', async () => {
    const clock = new ManualClock({ turns: 1 });
    const added = (): void => hold(0.5);
    const metrics = { added, retried: () => undefined, waited: () => undefined, worked: () => undefined };
    const queue = new WorkQueue({ limiter: new ExponentialLimiter({ baseMs: 1, maxMs: 1 }), clock, metrics });
    for (let key = 0; key < 100; key++) queue.addAfter(String(key), 1000);
    await clock.until(() => queue.length > 0);
    assert.ok(queue.length < 100, `${queue.length} keys in one piece`);
    await clock.until(() => queue.length === 100);
    assert.equal(queue.delayedKeys.length, 0);
  });

  test('says where a key is and for how long: with a worker, waiting, or waiting for its time', async () => {
    const { queue, clock } = newQueue();
    queue.add('a');
    queue.add('b');
    queue.addAfter('c', 5000);
    await queue.get();
    await clock.advance(2000);
    assert.deepEqual(queue.stateOf('a'), { state: 'processing', forMs: 2000 });
    assert.deepEqual(queue.stateOf('b'), { state: 'waiting', forMs: 2000 });
    assert.deepEqual(queue.stateOf('c'), { state: 'delayed', inMs: 3000 });
    assert.deepEqual(queue.stateOf('d'), { state: 'absent' });
    queue.done('a');
    assert.deepEqual([queue.stateOf('a'), queue.processingLength], [{ state: 'absent' }, 0]);
  });

  test('gauges add up the queues of one name, and the max work is that of all', async () => {
    const registry = createRegistry();
    const clock = new ManualClock({ turns: 1 });
    const limiter = new ExponentialLimiter({ baseMs: 1000, maxMs: 1000 });
    const metrics = workQueueMetrics(registry).forQueue('claims');
    const [provisioning, protection] = [
      new WorkQueue({ limiter, clock, metrics }),
      new WorkQueue({ limiter, clock, metrics }),
    ];
    const value = async (name: string): Promise<number | undefined> =>
      (await registry.getSingleMetric(name)?.get())?.values[0]?.value;
    for (const key of ['a', 'b', 'c']) provisioning.add(key);
    protection.add('d');
    assert.equal(await value('workqueue_depth'), 4);
    await provisioning.get();
    await clock.advance(2000);
    await protection.get();
    await clock.advance(1000);
    assert.equal(await value('workqueue_depth'), 2);
    assert.equal(await value('workqueue_unfinished_work_seconds'), 4);
    assert.equal(await value('workqueue_longest_running_processor_seconds'), 3);
  });
});
