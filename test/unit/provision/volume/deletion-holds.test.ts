import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Moment } from '../../../../src/base/permit.ts';
import type { PersistentVolume } from '../../../../src/provision/objects.ts';
import { CacheFreshness } from '../../../../src/provision/volume/deletion-holds.ts';

const startMs = Date.parse('2026-01-01T00:00:00Z');
const changed = (afterMs: number): PersistentVolume => ({
  metadata: { name: 'v' },
  spec: {},
  status: { phase: 'Released', lastPhaseTransitionTime: new Date(startMs + afterMs).toISOString() },
});

function scene() {
  let now: Moment = { monotonicMs: 0, wallMs: 0 };
  const freshness = new CacheFreshness({ monotonicMs: () => now.monotonicMs, wallMs: () => now.wallMs });
  /** @param setMs - how far the clock was set meanwhile. */
  const after = (ms: number, setMs = 0): CacheFreshness => {
    now = { monotonicMs: 777_000 + ms, wallMs: startMs + ms + setMs };
    return freshness;
  };
  return { after };
}

describe('whether the cache of volumes is fresh', () => {
  test('the cache is fresh for a volume released at most two seconds ago', () => {
    const { after } = scene();
    after(100).note(changed(0));
    assert.equal(after(2000).isFresh(changed(0)), true);
    assert.equal(after(2001).isFresh(changed(0)), false);
  });

  test('it stays fresh for an earlier one while later releases arrive', () => {
    const { after } = scene();
    after(0).note(changed(0));
    after(9500).note(changed(9000));
    after(9600).note(changed(4000));
    assert.equal(after(11_000).isFresh(changed(0)), true);
    assert.equal(after(11_001).isFresh(changed(0)), false);
  });

  test('a clock of the API server that is ahead by up to a second counts as equal', () => {
    const { after } = scene();
    after(0).note(changed(1000));
    assert.equal(after(2000).isFresh(changed(1000)), true);
    assert.equal(after(2001).isFresh(changed(1000)), false);
  });

  for (const { title, aheadMs, lateMs } of [
    { title: 'that is less late than the clock is ahead', aheadMs: 600_000, lateMs: 300_000 },
    { title: 'that is as late as the clock is ahead', aheadMs: 600_000, lateMs: 600_000 },
    { title: 'that is later than the clock is ahead', aheadMs: 600_000, lateMs: 601_500 },
  ]) {
    test(`where the clock of the API server is ahead, an event ${title} does not make it fresh`, () => {
      const { after } = scene();
      after(0).note(changed(aheadMs)); // in time
      const late = changed(10_000 + aheadMs);
      after(10_000 + lateMs).note(late);
      assert.equal(after(10_000 + lateMs).isFresh(late), false);
    });
  }

  test('the first event that shows that the clock of the API server is ahead does not make it fresh', () => {
    const { after } = scene();
    after(300_000).note(changed(600_000));
    assert.equal(after(300_000).isFresh(changed(600_000)), false);
  });

  for (const setMs of [-3_600_000, 3_600_000]) {
    test(`a clock that is set by ${setMs / 1000} s does not make it fresh`, () => {
      const { after } = scene();
      after(0).note(changed(0));
      assert.equal(after(2001, setMs).isFresh(changed(0)), false);
    });
  }

  test('a volume without lastPhaseTransitionTime needs no live read', () => {
    const { after } = scene();
    const { status: _status, ...old } = changed(0);
    after(0).note(old);
    assert.equal(after(3_600_000).isFresh(old), true);
  });
});
