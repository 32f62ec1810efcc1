import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isKnownSkip } from '../../scripts/test/known-skips.ts';

test('a skipped test is permitted for the whole of a reason on the list alone', () => {
  assert.equal(isKnownSkip('needs root'), true);
  assert.equal(isKnownSkip('the sandbox has no etcd'), true);
  assert.equal(isKnownSkip('needs root and patience'), false);
  assert.equal(isKnownSkip('no kubectl in KUBE_BIN_DIR or the kube-bin cache folder'), false);
  assert.equal(isKnownSkip(true), false, 'no reason at all');
});
