import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PersistentVolume } from '../../../../src/provision/objects.ts';
import { CacheFreshness } from '../../../../src/provision/volume/cache-freshness.ts';

const startMs = Date.parse('2026-01-01T00:00:00Z');
const changed = (afterMs: number): PersistentVolume => ({
  metadata: { name: 'v' },
  spec: {},
  status: { phase: 'Released', lastPhaseTransitionTime: new Date(startMs + afterMs).toISOString() },
});

describe('whether the cache of volumes is fresh', () => {
  test('the cache is fresh for a volume released at most two seconds ago', () => {
    const freshness = new CacheFreshness();
    assert.equal(freshness.isFresh(changed(0), startMs + 2000), true);
    assert.equal(freshness.isFresh(changed(0), startMs + 2001), false);
  });

  test('and for an earlier one, while later releases arrive', () => {
    const freshness = new CacheFreshness();
    freshness.note(changed(0), startMs);
    freshness.note(changed(9000), startMs + 9500);
    freshness.note(changed(4000), startMs + 9600);
    assert.equal(freshness.isFresh(changed(0), startMs + 11_000), true);
    assert.equal(freshness.isFresh(changed(0), startMs + 11_001), false);
  });

  test('a time in the future counts as the present', () => {
    const freshness = new CacheFreshness();
    freshness.note(changed(3_600_000), startMs);
    assert.equal(freshness.isFresh(changed(0), startMs + 2001), false);
  });

  test('a volume without lastPhaseTransitionTime needs no live read', () => {
    const freshness = new CacheFreshness();
    const { status: _status, ...old } = changed(0);
    freshness.note(old, startMs);
    assert.equal(freshness.isFresh(old, startMs + 3_600_000), true);
  });
});
