import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RecentCalls } from '../../../src/diagnostics/status-page/recent-calls.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';

describe('RecentCalls', () => {
  test('counts the calls of the last five minutes, failed ones apart', async () => {
    const clock = new ManualClock();
    const calls = new RecentCalls(clock);
    calls.record('CreateVolume', { failed: true, seconds: 1 });
    await clock.advance(3 * 60_000);
    for (let count = 0; count < 3; count++) calls.record('CreateVolume', { failed: false, seconds: 2 });
    const [before] = calls.list();
    assert.deepEqual([before?.count, before?.failed], [4, 1]);
    await clock.advance(2 * 60_000);
    const [after] = calls.list();
    assert.deepEqual([after?.count, after?.failed], [3, 0]);
    await clock.advance(3_600_000);
    const [late] = calls.list();
    assert.deepEqual([late?.count, late?.medianSeconds], [0, 2]);
  });

  test('has median and 95 % of the last 128 calls of a kind', () => {
    const calls = new RecentCalls(new ManualClock());
    for (let count = 0; count < 1000; count++) calls.record('a', { failed: false, seconds: 100 });
    for (let count = 1; count <= 128; count++) calls.record('a', { failed: false, seconds: count });
    const [kind] = calls.list();
    assert.deepEqual([kind?.medianSeconds, kind?.p95Seconds], [64, 121]);
  });

  test('lists kinds in an order that does not depend on which came first: the calls to the driver, then the requests', () => {
    const calls = new RecentCalls(new ManualClock());
    const names = ['watch persistentvolumes', 'DeleteVolume', 'create events', 'CreateVolume'];
    for (const name of names) calls.record(name, { failed: false, seconds: 1 });
    assert.deepEqual(
      calls.list().map(({ name }) => name),
      ['CreateVolume', 'DeleteVolume', 'create events', 'watch persistentvolumes'],
    );
  });

  test('keeps a bounded number of kinds: further ones are counted together', () => {
    const calls = new RecentCalls(new ManualClock());
    for (let kind = 0; kind < 1000; kind++) calls.record(`kind ${kind}`, { failed: false, seconds: 1 });
    const list = calls.list();
    assert.equal(list.length, 65);
    assert.equal(list.at(-1)?.name, 'other');
    assert.equal(list.at(-1)?.count, 936);
  });
});
