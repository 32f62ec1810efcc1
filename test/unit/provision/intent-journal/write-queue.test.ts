import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GroupPace } from '../../../../src/provision/intent-journal/write-queue.ts';

test('a lone record is written at once, under load one group per pause', () => {
  const pace = new GroupPace(40);
  for (const nowMs of [0, 1, 2, 3]) {
    pace.onRecord(nowMs);
    assert.equal(pace.dueMs(nowMs, 1), nowMs);
    pace.onGroup(nowMs);
  }
  pace.onRecord(4);
  assert.equal(pace.dueMs(4, 8), 43);
  assert.equal(pace.dueMs(300, 8), 300, 'the load is over');
});

test('under load a small group waits while records arrive, a large one does not', () => {
  const pace = new GroupPace(40);
  for (const nowMs of [0, 0, 0, 0, 0]) pace.onRecord(nowMs);
  pace.onGroup(0);
  pace.onRecord(30);
  assert.equal(pace.dueMs(30, 1), 70, 'one pause after the last record');
  pace.onRecord(60);
  assert.equal(pace.dueMs(60, 2), 100);
  assert.equal(pace.dueMs(60, 8), 40);
  for (const nowMs of [90, 120, 150, 180]) pace.onRecord(nowMs);
  assert.equal(pace.dueMs(180, 6), 200, 'not for ever');
});
