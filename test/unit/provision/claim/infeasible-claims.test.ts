import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { HeldBackError, InfeasibleClaims, heldBackMs } from '../../../../src/provision/claim/infeasible-claims.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';

/** The error must name what the driver said. */
function holdsBack(infeasible: InfeasibleClaims, claimUid: string, classUid: string): boolean {
  try {
    infeasible.checkNotHeldBack(claimUid, classUid);
    return false;
  } catch (error) {
    assert.ok(error instanceof HeldBackError);
    assert.match(error.message, /^skipping volume provisioning for pvc u1, .* infeasible error: no such pool$/);
    return true;
  }
}

describe('InfeasibleClaims', () => {
  test('a claim is held back for five minutes', async () => {
    const clock = new ManualClock({ turns: 1 });
    const infeasible = new InfeasibleClaims({ clock });
    infeasible.add('u1', 's1', 'no such pool');
    assert.equal(holdsBack(infeasible, 'u1', 's1'), true);
    assert.equal(holdsBack(infeasible, 'u2', 's1'), false);
    await clock.advance(299_999);
    assert.equal(holdsBack(infeasible, 'u1', 's1'), true);
    await clock.advance(1);
    assert.equal(holdsBack(infeasible, 'u1', 's1'), false);
  });

  test('no option changes the five minutes', () => {
    assert.equal(heldBackMs, 300_000);
  });

  test('a second failure does not prolong the wait', async () => {
    const clock = new ManualClock({ turns: 1 });
    const infeasible = new InfeasibleClaims({ clock });
    infeasible.add('u1', 's1', 'no such pool');
    await clock.advance(200_000);
    infeasible.add('u1', 's1', 'no such pool');
    await clock.advance(100_000);
    assert.equal(holdsBack(infeasible, 'u1', 's1'), false);
  });

  test('another class ends the wait for good', () => {
    const infeasible = new InfeasibleClaims({ clock: new ManualClock({ turns: 1 }) });
    infeasible.add('u1', 's1', 'no such pool');
    assert.equal(holdsBack(infeasible, 'u1', 's2'), false);
    assert.equal(holdsBack(infeasible, 'u1', 's1'), false, 'the entry is gone');
  });

  test('a claim that failed again after its wait is held back again', async () => {
    const clock = new ManualClock({ turns: 1 });
    const infeasible = new InfeasibleClaims({ clock });
    infeasible.add('u1', 's1', 'no such pool');
    await clock.advance(300_000);
    infeasible.add('u1', 's1', 'no such pool');
    assert.equal(holdsBack(infeasible, 'u1', 's1'), true);
  });

  test('nothing is kept of a claim that is gone', () => {
    const infeasible = new InfeasibleClaims({ clock: new ManualClock({ turns: 1 }) });
    infeasible.add('u1', 's1', 'no such pool');
    infeasible.delete('u1');
    assert.equal(holdsBack(infeasible, 'u1', 's1'), false);
  });
});
