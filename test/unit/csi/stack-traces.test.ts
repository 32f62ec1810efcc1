import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutStackTraces } from '../../../src/csi/stack-traces.ts';

test('errors that are made without stack traces have none, and those that are made afterwards have', () => {
  const inner = withoutStackTraces(() => new Error('inner'));
  assert.equal(inner.stack, 'Error: inner');
  assert.throws(() =>
    withoutStackTraces(() => {
      throw new Error('thrown');
    }),
  );
  assert.match(new Error('outer').stack ?? '', /stack-traces\.test/);
});
