import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { silentLogger } from '../../../src/base/logger.ts';
import { KeyedWorker, type KeyedWorkerOptions } from '../../../sandbox/control-plane/keyed-worker.ts';
import { ManualClock } from './manual-clock.ts';

function createWorker(
  sync: (key: string) => void,
  options: Partial<KeyedWorkerOptions> = {},
): { clock: ManualClock; worker: KeyedWorker } {
  const clock = new ManualClock();
  return { clock, worker: new KeyedWorker({ name: 'test', sync, clock, logger: silentLogger, ...options }) };
}

describe('KeyedWorker', () => {
  test('runs keys in the order of arrival, each once however often it was added', async () => {
    const seen: string[] = [];
    using worker = createWorker((key) => seen.push(key)).worker;
    for (const key of ['b', 'a', 'b', 'c', 'a']) worker.add(key);
    assert.deepEqual(seen, []);
    await turn();
    assert.deepEqual(seen, ['b', 'a', 'c']);
  });

  test('a key added during its own sync runs again', async () => {
    let runs = 0;
    const { worker } = createWorker((key) => {
      if (++runs === 1) worker.add(key);
    });
    using _ = worker;
    worker.add('a');
    await turn();
    await turn();
    assert.equal(runs, 2);
  });

  test('a failing key comes back after a doubled delay up to the limit; success starts over', async () => {
    const ranAtMs: number[] = [];
    let failing = true;
    const { worker, clock } = createWorker(
      () => {
        ranAtMs.push(clock.monotonicMs());
        if (failing) throw new Error('not yet');
      },
      { backoffBaseMs: 5, backoffMaxMs: 15 },
    );
    using _ = worker;
    worker.add('a');
    for (let ms = 0; ms < 50; ms++) {
      await turn();
      clock.advance(1);
    }
    assert.deepEqual(ranAtMs, [0, 5, 15, 30, 45]);
    failing = false;
    clock.advance(15);
    await turn();
    failing = true;
    worker.add('a');
    await turn();
    clock.advance(5);
    await turn();
    assert.equal(ranAtMs.length, 8);
  });

  test('of two delays the earlier one counts', async () => {
    const ranAtMs: number[] = [];
    const { worker, clock } = createWorker(() => ranAtMs.push(clock.monotonicMs()));
    using _ = worker;
    worker.addAfter('a', 30);
    worker.addAfter('a', 10);
    worker.addAfter('a', 20);
    for (let ms = 0; ms < 40; ms++) {
      await turn();
      clock.advance(1);
    }
    assert.deepEqual(ranAtMs, [10]);
  });

  test('a disposed or dropped key never runs, and no timer is left', async () => {
    const seen: string[] = [];
    const { worker, clock } = createWorker((key) => seen.push(key));
    worker.add('dropped');
    worker.addAfter('dropped', 5);
    worker.drop('dropped');
    worker.add('now');
    worker.addAfter('later', 5);
    worker[Symbol.dispose]();
    worker.add('after');
    worker.addAfter('after', 5);
    assert.equal(clock.pending, 0);
    clock.advance(100);
    await turn();
    assert.deepEqual(seen, []);
  });
});
