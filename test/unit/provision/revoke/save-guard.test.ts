import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LiveReadPermit } from '../../../../src/provision/revoke/save-guard.ts';

/** Both clocks, set by hand: a machine that sleeps may stop one of them. */
function scene(read: () => Promise<void> = () => Promise.resolve()) {
  const now = { monotonicMs: 1000, wallMs: 5000 };
  const clock = { monotonicMs: () => now.monotonicMs, wallMs: () => now.wallMs };
  return { now, clock, permit: new LiveReadPermit({ clock, read }) };
}

describe('a live read before a save', () => {
  test('is not valid before it was done', async () => {
    const { permit } = scene();
    assert.equal(permit.isValid, false);
    await permit.renewed();
    assert.equal(permit.isValid, true);
  });

  test('may have begun before', () => {
    const { now, clock } = scene();
    const permit = new LiveReadPermit({ clock, read: () => Promise.resolve(), beganAt: { ...now } });
    assert.equal(permit.isValid, true);
    now.monotonicMs += 10_001;
    assert.equal(permit.isValid, false);
  });

  for (const clock of ['monotonicMs', 'wallMs'] as const) {
    test(`counts for ten seconds of the clock ${clock}`, async () => {
      const { permit, now } = scene();
      await permit.renewed();
      now[clock] += 10_000;
      assert.equal(permit.isValid, true);
      now[clock] += 1;
      assert.equal(permit.isValid, false);
      await permit.renewed();
      assert.equal(permit.isValid, true);
    });
  }

  test('is as old as its request, not its response', async () => {
    const { permit, now } = scene(() => {
      now.monotonicMs += 11_000;
      return Promise.resolve();
    });
    await permit.renewed();
    assert.equal(permit.isValid, false);
  });

  test('that fails stays invalid', async () => {
    const { permit } = scene(() => Promise.reject(new Error('gone')));
    await assert.rejects(permit.renewed(), /gone/);
    assert.equal(permit.isValid, false);
  });
});
