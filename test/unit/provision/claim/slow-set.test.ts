import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SlowSet, slowRetentionMs } from '../../../../src/provision/claim/slow-set.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';

describe('SlowSet', () => {
  test('a claim is held back for five minutes', async () => {
    const clock = new ManualClock({ turns: 1 });
    const slow = new SlowSet({ clock });
    slow.add('u1', 's1');
    assert.equal(slow.holdsBack('u1', 's1'), true);
    assert.equal(slow.holdsBack('u2', 's1'), false);
    await clock.advance(299_999);
    assert.equal(slow.holdsBack('u1', 's1'), true);
    await clock.advance(1);
    assert.equal(slow.holdsBack('u1', 's1'), false);
  });

  test('no option changes the five minutes', () => {
    assert.equal(slowRetentionMs, 300_000);
  });

  test('a second failure does not prolong the wait', async () => {
    const clock = new ManualClock({ turns: 1 });
    const slow = new SlowSet({ clock });
    slow.add('u1', 's1');
    await clock.advance(200_000);
    slow.add('u1', 's1');
    await clock.advance(100_000);
    assert.equal(slow.holdsBack('u1', 's1'), false);
  });

  test('another class ends the wait for good', () => {
    const slow = new SlowSet({ clock: new ManualClock({ turns: 1 }) });
    slow.add('u1', 's1');
    assert.equal(slow.holdsBack('u1', 's2'), false);
    assert.equal(slow.holdsBack('u1', 's1'), false, 'the entry is gone');
  });

  test('a claim that failed again after its wait is held back again', async () => {
    const clock = new ManualClock({ turns: 1 });
    const slow = new SlowSet({ clock });
    slow.add('u1', 's1');
    await clock.advance(300_000);
    slow.add('u1', 's1');
    assert.equal(slow.holdsBack('u1', 's1'), true);
  });

  test('nothing is kept of a claim that is gone', () => {
    const slow = new SlowSet({ clock: new ManualClock({ turns: 1 }) });
    slow.add('u1', 's1');
    slow.delete('u1');
    assert.equal(slow.holdsBack('u1', 's1'), false);
  });
});
