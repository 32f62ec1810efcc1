import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { DrainingError } from '../../../src/provision/intent-journal/intent-journal.ts';
import { LastErrors } from '../../../src/provision/last-errors.ts';
import { VolumeInUseError } from '../../../src/provision/provisioner.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';

describe('LastErrors', () => {
  test('keeps the last error of a claim until it is dropped, cut to a thousand characters', () => {
    const errors = new LastErrors(systemClock);
    errors.add('u1', new Error('first'));
    errors.add('u1', new Error('x'.repeat(5000)));
    assert.equal(errors.get('u1')?.message, `${'x'.repeat(1000)}… (5,000 characters)`);
    errors.delete('u1');
    assert.equal(errors.get('u1'), undefined);
  });

  test('knows since when attempts fail in a row', async () => {
    const clock = new ManualClock();
    const errors = new LastErrors(clock);
    const sinceMs = clock.wallMs();
    errors.add('u1', new Error('first'));
    await clock.advance(60_000);
    errors.add('u1', new Error('second'));
    const { message, kind, atMs, sinceMs: firstMs } = errors.get('u1') ?? {};
    const expected = { message: 'second', kind: 'failed', atMs: sinceMs + 60_000, firstMs: sinceMs };
    assert.deepEqual({ message, kind, atMs, firstMs }, expected);
    errors.delete('u1');
    errors.add('u1', new Error('third'));
    assert.equal(errors.get('u1')?.sinceMs, sinceMs + 60_000);
  });

  test('does not count as failing the time in which the claim only waited', async () => {
    const clock = new ManualClock();
    const errors = new LastErrors(clock, { meaningOf: (text) => ({ cause: `meaning of ${text}` }) });
    errors.add('u1', new DrainingError());
    assert.equal(errors.get('u1')?.kind, 'waiting');
    await clock.advance(60_000);
    errors.add('u1', new Error('on fire'));
    const { kind, sinceMs, cause } = errors.get('u1') ?? {};
    assert.deepEqual(
      { kind, sinceMs, cause },
      { kind: 'failed', sinceMs: clock.wallMs(), cause: 'meaning of on fire' },
    );
  });

  test('of a volume in use is no failure', () => {
    const errors = new LastErrors(systemClock);
    errors.add('pv', new VolumeInUseError('it is attached'));
    const { kind, message } = errors.get('pv') ?? {};
    assert.deepEqual({ kind, message }, { kind: 'waiting', message: 'it is attached' });
  });

  test('of too many claims keeps those that failed last', () => {
    const errors = new LastErrors(systemClock);
    for (let claim = 0; claim < 20_000; claim++) errors.add(`u${claim}`, new Error('e'));
    errors.add('u0', new Error('again'));
    errors.add('one more', new Error('e'));
    assert.equal(errors.get('u0')?.message, 'again');
    assert.equal(errors.get('u1'), undefined);
    assert.notEqual(errors.get('u2'), undefined);
  });
});
