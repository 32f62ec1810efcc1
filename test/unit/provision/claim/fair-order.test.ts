import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ClaimTurns, FairOrder, type Flow } from '../../../../src/provision/claim/fair-order.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';

/** Keys are `namespace/class/name`; those with failed attempts are in `failed`. */
interface Scene {
  order: FairOrder;
  clock: ManualClock;
  failed: Set<string>;
  add: (...keys: string[]) => void;
  /** Takes all keys that may be taken, at most `max`. */
  takeAll: (max?: number) => string[];
  /** Takes each key that may be taken, and reports it as done immediately. */
  drain: () => string[];
}

function scene(workers = 100): Scene {
  const clock = new ManualClock({ turns: 1 });
  const failed = new Set<string>();
  const order = new FairOrder({
    workers,
    clock,
    flowOf: (key) => {
      const [namespace = '', className = ''] = key.split('/');
      return { namespace, className };
    },
    failures: (key) => (failed.has(key) ? 1 : 0),
  });
  const takeAll = (max = Infinity): string[] => {
    const taken: string[] = [];
    while (taken.length < max) {
      const key = order.take();
      if (key === undefined) return taken;
      taken.push(key);
    }
    return taken;
  };
  const drain = (): string[] => {
    const taken: string[] = [];
    for (let key = order.take(); key !== undefined; key = order.take()) {
      taken.push(key);
      order.done(key);
    }
    return taken;
  };
  const add = (...keys: string[]): void => {
    for (const key of keys) order.add(key);
  };
  return { order, clock, failed, add, takeAll, drain };
}

function keys(flow: string, count: number, name = 'c'): string[] {
  return Array.from({ length: count }, (_, index) => `${flow}/${name}${index}`);
}

/** The number of keys of each namespace. */
function byNamespace(taken: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const key of taken) {
    const [namespace = ''] = key.split('/');
    counts[namespace] = (counts[namespace] ?? 0) + 1;
  }
  return counts;
}

/** The keys as namespaces and their classes take turns, whether or not an attempt was made. */
function inTurns(given: readonly string[]): string[] {
  const turns = new ClaimTurns();
  for (const key of given) {
    const [namespace = '', className = ''] = key.split('/');
    turns.add(key, { namespace, className });
  }
  const all = { isFull: () => false, mayTake: () => true };
  return given.map(() => turns.take(all)?.key ?? '');
}

/** Lets 50 attempts of the flow fail. */
function makeFailing({ order, add, failed }: Scene, flow: string): void {
  const failing = keys(flow, 50, 'failing');
  for (const key of failing) {
    failed.add(key);
    add(key);
    assert.equal(order.take(), key);
    order.done(key);
  }
}

