import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TokenBucket } from '../../../../src/kube/client/token-bucket.ts';
import { Backoff, BucketLimiter, ExponentialLimiter, MaxOfLimiter } from '../../../../src/kube/queue/rate-limiter.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';

describe('ExponentialLimiter', () => {
  test('doubles with each failure of a key, up to the maximum', () => {
    const limiter = new ExponentialLimiter({ baseMs: 1000, maxMs: 300_000 });
    const delays = Array.from({ length: 11 }, () => limiter.when('a') / 1000);
    assert.deepEqual(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    assert.equal(limiter.when('b'), 1000, 'another key has its own count');
    assert.equal(limiter.failures('a'), 11);
    limiter.forget('a');
    assert.deepEqual([limiter.failures('a'), limiter.when('a')], [0, 1000]);
  });

  test('stays at the maximum however often a key fails', () => {
    const limiter = new ExponentialLimiter({ baseMs: 5, maxMs: 1_000_000 });
    for (let i = 0; i < 3000; i++) limiter.when('a');
    assert.equal(limiter.when('a'), 1_000_000);
  });
});

describe('BucketLimiter', () => {
  test('reserves: the 150th call at once waits five seconds', () => {
    const limiter = new BucketLimiter({ qps: 10, burst: 100, clock: new ManualClock() });
    const delays = Array.from({ length: 150 }, () => limiter.when());
    assert.equal(delays[99], 0);
    assert.equal(delays[100], 100);
    assert.equal(Math.round(delays[149] ?? 0), 5000);
    limiter.forget();
    assert.ok(limiter.when() > 5000, 'nothing is given back');
  });
});

describe('MaxOfLimiter', () => {
  test('takes the max wait, and forgets in all', () => {
    const slow = new ExponentialLimiter({ baseMs: 500, maxMs: 500 });
    const doubling = new ExponentialLimiter({ baseMs: 100, maxMs: 10_000 });
    const limiter = new MaxOfLimiter([slow, doubling]);
    assert.deepEqual(
      Array.from({ length: 5 }, () => limiter.when('a')),
      [500, 500, 500, 800, 1600],
    );
    assert.equal(limiter.failures('a'), 5);
    limiter.forget('a');
    assert.deepEqual([slow.failures('a'), doubling.failures('a'), limiter.failures('a')], [0, 0, 0]);
  });

  test('of 300 keys that fail at once 100 come back nearly at once, the others ten each second', () => {
    const clock = new ManualClock();
    const limiter = new MaxOfLimiter([
      new ExponentialLimiter({ baseMs: 5, maxMs: 1_000_000 }),
      new BucketLimiter({ qps: 10, burst: 100, clock }),
    ]);
    const delays = Array.from({ length: 300 }, (_, i) => limiter.when(`k${i}`));
    assert.deepEqual(new Set(delays.slice(0, 100)), new Set([5]));
    for (let i = 100; i < 300; i++) assert.equal(Math.round(delays[i] ?? 0), (i - 99) * 100);
  });
});

describe('TokenBucket', () => {
  test('starts full, refills at its rate and never above its size', async () => {
    const clock = new ManualClock({ turns: 1 });
    const bucket = new TokenBucket({ qps: 2, burst: 3, clock });
    assert.deepEqual(
      [bucket.tryTake(), bucket.tryTake(), bucket.tryTake(), bucket.tryTake()],
      [true, true, true, false],
    );
    await clock.advance(499);
    assert.equal(bucket.tryTake(), false);
    await clock.advance(1);
    assert.deepEqual([bucket.tryTake(), bucket.tryTake()], [true, false]);
    await clock.advance(3_600_000);
    assert.deepEqual(
      [1, 2, 3, 4].map(() => bucket.tryTake()),
      [true, true, true, false],
    );
  });

  test('waiters are served in the order they came', async () => {
    const clock = new ManualClock({ turns: 1 });
    const bucket = new TokenBucket({ qps: 1, burst: 1, clock });
    const served: [string, number][] = [];
    for (const name of ['a', 'b', 'c']) void bucket.wait().then(() => served.push([name, clock.monotonicMs()]));
    await clock.advance(5000);
    assert.deepEqual(served, [
      ['a', 0],
      ['b', 1000],
      ['c', 2000],
    ]);
  });

  test('a wait that is aborted ends with the reason', async () => {
    const clock = new ManualClock({ turns: 1 });
    const bucket = new TokenBucket({ qps: 1, burst: 1, clock });
    bucket.reserve();
    const stop = new AbortController();
    const waiting = bucket.wait(stop.signal);
    const reason = new Error('stop');
    stop.abort(reason);
    await assert.rejects(waiting, reason);
    assert.equal(clock.pending, 0);
  });
});

describe('TokenBucket', () => {
  test('a wait that is aborted gives its token back: those behind it move up', async () => {
    const clock = new ManualClock({ turns: 1 });
    const bucket = new TokenBucket({ qps: 5, burst: 1, clock });
    await bucket.wait();
    const stop = new AbortController();
    const aborted = Array.from({ length: 350 }, () => assert.rejects(bucket.wait(stop.signal), /enough/));
    const behind = bucket.wait();
    stop.abort(new Error('enough'));
    await Promise.all(aborted);
    await clock.advance(200);
    assert.equal(await behind, 200);
    assert.equal(clock.pending, 0);
  });

  test('waiters get their tokens in the order they came, and none waits longer than those before it need', async () => {
    const clock = new ManualClock({ turns: 1 });
    const bucket = new TokenBucket({ qps: 3, burst: 2, clock });
    const served: number[] = [];
    const waits = Array.from({ length: 11 }, async (_, i) => {
      await bucket.wait();
      served.push(i);
    });
    await clock.advance(3000);
    await Promise.all(waits);
    assert.deepEqual(
      served,
      Array.from({ length: 11 }, (_, i) => i),
    );
  });
});

describe('Backoff', () => {
  test('doubles from 0.8 s to 30 s, each stretched by up to its own length', () => {
    for (const random of [0, 0.5, 0.999]) {
      const backoff = new Backoff({ clock: new ManualClock(), random: () => random });
      const want = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30].map((seconds) => Math.round(seconds * 1000 * (1 + random)));
      assert.deepEqual(
        want.map(() => Math.round(backoff.next())),
        want,
      );
    }
  });

  test('starts over when no pause was asked for during more than two minutes', async () => {
    const clock = new ManualClock({ turns: 1 });
    const backoff = new Backoff({ clock, random: () => 0 });
    for (let i = 0; i < 7; i++) backoff.next();
    await clock.advance(120_000);
    assert.equal(backoff.next(), 30_000);
    await clock.advance(120_001);
    assert.equal(backoff.next(), 800);
  });

  test('a pause ends at once when its signal aborts', async () => {
    const clock = new ManualClock({ turns: 1 });
    const backoff = new Backoff({ clock, random: () => 0 });
    const stop = new AbortController();
    const waiting = backoff.wait(stop.signal);
    stop.abort(new Error('stop'));
    await assert.rejects(waiting, /stop/);
    assert.equal(clock.pending, 0);
  });
});
