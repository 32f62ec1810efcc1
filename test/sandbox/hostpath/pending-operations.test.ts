import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PendingOperations } from '../../../sandbox/hostpath/pending-operations.ts';

test('a second operation on the same key is ABORTED, one on another key is not', async () => {
  const pending = new PendingOperations();
  const first = Promise.withResolvers<string>();
  const running = pending.run('a', () => first.promise);
  await assert.rejects(
    pending.run('a', () => 'second'),
    { codeName: 'ABORTED', message: /pending for a$/ },
  );
  assert.equal(await pending.run('b', () => 'other'), 'other');
  first.resolve('first');
  assert.equal(await running, 'first');
  assert.equal(await pending.run('a', () => 'third'), 'third');
});

test('a failed operation frees its key', async () => {
  const pending = new PendingOperations();
  const failing = pending.run('a', () => {
    throw new Error('no');
  });
  await assert.rejects(failing, /^Error: no$/);
  assert.equal(await pending.run('a', () => 'next'), 'next');
});
