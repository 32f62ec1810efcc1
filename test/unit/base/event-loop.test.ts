import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { inSlices, nextSlice, sliceSpent } from '../../../src/base/event-loop.ts';
import { hold, iterationsDuring } from '../../support/fakes/event-loop.ts';

describe('work in slices', () => {
  test('lets the event loop run after every ten milliseconds', async () => {
    await nextIteration();
    const iterations = await iterationsDuring(inSlices([1, 2, 3, 4, 5, 6], () => hold(11)));
    assert.ok(iterations >= 4, `${iterations} iterations`);
  });

  test('does not wait while there is time left', async () => {
    await nextSlice();
    const seen: number[] = [];
    const done = inSlices([1], (item) => seen.push(item));
    assert.deepEqual(seen, [1]);
    await done;
  });

  test('is shared by all who work: together they take no longer than one alone', async () => {
    await nextIteration();
    const order: string[] = [];
    const worker = async (name: string): Promise<void> => {
      for (let item = 1; item <= 3; item++) {
        if (sliceSpent()) await nextSlice();
        order.push(`${name}${item}`);
        hold(11);
      }
    };
    const iterations = await iterationsDuring(Promise.all(['a', 'b', 'c'].map(worker)));
    assert.ok(iterations >= 7, `${iterations} iterations for nine pieces`);
    assert.deepEqual(order, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'c2', 'b3', 'c3'], 'first come, first served');
  });

  test('timers fire in between', async () => {
    let fired = false;
    setTimeout(() => (fired = true), 1);
    const firedBefore: boolean[] = [];
    await inSlices([1, 2, 3, 4], () => {
      firedBefore.push(fired);
      hold(11);
    });
    assert.equal(firedBefore.at(-1), true);
  });
});
