/** How long the export is waited for. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PatientCalls } from '../../../provisioners/nfs-subdir/patient-calls.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';

const { signal } = new AbortController();
const silence = { name: 'SilentShareError', message: 'the export at /export does not respond' };
const hung = (): Promise<never> => Promise.withResolvers<never>().promise;

/** Calls, and what became of those that were watched. */
function scene() {
  const clock = new ManualClock();
  const calls = new PatientCalls({ clock, mountPoint: '/export' });
  const ended: unknown[] = [];
  const watch = (call: Promise<unknown>): void =>
    void call.then(
      () => ended.push('done'),
      (error: unknown) => ended.push(error),
    );
  return { clock, calls, ended, watch };
}

describe('a call of the export', () => {
  test('that is short and hangs is given up after 15 s', async () => {
    const { clock, calls, ended, watch } = scene();
    watch(calls.run(hung, signal, { isShort: true }));
    await clock.advance(15_000 - 1);
    assert.deepEqual(ended, []);
    await clock.advance(1);
    assert.deepEqual(ended.map(String), [`${silence.name}: ${silence.message}`]);
    assert.equal(calls.abandoned, 1);
  });

  test('that may take long is given up once the export is found silent, and none is started until it answers', async () => {
    const { clock, calls, ended, watch } = scene();
    watch(calls.run(hung, signal));
    await clock.advance(3_600_000);
    assert.deepEqual(ended, []);
    calls.isSilent = true;
    await clock.advance(0);
    assert.deepEqual(ended.map(String), [`${silence.name}: ${silence.message}`]);
    let started = 0;
    const call = (): Promise<number> => Promise.resolve(++started);
    await assert.rejects(calls.run(call, signal), silence);
    assert.equal(started, 0);
    calls.isSilent = false;
    assert.equal(await calls.run(call, signal), 1);
  });

  test('that was given up counts as abandoned until it has ended', async () => {
    const { clock, calls, ended, watch } = scene();
    const late = Promise.withResolvers<undefined>();
    watch(calls.run(() => late.promise, signal, { isShort: true }));
    await clock.advance(15_000);
    assert.equal(calls.abandoned, 1);
    late.resolve(undefined);
    await clock.advance(0);
    assert.equal(calls.abandoned, 0);
    assert.equal(ended.length, 1);
  });

  test('that answers in time is no longer waited for', async () => {
    const { clock, calls } = scene();
    assert.equal(await calls.run(() => Promise.resolve('there'), signal, { isShort: true }), 'there');
    await clock.advance(60_000);
    assert.equal(calls.abandoned, 0);
  });
});
