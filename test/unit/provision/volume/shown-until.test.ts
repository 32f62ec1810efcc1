import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PersistentVolume } from '../../../../src/provision/objects.ts';
import { ShownUntil } from '../../../../src/provision/volume/shown-until.ts';

const startMs = Date.parse('2026-01-01T00:00:00Z');
const changed = (afterMs: number): PersistentVolume => ({
  metadata: { name: 'v' },
  spec: {},
  status: { phase: 'Released', lastPhaseTransitionTime: new Date(startMs + afterMs).toISOString() },
});

describe('how far the cache of volumes is known to be', () => {
  test('a volume that was released within two seconds is shown as it is', () => {
    const shown = new ShownUntil();
    assert.equal(shown.isRecent(changed(0), startMs + 2000), true);
    assert.equal(shown.isRecent(changed(0), startMs + 2001), false);
  });

  test('so is an earlier one while others are released', () => {
    const shown = new ShownUntil();
    shown.note(changed(0), startMs);
    shown.note(changed(9000), startMs + 9500);
    shown.note(changed(4000), startMs + 9600);
    assert.equal(shown.isRecent(changed(0), startMs + 11_000), true);
    assert.equal(shown.isRecent(changed(0), startMs + 11_001), false);
  });

  test('a time in the future counts as the present', () => {
    const shown = new ShownUntil();
    shown.note(changed(3_600_000), startMs);
    assert.equal(shown.isRecent(changed(0), startMs + 2001), false);
  });

  test('one without a time is not in doubt', () => {
    const shown = new ShownUntil();
    const { status: _status, ...old } = changed(0);
    shown.note(old, startMs);
    assert.equal(shown.isRecent(old, startMs + 3_600_000), true);
  });
});
