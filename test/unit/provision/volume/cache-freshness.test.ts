import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Moment } from '../../../../src/base/permit.ts';
import type { PersistentVolume } from '../../../../src/provision/objects.ts';
import { CacheFreshness } from '../../../../src/provision/volume/cache-freshness.ts';

const startMs = Date.parse('2026-01-01T00:00:00Z');
const changed = (afterMs: number): PersistentVolume => ({
  metadata: { name: 'v' },
  spec: {},
  status: { phase: 'Released', lastPhaseTransitionTime: new Date(startMs + afterMs).toISOString() },
});
/** @param setMs - how far the clock was set meanwhile. */
const after = (ms: number, setMs = 0): Moment => ({ monotonicMs: 777_000 + ms, wallMs: startMs + ms + setMs });

describe('whether the cache of volumes is fresh', () => {
  test('the cache is fresh for a volume released at most two seconds ago', () => {
    const freshness = new CacheFreshness();
    freshness.note(changed(0), after(100));
    assert.equal(freshness.isFresh(changed(0), after(2000)), true);
    assert.equal(freshness.isFresh(changed(0), after(2001)), false);
  });

  test('it stays fresh for an earlier one while later releases arrive', () => {
    const freshness = new CacheFreshness();
    freshness.note(changed(0), after(0));
    freshness.note(changed(9000), after(9500));
    freshness.note(changed(4000), after(9600));
    assert.equal(freshness.isFresh(changed(0), after(11_000)), true);
    assert.equal(freshness.isFresh(changed(0), after(11_001)), false);
  });

  test('a time in the future counts as the present', () => {
    const freshness = new CacheFreshness();
    freshness.note(changed(3_600_000), after(0));
    assert.equal(freshness.isFresh(changed(3_600_000), after(2000)), true);
    assert.equal(freshness.isFresh(changed(3_600_000), after(2001)), false);
  });

  for (const setMs of [-3_600_000, 3_600_000]) {
    test(`a clock that is set by ${setMs / 1000} s does not make it fresh`, () => {
      const freshness = new CacheFreshness();
      freshness.note(changed(0), after(0));
      assert.equal(freshness.isFresh(changed(0), after(2001, setMs)), false);
    });
  }

  test('a volume without lastPhaseTransitionTime needs no live read', () => {
    const freshness = new CacheFreshness();
    const { status: _status, ...old } = changed(0);
    freshness.note(old, after(0));
    assert.equal(freshness.isFresh(old, after(3_600_000)), true);
  });
});
