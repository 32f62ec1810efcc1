import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type CheckedStep, type Finding, walk } from '../../../src/explain/explanation.ts';

const ok: Finding = { state: 'ok', detail: 'fine' };
const stuck: Finding = { state: 'stuck', cause: 'driver-error', message: 'It burns.', cure: 'Put it out' };

function checked(...findings: (Finding | undefined)[]): CheckedStep<unknown>[] {
  return findings.map((found, index) => ({ step: `step ${index + 1}`, checks: [() => found] }));
}

describe('walk', () => {
  test('stops at the first step that holds the object, and leaves out what does not apply', () => {
    const never = { step: 'never', checks: [() => assert.fail('this step is behind the one that holds it')] };
    assert.deepEqual(walk('ns/c', {}, [...checked(ok, undefined, stuck), never]), {
      object: 'ns/c',
      verdict: 'stuck',
      cause: 'driver-error',
      message: 'It burns.',
      cure: 'Put it out',
      steps: [
        { step: 'step 1', state: 'ok', detail: 'fine' },
        { step: 'step 3', state: 'stuck', detail: 'It burns.' },
      ],
    });
  });

  test('calls bound what is fine to its end', () => {
    const { verdict, cause, cure } = walk('ns/c', {}, checked({ state: 'ok', cause: 'bound', message: 'Bound.' }));
    assert.deepEqual({ verdict, cause, cure }, { verdict: 'bound', cause: 'bound', cure: '' });
  });

  test('goes on behind what is unknown, and believes what is certain nevertheless', () => {
    const unread: Finding = { state: 'unknown', detail: 'the permission to list leases is missing' };
    const { verdict, cause, steps } = walk('ns/c', {}, checked(unread, stuck));
    assert.deepEqual({ verdict, cause }, { verdict: 'stuck', cause: 'driver-error' });
    assert.deepEqual(
      steps.map(({ state }) => state),
      ['unknown', 'stuck'],
    );
  });

  test('does not believe behind what is unknown what only follows from nothing being wrong', () => {
    const unread: Finding = { state: 'unknown', detail: 'the permission to list leases is missing' };
    const presumed: Finding = { state: 'waiting', cause: 'in-progress', message: 'It works.', presumes: true };
    assert.equal(walk('ns/c', {}, checked(ok, presumed)).verdict, 'waiting');
    const { verdict, cause, message } = walk('ns/c', {}, checked(unread, presumed));
    assert.deepEqual({ verdict, cause }, { verdict: 'unknown', cause: null });
    assert.match(message, /the permission to list leases is missing/);
  });

  test('ends at what nothing can be said without', () => {
    const unread: Finding = { state: 'unknown', detail: 'the permission to list pods is missing', ends: true };
    const { verdict, steps } = walk('ns/c', {}, checked(unread, stuck));
    assert.equal(verdict, 'unknown');
    assert.equal(steps.length, 1);
  });
});
