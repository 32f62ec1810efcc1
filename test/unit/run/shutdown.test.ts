import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, test } from 'node:test';
import { silentLogger } from '../../../src/base/logger.ts';
import { drainOnFailure, listenForShutdown, type SignalSource } from '../../../src/run/shutdown.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { recordedLogger } from '../../support/fakes/recorded-logger.ts';

function listen(options: { callTimeoutMs?: number; dieAtOnce?: (signal: string) => void } = {}) {
  const signals = new EventEmitter() as EventEmitter & SignalSource;
  const clock = new ManualClock();
  const secondSignals: string[] = [];
  const shutdown = listenForShutdown({
    signals,
    clock,
    logger: silentLogger,
    callTimeoutMs: options.callTimeoutMs ?? 10_000,
    dieAtOnce: options.dieAtOnce,
    onSecondSignal: () => secondSignals.push('second'),
  });
  return { signals, clock, shutdown, secondSignals };
}

describe('listenForShutdown', () => {
  test('stops at the first signal and aborts when the grace is over', async () => {
    const { signals, clock, shutdown } = listen();
    assert.equal(shutdown.stop.aborted, false);
    signals.emit('SIGTERM');
    assert.deepEqual([shutdown.stop.aborted, shutdown.abort.aborted], [true, false]);
    await clock.advance(24_999);
    assert.equal(shutdown.abort.aborted, false);
    await clock.advance(2);
    assert.equal(shutdown.abort.aborted, true);
    assert.equal(shutdown.failure, undefined);
  });

  test('waits for the longest call to the driver', async () => {
    const { signals, clock, shutdown } = listen({ callTimeoutMs: 150_000 });
    signals.emit('SIGINT');
    await clock.advance(154_000);
    assert.equal(shutdown.abort.aborted, false);
    await clock.advance(1001);
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
    await clock.advance(24_999);
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
    const { signals, shutdown } = listen({ dieAtOnce: (signal) => deaths.push(signal) });
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
