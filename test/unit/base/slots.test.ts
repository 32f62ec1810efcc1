import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Slots } from '../../../src/base/slots.ts';

/** Takes a slot. @returns whether it is there yet. */
function taking(slots: Slots): () => boolean {
  let isThere = false;
  void slots.take().then(() => (isThere = true));
  return () => isThere;
}

describe('slots', () => {
  test('are as many as were asked for; who comes later waits until one is given back', async () => {
    const slots = new Slots(2);
    await slots.take();
    await slots.take();
    const isThere = taking(slots);
    await nextTurn();
    assert.equal(isThere(), false);
    slots.give();
    await nextTurn();
    assert.equal(isThere(), true);
  });

  test('are had in the order of the calls', async () => {
    const slots = new Slots(1);
    await slots.take();
    const [first, second] = [taking(slots), taking(slots)];
    slots.give();
    await nextTurn();
    assert.deepEqual([first(), second()], [true, false]);
    slots.give();
    await nextTurn();
    assert.equal(second(), true);
  });

  test('that are given back while nobody waits are free for the next', async () => {
    const slots = new Slots(1);
    await slots.take();
    slots.give();
    await slots.take();
    const isThere = taking(slots);
    await nextTurn();
    assert.equal(isThere(), false);
  });

  test('are used by others while their owner waits, who has one again before it goes on', async () => {
    const slots = new Slots(1);
    await slots.take();
    const other = taking(slots);
    const waited = Promise.withResolvers<string>();
    let result: string | undefined;
    void slots.without(() => waited.promise).then((value) => (result = value));
    await nextTurn();
    assert.equal(other(), true);
    waited.resolve('done');
    await nextTurn();
    assert.equal(result, undefined);
    slots.give();
    await nextTurn();
    assert.equal(result, 'done');
  });

  test('are had again by an owner whose wait fails', async () => {
    const slots = new Slots(1);
    await slots.take();
    await assert.rejects(
      slots.without(() => Promise.reject(new Error('in vain'))),
      /in vain/,
    );
    const isThere = taking(slots);
    await nextTurn();
    assert.equal(isThere(), false);
    slots.give();
    await nextTurn();
    assert.equal(isThere(), true);
  });
});
