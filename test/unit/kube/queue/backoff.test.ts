import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Backoff } from '../../../../src/kube/queue/backoff.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';

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
