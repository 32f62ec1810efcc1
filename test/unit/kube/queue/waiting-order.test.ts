import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DelayHeap } from '../../../../src/kube/queue/waiting-order.ts';

test('the heap gives each key once, at its earliest time, in order', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 1000 }))), (adds) => {
      const heap = new DelayHeap();
      const want = new Map<string, number>();
      for (const [number, atMs] of adds) {
        const key = String(number);
        heap.add(key, atMs);
        want.set(key, Math.min(atMs, want.get(key) ?? Infinity));
      }
      assert.equal(heap.size, want.size);
      let lastMs = -1;
      for (let atMs = heap.nextAtMs; atMs !== undefined; atMs = heap.nextAtMs) {
        assert.ok(atMs >= lastMs);
        lastMs = atMs;
        assert.equal(heap.takeReady(atMs - 1), undefined);
        const key = heap.takeReady(atMs) ?? '';
        assert.equal(want.get(key), atMs);
        want.delete(key);
      }
      assert.equal(want.size, 0);
    }),
  );
});