describe('the order of claims', () => {
  test('is the order of arrival within a namespace and class', () => {
    const { add, drain } = scene();
    add('a/x/1', 'a/x/2', 'a/x/3');
    assert.deepEqual(drain(), ['a/x/1', 'a/x/2', 'a/x/3']);
  });

  test('has namespaces take turns, and the classes in each', () => {
    const { add, drain } = scene();
    add('a/x/1', 'a/x/2', 'a/x/3', 'a/y/1', 'b/x/1', 'b/x/2', 'c/x/1');
    assert.deepEqual(drain(), ['a/x/1', 'b/x/1', 'c/x/1', 'a/y/1', 'b/x/2', 'a/x/2', 'a/x/3']);
  });

  test('puts a first attempt before all retries, in whatever namespace', () => {
    const { add, failed, drain } = scene();
    for (const key of keys('a/x', 40, 'old')) failed.add(key);
    add(...keys('a/x', 40, 'old'), 'a/x/new', 'b/x/new');
    assert.deepEqual(drain().slice(0, 2), ['a/x/new', 'b/x/new']);
  });

  test('lets a retry go after three first attempts', () => {
    const { add, failed, drain } = scene();
    for (const key of keys('a/x', 2, 'old')) failed.add(key);
    add(...keys('b/x', 9, 'new'), ...keys('a/x', 2, 'old'));
    assert.deepEqual(
      drain().map((key) => key.includes('old')),
      [false, false, false, true, false, false, false, true, false, false, false],
    );
  });

  test('has a due retry wait no longer than ten times its fair turn, however many first attempts arrive', () => {
    const flows = fc.constantFrom('a/x', 'a/y', 'b/x', 'b/y', 'c/x');
    const waiting = fc.array(fc.record({ flow: flows, retry: fc.boolean() }), { maxLength: 20 });
    const arriving = fc.array(fc.array(flows, { maxLength: 4 }), { maxLength: 40 });
    const failing = fc.option(flows, { nil: undefined });
    const property = fc.property(waiting, arriving, failing, (claims, arrivals, failingFlow) => {
      const it = scene(1);
      if (failingFlow !== undefined) makeFailing(it, failingFlow);
      const present = claims.map(({ flow, retry }, index) => `${flow}/${retry ? 'old' : 'new'}${index}`);
      const retries = present.filter((key) => key.includes('/old'));
      for (const key of retries) it.failed.add(key);
      it.add(...present);
      const fairly = inTurns(present);
      for (let turn = 1; it.order.size > 0; turn++) {
        const keys = arrivals[turn % Math.max(arrivals.length, 1)] ?? [];
        if (turn <= 10 * present.length) it.add(...keys.map((flow, index) => `${flow}/late${turn}-${index}`));
        const key = it.order.take() ?? assert.fail('a free worker gets a claim');
        it.order.done(key);
        const fair = fairly.indexOf(key) + 1;
        if (retries.includes(key)) assert.ok(turn <= 10 * fair, `${key} waits ${turn} turns, ${fair} are fair`);
      }
    });
    fc.assert(property, { numRuns: 300 });
  });

  test('leaves workers free for namespaces that come later, even if all calls hang', () => {
    const { add, takeAll } = scene();
    add(...keys('a/x', 200), ...keys('b/x', 200));
    const taken = takeAll();
    assert.deepEqual(byNamespace(taken), { a: 45, b: 44 });
    add('c/x/1', 'd/x/1');
    assert.deepEqual(takeAll(), ['c/x/1', 'd/x/1']);
  });

  test('gives the only namespace four fifths of the workers immediately, and all after a second', async () => {
    const { order, add, takeAll, clock } = scene();
    add(...keys('a/x', 200));
    assert.equal(takeAll().length, 80);
    assert.equal(order.nextAtMs, 1000);
    await clock.advance(999);
    assert.equal(takeAll().length, 0);
    await clock.advance(1);
    assert.equal(takeAll().length, 20);
  });

  test('gives a namespace no more than its share once there is another one', async () => {
    const { order, add, takeAll, clock } = scene(10);
    add(...keys('a/x', 30));
    await clock.advance(1000);
    const taken = takeAll();
    assert.equal(taken.length, 10);
    add(...keys('b/x', 30));
    for (const key of taken) order.done(key);
    assert.deepEqual(byNamespace(takeAll()), { a: 5, b: 4 });
    await clock.advance(60_000);
    assert.deepEqual(takeAll(), []);
  });

  test('lets other classes of a namespace go before one whose calls hang', () => {
    const { add, takeAll } = scene();
    add(...keys('a/slow', 200), 'b/x/1');
    takeAll();
    add('a/quick/1');
    assert.deepEqual(takeAll(), ['a/quick/1']);
  });

  test('lets namespaces take turns with a single worker, too', () => {
    const { add, drain } = scene(1);
    add('a/x/1', 'a/x/2', 'b/x/1');
    assert.deepEqual(drain(), ['a/x/1', 'b/x/1', 'a/x/2']);
  });

  test('limits the retries of a namespace and class that keeps failing, and no others', async () => {
    const rig = scene();
    const { order, add, failed, drain, clock } = rig;
    makeFailing(rig, 'a/x');
    for (const key of keys('a/x', 100)) failed.add(key);
    failed.add('b/x/old');
    add(...keys('a/x', 100), 'b/x/old');
    const drained = drain();
    assert.deepEqual(byNamespace(drained), { a: 20, b: 1 });
    assert.equal(order.nextAtMs, 200);
    await clock.advance(200);
    assert.equal(drain().length, 20);
    assert.deepEqual(drain(), []);
  });

  test('lifts the limit once an attempt of the namespace and class succeeds', () => {
    const rig = scene();
    const { order, add, failed, drain, takeAll } = rig;
    makeFailing(rig, 'a/x');
    for (const key of keys('a/x', 100)) failed.add(key);
    add(...keys('a/x', 100));
    assert.equal(drain().length, 20);
    add('a/x/good');
    assert.deepEqual(takeAll(1), ['a/x/good']);
    order.succeeded('a/x/good');
    order.done('a/x/good');
    assert.equal(drain().length, 80);
  });

  test('keeps the limit when an attempt of the namespace and class ends without a volume, such as for a deleted claim', () => {
    const rig = scene();
    const { order, add, failed, drain, takeAll } = rig;
    makeFailing(rig, 'a/x');
    for (const key of keys('a/x', 100)) failed.add(key);
    add(...keys('a/x', 100));
    assert.equal(drain().length, 20);
    add('a/x/deleted');
    assert.deepEqual(takeAll(1), ['a/x/deleted']);
    order.done('a/x/deleted');
    assert.deepEqual(drain(), []);
  });

  test('with few workers leaves one to another namespace that waits for a retry', () => {
    for (const workers of [2, 3, 4]) {
      const { order, add, failed, takeAll } = scene(workers);
      failed.add('b/x/old');
      add('b/x/old', ...keys('a/x', 10));
      const taken = takeAll();
      assert.equal(byNamespace(taken)['b'], 1, `of ${workers}`);
      for (const key of taken) order.done(key);
    }
  });

  test('gives a namespace alone all of a few workers at once', () => {
    for (const workers of [1, 2, 3, 4]) {
      const { add, takeAll } = scene(workers);
      add(...keys('a/x', 10));
      assert.equal(takeAll().length, workers);
    }
  });

  test('limits no retries any more once the cause of the failures is gone', () => {
    const rig = scene();
    const { order, add, failed, drain } = rig;
    makeFailing(rig, 'a/x');
    for (const key of keys('a/x', 100)) failed.add(key);
    add(...keys('a/x', 100));
    assert.equal(drain().length, 20);
    order.retryAll();
    assert.equal(drain().length, 80);
  });

  test('does not ask for each class of a namespace that may have no more workers', () => {
    const turns = new ClaimTurns();
    for (let index = 0; index < 100; index++) turns.add(`c${index}`, { namespace: 'a', className: `c${index}` });
    const asked: string[] = [];
    const mayTake = ({ className }: Flow): boolean => asked.push(className) === 0;
    assert.equal(turns.take({ isFull: () => true, mayTake }), undefined);
    assert.deepEqual(asked, []);
    assert.equal(turns.take({ isFull: () => false, mayTake }), undefined);
    assert.equal(asked.length, 100);
  });

  test('holds nothing back once the queue shuts down', () => {
    const rig = scene(10);
    const { order, add, failed, takeAll } = rig;
    makeFailing(rig, 'a/x');
    for (const key of keys('a/x', 60)) failed.add(key);
    add(...keys('a/x', 60), ...keys('b/x', 30));
    order.end();
    assert.equal(takeAll().length, 90);
    assert.equal(order.size, 0);
  });

  test('never exceeds the number of workers, and hands out each claim in the end', async () => {
    const step = fc.record({
      key: fc.nat({ max: 30 }),
      fails: fc.boolean(),
      waits: fc.nat({ max: 400 }),
      takes: fc.nat({ max: 8 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80 }), fc.integer({ min: 1, max: 6 }), async (steps, workers) => {
        const { order, clock, failed } = scene(workers);
        const [waiting, taken] = [new Set<string>(), new Set<string>()];
        const take = (): boolean => {
          const key = order.take();
          if (taken.size >= workers) assert.equal(key, undefined, 'all workers are busy');
          if (key === undefined) return false;
          assert.ok(waiting.delete(key), `${key} did not wait`);
          taken.add(key);
          return true;
        };
        const finish = (fails: boolean): void => {
          for (const key of taken) {
            taken.delete(key);
            if (fails) failed.add(key);
            else failed.delete(key);
            order.done(key);
            return;
          }
        };
        for (const { key, fails, waits, takes } of steps) {
          const named = `n${key % 3}/c${key % 2}/${key}`;
          if (!waiting.has(named) && !taken.has(named)) {
            order.add(named);
            waiting.add(named);
          }
          for (let count = 0; count < takes && take(); count++);
          finish(fails);
          await clock.advance(waits);
          assert.equal(order.size, waiting.size);
        }
        while (waiting.size > 0 || taken.size > 0) {
          while (take());
          if (taken.size > 0) finish(false);
          else await clock.advance(1000);
        }
        assert.equal(order.size, 0);
      }),
    );
  });
});
