import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectGarbage } from '../../../src/cli/features/start-garbage-feature.ts';

test('collectGarbage frees what nobody holds any more', () => {
  makeGarbage();
  const before = process.memoryUsage().heapUsed;
  collectGarbage();
  assert.ok(process.memoryUsage().heapUsed < before - 1_000_000, 'the heap shrank by what was made');
});

/** About four megabytes that are garbage as soon as the caller lets go of them. */
function makeGarbage(): string[] {
  return Array.from({ length: 50_000 }, (_, index) => `garbage ${index} `.repeat(4));
}
