import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SaveLook } from '../../../../src/provision/volume/save-guard.ts';

/** Both clocks, set by hand: a machine that sleeps may stop one of them. */
function scene(look: () => Promise<void> = () => Promise.resolve()) {
  const now = { monotonicMs: 1000, wallMs: 5000 };
  const clock = { monotonicMs: () => now.monotonicMs, wallMs: () => now.wallMs };
  return { now, clock, look: new SaveLook({ clock, look }) };
}

describe('a live look before a save', () => {
  test('is none before it was taken', async () => {
    const { look } = scene();
    assert.equal(look.isValid, false);
    await look.renewed();
    assert.equal(look.isValid, true);
  });

  test('may have begun before', () => {
    const { now, clock } = scene();
    const look = new SaveLook({ clock, look: () => Promise.resolve(), beganAt: { ...now } });
    assert.equal(look.isValid, true);
    now.monotonicMs += 10_001;
    assert.equal(look.isValid, false);
  });

  for (const clock of ['monotonicMs', 'wallMs'] as const) {
    test(`counts for ten seconds of the clock ${clock}`, async () => {
      const { look, now } = scene();
      await look.renewed();
      now[clock] += 10_000;
      assert.equal(look.isValid, true);
      now[clock] += 1;
      assert.equal(look.isValid, false);
      await look.renewed();
      assert.equal(look.isValid, true);
    });
  }

  test('is as old as its request, not its answer', async () => {
    const { look, now } = scene(() => {
      now.monotonicMs += 11_000;
      return Promise.resolve();
    });
    await look.renewed();
    assert.equal(look.isValid, false);
  });

  test('that fails stays invalid', async () => {
    const { look } = scene(() => Promise.reject(new Error('gone')));
    await assert.rejects(look.renewed(), /gone/);
    assert.equal(look.isValid, false);
  });
});
