import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { type AnyInformer, Health } from '../../../src/run/health.ts';
import { type Feature, runFeatures, RunningCaches } from '../../../src/run/feature.ts';

const aborted = (signal: AbortSignal): Promise<unknown> =>
  signal.aborted
    ? Promise.resolve()
    : new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));

const tick = (): Promise<unknown> => new Promise(setImmediate);

/** A cache that is filled when the test says so. */
function cache(log: string[], name: string): AnyInformer & { fill: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>(); // eslint-disable-line @typescript-eslint/no-invalid-void-type
  let hasSynced = false;
  return {
    get hasSynced() {
      return hasSynced;
    },
    synced: promise,
    lastSuccessMs: systemClock.monotonicMs(),
    lastByteMs: systemClock.monotonicMs(),
    maxSilenceMs: 75_000,
    lastError: undefined,
    fill: () => {
      hasSynced = true;
      resolve();
    },
    async run(signal) {
      log.push(`${name} runs`);
      await aborted(signal);
      log.push(`${name} ended`);
    },
  };
}

/** Everything that features run with, and a log of what they do. */
function begin(features: readonly Feature[]) {
  const stop = new AbortController();
  const abort = new AbortController();
  const ready = new Health();
  const caches = new RunningCaches({ ready, clock: systemClock });
  const failures: unknown[] = [];
  const ended = runFeatures(features, {
    caches,
    shutdown: {
      stop: stop.signal,
      drain(error) {
        failures.push(error);
        stop.abort(error);
      },
    },
    abort: abort.signal,
    clock: systemClock,
    logger: silentLogger,
  });
  return { stop, caches, ready, failures, ended };
}

describe('features', () => {
  test('run when the caches of all are filled, and end before caches and followers', async () => {
    const log: string[] = [];
    const claims = cache(log, 'claims');
    const nodes = cache(log, 'nodes');
    const { stop, ready, ended } = begin([
      {
        caches: { claims },
        async run({ stop: ending }) {
          log.push('controller runs');
          await aborted(ending);
          await tick();
          log.push('controller ended');
        },
      },
      {
        caches: { nodes },
        async follow(signal) {
          await aborted(signal);
          log.push('follower ended');
        },
      },
      {},
    ]);
    claims.fill();
    await tick();
    assert.deepEqual(log, ['claims runs', 'nodes runs']);
    assert.equal(ready.unhealthyReason, 'the cache of nodes is not filled yet');
    nodes.fill();
    await tick();
    assert.equal(log.at(-1), 'controller runs');
    assert.equal(ready.unhealthyReason, undefined);
    stop.abort(new Error('SIGTERM'));
    await ended;
    assert.equal(log[3], 'controller ended');
    assert.deepEqual(log.slice(4).sort(), ['claims ended', 'follower ended', 'nodes ended']);
  });

  test('run when all are prepared, which happens while the caches fill', async () => {
    const log: string[] = [];
    const claims = cache(log, 'claims');
    const prepared = Promise.withResolvers<undefined>();
    const { stop, ended } = begin([
      {
        async prepare() {
          log.push('preparing');
          await prepared.promise;
        },
      },
      {
        caches: { claims },
        async run({ stop: ending }) {
          log.push('controller runs');
          await aborted(ending);
        },
      },
    ]);
    claims.fill();
    await tick();
    assert.deepEqual(log, ['claims runs', 'preparing']);
    prepared.resolve(undefined);
    await tick();
    assert.equal(log.at(-1), 'controller runs');
    stop.abort(new Error('SIGTERM'));
    await ended;
  });

  test('one that cannot be prepared keeps the others from running', async () => {
    const reason = new Error('a defect');
    const { failures, ended } = begin([
      { prepare: () => Promise.reject(reason) },
      { run: () => Promise.reject(new Error('must not run')) },
    ]);
    await ended;
    assert.deepEqual(failures, [reason]);
  });

  test('one that fails stops the others, which finish what they have under way', async () => {
    const log: string[] = [];
    const reason = new Error('a defect');
    const begun = Promise.withResolvers<undefined>();
    const { failures, ended } = begin([
      {
        async run({ stop, abort }) {
          await aborted(stop);
          assert.equal(abort.aborted, false);
          await begun.promise;
          log.push('finished');
        },
      },
      { run: () => Promise.reject(reason) },
    ]);
    await tick();
    assert.deepEqual(failures, [reason]);
    begun.resolve(undefined);
    await ended;
    assert.deepEqual(log, ['finished']);
  });

  test('a follower that fails stops the work', async () => {
    const reason = new Error('a cache has failed');
    const { failures, ended } = begin([
      { follow: () => Promise.reject(reason) },
      {
        run: async ({ stop }) => {
          await aborted(stop);
        },
      },
    ]);
    await ended;
    assert.deepEqual(failures, [reason]);
  });

  test('do not begin to run when the end comes before the caches are filled', async () => {
    const log: string[] = [];
    const { stop, failures, ended } = begin([
      { caches: { claims: cache(log, 'claims') }, run: () => Promise.reject(new Error('must not run')) },
    ]);
    await tick();
    stop.abort(new Error('SIGTERM'));
    await ended;
    assert.deepEqual(failures, []);
    assert.deepEqual(log, ['claims runs', 'claims ended']);
  });
});

describe('running caches', () => {
  test('run each cache once, and let readiness depend only on those that are needed', async () => {
    const log: string[] = [];
    const ready = new Health();
    const [claims, nodes] = [cache(log, 'claims'), cache(log, 'nodes')];
    const caches = new RunningCaches({ ready, clock: systemClock });
    {
      using _checks = caches;
      caches.start({ nodes });
      caches.need({ claims });
      caches.need({ claims });
      assert.deepEqual(log, ['nodes runs', 'claims runs']);
      assert.match(ready.unhealthyReason ?? '', /the cache of claims is not filled yet/);
      assert.doesNotMatch(ready.unhealthyReason ?? '', /nodes/);
    }
    assert.equal(ready.unhealthyReason, undefined);
    caches.group.abort(new Error('the test is over'));
    await caches.group.ended();
  });
});
