import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CallProgress } from '../../../src/csi/call-progress.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';

/** What is read, as the listener is told, and checks that nobody has answered yet. */
function scene() {
  const clock = new ManualClock({ turns: 1 });
  const checks: { sentAtMs: number; end: () => void }[] = [];
  const read: number[] = [];
  const progress = new CallProgress({
    clock,
    check: () => new Promise<void>((resolve) => checks.push({ sentAtMs: clock.monotonicMs(), end: resolve })),
  });
  progress.onProgress((untilMs) => read.push(untilMs));
  return { clock, checks, read, progress };
}

describe('CallProgress', () => {
  test('is not behind before a call is given up, whatever is responded', () => {
    const { progress, read } = scene();
    assert.equal(progress.isBehind, false);
    progress.responded(5);
    assert.equal(progress.isBehind, false);
    assert.deepEqual(read, []);
  });

  test('is behind until a call is responded to that was sent after one was given up', async () => {
    const { clock, progress, read } = scene();
    await clock.advance(1000);
    progress.givenUp();
    progress.responded(400);
    progress.responded(1000); // in the same millisecond: it may have been sent before
    assert.deepEqual([progress.isBehind, read], [true, [400, 1000]]);
    progress.responded(1001);
    assert.deepEqual([progress.isBehind, read], [false, [400, 1000, Infinity]]);
  });

  test('names the time until which everything was read, where more was given up later', async () => {
    const { clock, progress, read } = scene();
    await clock.advance(1000);
    progress.givenUp();
    await clock.advance(1000);
    progress.givenUp();
    progress.responded(1500);
    assert.deepEqual([progress.isBehind, read], [true, [1500]]);
    progress.responded(1200); // an earlier call, whose response came late
    assert.deepEqual(read, [1500]);
    progress.responded(2001);
    assert.deepEqual([progress.isBehind, read], [false, [1500, Infinity]]);
  });

  test('makes one check at a time, again while it is behind, and none once a response came', async () => {
    const { clock, checks, progress } = scene();
    await clock.advance(1000);
    progress.givenUp();
    progress.givenUp();
    assert.equal(checks.length, 0);
    await clock.advance(100);
    assert.deepEqual(
      checks.map(({ sentAtMs }) => sentAtMs),
      [1100],
    );
    await clock.advance(5000);
    assert.equal(checks.length, 1, 'the first one is under way');
    checks[0]?.end(); // without a response
    await clock.advance(200);
    assert.equal(checks.length, 2);
    progress.responded(6100);
    checks[1]?.end();
    await clock.advance(10_000);
    assert.equal(checks.length, 2);
  });

  test('makes checks ever more rarely while none gets a response, every half a minute in the end', async () => {
    const { clock, checks, progress } = scene();
    const pauses: number[] = [];
    progress.givenUp();
    for (let n = 0; n < 12; n++) {
      const endedMs = clock.monotonicMs();
      await clock.advance(30_000);
      pauses.push((checks.at(-1)?.sentAtMs ?? NaN) - endedMs);
      checks.at(-1)?.end();
      await clock.advance(0);
    }
    assert.deepEqual(pauses.slice(0, 3), [100, 200, 400]);
    assert.deepEqual(pauses.slice(-3), [30_000, 30_000, 30_000]);
    progress.responded(clock.monotonicMs() + 1);
    const before = checks.length;
    await clock.advance(1000);
    progress.givenUp();
    await clock.advance(100);
    assert.equal(checks.length, before + 1, 'the first pause again');
  });

  test('makes no check where another call was responded to first', async () => {
    const { clock, checks, progress } = scene();
    await clock.advance(1000);
    progress.givenUp();
    await clock.advance(50);
    progress.responded(1020);
    await clock.advance(1000);
    assert.equal(checks.length, 0);
  });

  test('takes a connection that is gone as an end: what was not read of it never will be', async () => {
    const { clock, progress, read } = scene();
    await clock.advance(1000);
    progress.givenUp();
    await clock.advance(1);
    progress.disconnected();
    assert.deepEqual([progress.isBehind, read], [false, [Infinity]]);
  });

  test('makes no check after it was disposed, and tells a disposed listener nothing', async () => {
    const { clock, checks, progress, read } = scene();
    const more: number[] = [];
    progress.onProgress((untilMs) => more.push(untilMs))[Symbol.dispose]();
    await clock.advance(1000);
    progress.givenUp();
    progress[Symbol.dispose]();
    await clock.advance(1000);
    assert.equal(checks.length, 0);
    progress.responded(2000);
    assert.deepEqual([read, more], [[Infinity], []]);
  });
});
