import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectGarbage } from '../../../src/cli/features/start-garbage-feature.ts';
import { shortValue } from '../../../src/base/short-value.ts';

test('a value of up to 256 characters is quoted as it is', () => {
  for (const value of ['', 'a "b"\n', 'x'.repeat(256), '\ud800']) assert.equal(shortValue(value), value);
});

test('a longer value is truncated and followed by its length', () => {
  assert.equal(shortValue('x'.repeat(257)), `${'x'.repeat(256)}… (257 characters)`);
  assert.equal(shortValue('ü'.repeat(1_500_000), 3), 'üüü… (1,500,000 characters)');
});

test('no character is split', () => {
  assert.equal(shortValue(`ab${'😀'.repeat(5)}`, 3), 'ab… (12 characters)');
  assert.equal(shortValue(`ab${'😀'.repeat(5)}`, 4), 'ab😀… (12 characters)');
});

test('the long value is not kept in memory', () => {
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const kept = Array.from({ length: 100 }, (_, index) => shortValue(`${index}`.padEnd(1_000_000, 'x')));
  collectGarbage();
  assert.equal(kept.length, 100);
  assert.ok(process.memoryUsage().heapUsed - before < 20_000_000);
});
