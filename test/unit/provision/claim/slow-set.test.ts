import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { HeldBackError, SlowSet, slowRetentionMs } from '../../../../src/provision/claim/slow-set.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';

/** The error must name what the driver said. */
function holdsBack(slow: SlowSet, claimUid: string, classUid: string): boolean {
  try {
    slow.check(claimUid, classUid);
    return false;
  } catch (error) {
    assert.ok(error instanceof HeldBackError);
    assert.match(error.message, /^skipping volume provisioning for pvc u1, .* infeasible error: no such pool$/);
    return true;
  }
}

describe('SlowSet', () => {
  test('a claim is held back for five minutes', async () => {
    const clock = new ManualClock({ turns: 1 });
    const slow = new SlowSet({ clock });
    slow.add('u1', 's1', 'no such pool');
    assert.equal(holdsBack(slow, 'u1', 's1'), true);
    assert.equal(holdsBack(slow, 'u2', 's1'), false);
    await clock.advance(299_999);
    assert.equal(holdsBack(slow, 'u1', 's1'), true);
    await clock.advance(1);
    assert.equal(holdsBack(slow, 'u1', 's1'), false);
  });

  test('no option changes the five minutes', () => {
    assert.equal(slowRetentionMs, 300_000);
  });

  test('a second failure does not prolong the wait', async () => {
    const clock = new ManualClock({ turns: 1 });
    const slow = new SlowSet({ clock });
    slow.add('u1', 's1', 'no such pool');
    await clock.advance(200_000);
    slow.add('u1', 's1', 'no such pool');
    await clock.advance(100_000);
    assert.equal(holdsBack(slow, 'u1', 's1'), false);
  });

  test('another class ends the wait for good', () => {
    const slow = new SlowSet({ clock: new ManualClock({ turns: 1 }) });
    slow.add('u1', 's1', 'no such pool');
    assert.equal(holdsBack(slow, 'u1', 's2'), false);
    assert.equal(holdsBack(slow, 'u1', 's1'), false, 'the entry is gone');
  });

  test('a claim that failed again after its wait is held back again', async () => {
    const clock = new ManualClock({ turns: 1 });
    const slow = new SlowSet({ clock });
    slow.add('u1', 's1', 'no such pool');
    await clock.advance(300_000);
    slow.add('u1', 's1', 'no such pool');
    assert.equal(holdsBack(slow, 'u1', 's1'), true);
  });

  test('nothing is kept of a claim that is gone', () => {
    const slow = new SlowSet({ clock: new ManualClock({ turns: 1 }) });
    slow.add('u1', 's1', 'no such pool');
    slow.delete('u1');
    assert.equal(holdsBack(slow, 'u1', 's1'), false);
  });
});
