import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, test } from 'node:test';
import {
  drainOnFailure,
  listenForShutdown,
  onceAborted,
  shutdownTimes,
  type SignalSource,
} from '../../../src/run/shutdown.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';

const defaultTimes = shutdownTimes(10_000);

function listen(options: { callTimeoutMs?: number; dieAtOnce?: (signal: string) => void } = {}) {
  const signals = new EventEmitter() as EventEmitter & SignalSource;
  const clock = new ManualClock();
  const secondSignals: string[] = [];
  const lines: LogLine[] = [];
  const overdue: number[] = [];
  const shutdown = listenForShutdown({
    signals,
    clock,
    logger: recordedLogger(lines),
    callTimeoutMs: options.callTimeoutMs ?? 10_000,
    dieAtOnce: options.dieAtOnce,
    onSecondSignal: () => secondSignals.push('second'),
    onOverdue: () => overdue.push(clock.monotonicMs()),
  });
  const stages = (): boolean[] =>
    [shutdown.stop, shutdown.abort, shutdown.quiet, shutdown.end].map(({ aborted }) => aborted);
  return { signals, clock, shutdown, secondSignals, lines, overdue, stages };
}

describe('shutdownTimes', () => {
  for (const { callTimeoutMs, totalMs, gracePeriodSeconds } of [
    { callTimeoutMs: 1000, totalMs: 25_000, gracePeriodSeconds: 30 },
    { callTimeoutMs: 20_000, totalMs: 25_000, gracePeriodSeconds: 30 },
    { callTimeoutMs: 20_500, totalMs: 25_500, gracePeriodSeconds: 31 },
    { callTimeoutMs: 150_000, totalMs: 155_000, gracePeriodSeconds: 160 },
  ]) {
    test(`with calls of ${callTimeoutMs} ms a shutdown takes ${totalMs} ms`, () => {
      const times = shutdownTimes(callTimeoutMs);
      assert.deepEqual([times.totalMs, times.gracePeriodSeconds], [totalMs, gracePeriodSeconds]);
    });
  }

  test('leaves a call that began before the signal its whole time, and some time to save its volume', () => {
    for (const callTimeoutMs of [0, 20_000, 21_000, 600_000]) {
      assert.ok(shutdownTimes(callTimeoutMs).abortMs >= callTimeoutMs + 1000);
    }
  });
});

