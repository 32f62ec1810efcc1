import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ClaimStates, heldBackMs, InfeasibleClaims } from '../../../../src/provision/claim/claim-states.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';

describe('InfeasibleClaims', () => {
  test('a claim is held back for five minutes', async () => {
    const clock = new ManualClock({ turns: 1 });
    const infeasible = new InfeasibleClaims({ clock, states: new ClaimStates() });
    infeasible.add('u1', 's1');
    assert.equal(infeasible.mustWait('u1', 's1'), true);
    assert.equal(infeasible.mustWait('u2', 's1'), false);
    assert.deepEqual([infeasible.leftMs('u1'), infeasible.leftMs('u2')], [300_000, 0]);
    await clock.advance(299_999);
    assert.equal(infeasible.leftMs('u1'), 1);
    assert.equal(infeasible.mustWait('u1', 's1'), true);
    await clock.advance(1);
    assert.equal(infeasible.mustWait('u1', 's1'), false);
  });

  test('no option changes the five minutes', () => {
    assert.equal(heldBackMs, 300_000);
  });

  test('a second failure does not prolong the wait', async () => {
    const clock = new ManualClock({ turns: 1 });
    const infeasible = new InfeasibleClaims({ clock, states: new ClaimStates() });
    infeasible.add('u1', 's1');
    await clock.advance(200_000);
    infeasible.add('u1', 's1');
    await clock.advance(100_000);
    assert.equal(infeasible.mustWait('u1', 's1'), false);
  });

  test('another class ends the wait for good', () => {
    const infeasible = new InfeasibleClaims({ clock: new ManualClock({ turns: 1 }), states: new ClaimStates() });
    infeasible.add('u1', 's1');
    assert.equal(infeasible.mustWait('u1', 's2'), false);
    assert.equal(infeasible.mustWait('u1', 's1'), false, 'the entry is gone');
  });

  test('a claim that failed again after its wait is held back again', async () => {
    const clock = new ManualClock({ turns: 1 });
    const infeasible = new InfeasibleClaims({ clock, states: new ClaimStates() });
    infeasible.add('u1', 's1');
    await clock.advance(300_000);
    infeasible.add('u1', 's1');
    assert.equal(infeasible.mustWait('u1', 's1'), true);
  });

  test('nothing is kept of a claim whose state is dropped', () => {
    const states = new ClaimStates();
    const infeasible = new InfeasibleClaims({ clock: new ManualClock({ turns: 1 }), states });
    infeasible.add('u1', 's1');
    states.drop('u1');
    assert.equal(infeasible.mustWait('u1', 's1'), false);
    assert.equal(states.get('u1'), undefined, 'a question makes no state');
  });

  test('no claim is held back once all are released', () => {
    const infeasible = new InfeasibleClaims({ clock: new ManualClock({ turns: 1 }), states: new ClaimStates() });
    infeasible.add('u1', 's1');
    infeasible.clear();
    assert.equal(infeasible.leftMs('u1'), 0);
  });
});
