import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { untilAborted } from '../../../src/base/abort.ts';

test('work that fails after the wait for it was aborted is no unhandled rejection', async () => {
  const stopped = new AbortController();
  const work = [Promise.withResolvers<never>(), Promise.withResolvers<never>()] as const;
  const early = assert.rejects(untilAborted(work[0].promise, stopped.signal), /stopped/);
  stopped.abort(new Error('stopped'));
  await early;
  await assert.rejects(untilAborted(work[1].promise, stopped.signal), /stopped/);
  for (const { reject } of work) reject(new Error('too late'));
  await nextTurn(); // a rejection that nobody handles would fail this test by now
});
