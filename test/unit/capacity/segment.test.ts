import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { segmentOf } from '../../../src/capacity/segment.ts';

describe('segmentOf', () => {
  test('its labels are in the order of the bytes of their keys, and its key does not depend on the order given', () => {
    const labels = { '\u{1d11e}': '1', '\uff5e': '2', b: '3', Z: '4' };
    const segment = segmentOf(labels);
    assert.deepEqual(Object.keys(segment.labels), ['Z', 'b', '\uff5e', '\u{1d11e}']);
    assert.equal(segmentOf(Object.fromEntries(Object.entries(labels).reverse())).key, segment.key);
  });
});