describe('listenForShutdown', () => {
  test('stops at the first signal and aborts when the grace is over', async () => {
    const { signals, clock, shutdown } = listen();
    assert.equal(shutdown.stop.aborted, false);
    signals.emit('SIGTERM');
    assert.deepEqual([shutdown.stop.aborted, shutdown.abort.aborted], [true, false]);
    await clock.advance(defaultTimes.abortMs - 1);
    assert.equal(shutdown.abort.aborted, false);
    await clock.advance(2);
    assert.equal(shutdown.abort.aborted, true);
    assert.equal(shutdown.failure, undefined);
  });

  test('begins each stage at its time, whatever the stages before it need', async () => {
    const { signals, clock, stages, overdue, lines } = listen();
    signals.emit('SIGTERM');
    assert.deepEqual(stages(), [true, false, false, false]);
    await clock.advance(defaultTimes.abortMs);
    assert.deepEqual(stages(), [true, true, false, false]);
    await clock.advance(defaultTimes.quietMs - defaultTimes.abortMs);
    assert.deepEqual(stages(), [true, true, true, false]);
    await clock.advance(defaultTimes.endMs - defaultTimes.quietMs);
    assert.deepEqual(stages(), [true, true, true, true]);
    assert.deepEqual(overdue, []);
    await clock.advance(60_000);
    assert.deepEqual(overdue, [25_000]);
    assert.match(lines.at(-1)?.message ?? '', /has not ended, although it was aborted/);
  });

  test('is overdue once, also where a failure has followed the signal', async () => {
    const { signals, clock, shutdown, overdue } = listen();
    signals.emit('SIGTERM');
    await clock.advance(1000);
    shutdown.fail(new Error('the driver is gone'));
    await clock.advance(60_000);
    assert.deepEqual(overdue, [25_000]);
  });

  test('is never overdue once the work has ended', async () => {
    const { signals, clock, shutdown, overdue, lines } = listen();
    signals.emit('SIGTERM');
    shutdown[Symbol.dispose]();
    const before = lines.length;
    await clock.advance(25_000);
    assert.deepEqual([overdue, lines.length - before], [[], 0]);
  });

  test('has the same time after a failure, so that the lease can be released', async () => {
    const { clock, shutdown, stages, overdue } = listen();
    shutdown.fail(new Error('the driver is gone'));
    assert.deepEqual(stages(), [true, true, false, false]);
    await clock.advance(25_000);
    assert.deepEqual([stages(), overdue], [[true, true, true, true], [25_000]]);
  });

  test('logs once, at the start, the grace period that the Pod needs', () => {
    const { lines } = listen({ callTimeoutMs: 150_000 });
    assert.deepEqual(
      lines.map(({ fields }) => fields),
      [{ shutdownSeconds: 155, terminationGracePeriodSeconds: 160 }],
    );
  });

  test('waits for the longest call to the driver', async () => {
    const { signals, clock, shutdown } = listen({ callTimeoutMs: 150_000 });
    signals.emit('SIGINT');
    await clock.advance(150_999);
    assert.equal(shutdown.abort.aborted, false);
    await clock.advance(2);
    assert.equal(shutdown.abort.aborted, true);
  });

  test('ends at once at the second signal', () => {
    const { signals, secondSignals } = listen();
    signals.emit('SIGTERM');
    signals.emit('SIGTERM');
    assert.deepEqual(secondSignals, ['second']);
  });

  test('drains for a reason of its own as for a signal, and a first signal then changes nothing', async () => {
    const { signals, clock, shutdown, secondSignals } = listen();
    const reason = new Error('a cache has failed');
    shutdown.drain(reason);
    shutdown.drain(new Error('a consequence'));
    assert.equal(shutdown.failure, reason);
    assert.equal(shutdown.stop.reason, reason);
    signals.emit('SIGTERM');
    await clock.advance(defaultTimes.abortMs - 1);
    assert.deepEqual([shutdown.abort.aborted, secondSignals.length], [false, 0]);
    await clock.advance(2);
    assert.equal(shutdown.abort.aborted, true);
  });

  test('a signal that came before counts, whatever fails after it', () => {
    const { signals, shutdown } = listen();
    signals.emit('SIGTERM');
    shutdown.drain(new Error('a consequence'));
    assert.equal(shutdown.failure, undefined);
  });

  test('dies at the first signal without graceful release', () => {
    const deaths: string[] = [];
    const { signals, shutdown, lines } = listen({ dieAtOnce: (signal) => deaths.push(signal) });
    assert.deepEqual(lines, [], 'no grace period is needed');
    signals.emit('SIGTERM');
    assert.deepEqual(deaths, ['SIGTERM']);
    assert.equal(shutdown.stop.aborted, false);
  });

  test('keeps the first failure and ends everything', () => {
    const { shutdown } = listen();
    shutdown.fail(new Error('first'));
    shutdown.fail(new Error('second'));
    assert.equal(shutdown.failure?.message, 'first');
    assert.deepEqual([shutdown.stop.aborted, shutdown.abort.aborted], [true, true]);
  });

  test('leaves no listener behind', () => {
    const { signals, shutdown } = listen();
    shutdown[Symbol.dispose]();
    assert.equal(signals.listenerCount('SIGTERM') + signals.listenerCount('SIGINT'), 0);
  });
});

describe('onceAborted', () => {
  test('calls once with the reason, also if the signal has aborted before', () => {
    const reasons: Error[] = [];
    const note = (reason: Error): void => void reasons.push(reason);
    const controller = new AbortController();
    const over = new Error('over');
    onceAborted(controller.signal, note);
    const before = reasons.length;
    controller.abort(over);
    onceAborted(controller.signal, note);
    assert.deepEqual([before, reasons], [0, [over, over]]);
  });
});

describe('drainOnFailure', () => {
  test('logs the failure of a part and drains', () => {
    const { shutdown } = listen();
    const lines: Parameters<typeof recordedLogger>[0] = [];
    const reason = new Error('a cache has failed');
    drainOnFailure(shutdown, recordedLogger(lines))(reason);
    assert.equal(lines.length, 1);
    assert.equal(shutdown.failure, reason);
    assert.deepEqual([shutdown.stop.aborted, shutdown.abort.aborted], [true, false]);
  });
});
