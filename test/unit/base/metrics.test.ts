import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { register } from 'prom-client';
import { counter, createRegistry, gauge, histogram } from '../../../src/base/metrics.ts';

describe('metrics', () => {
  test('a stability stands in front of the help text, and nothing without one', async () => {
    const registry = createRegistry();
    counter({ registry, name: 'a_total', help: 'Things.', stability: 'BETA' });
    counter({ registry, name: 'b_total', help: 'Things.' });
    const text = await registry.metrics();
    assert.match(text, /^# HELP a_total \[BETA\] Things\.$/m);
    assert.match(text, /^# HELP b_total Things\.$/m);
  });

  test('a counter counts by label', async () => {
    const registry = createRegistry();
    const calls = counter({ registry, name: 'calls_total', help: 'Calls.', labels: ['code'] });
    calls.inc({ code: 'OK' });
    calls.inc({ code: 'OK' }, 2);
    assert.match(await registry.metrics(), /^calls_total\{code="OK"\} 3$/m);
  });

  test('a collected gauge is asked at each scrape', async () => {
    const registry = createRegistry();
    let asked = 0;
    gauge({ registry, name: 'depth', help: 'Depth.', collect: (family) => family.set(++asked) });
    assert.match(await registry.metrics(), /^depth 1$/m);
    assert.match(await registry.metrics(), /^depth 2$/m);
  });

  test('a collected counter can take over the count of somebody else', async () => {
    const registry = createRegistry();
    counter({
      registry,
      name: 'seconds_total',
      help: 'Seconds.',
      collect: (family) => {
        family.reset();
        family.inc(7);
      },
    });
    await registry.metrics();
    assert.match(await registry.metrics(), /^seconds_total 7$/m);
  });

  test('a histogram has the given buckets and no others', async () => {
    const registry = createRegistry();
    histogram({ registry, name: 'latency_seconds', help: 'Latency.', buckets: [0.1, 1] }).observe(0.5);
    const bounds = [...(await registry.metrics()).matchAll(/le="([^"]+)"\} (\d)/g)].map(([, bound, n]) => [bound, n]);
    assert.deepEqual(bounds, [
      ['0.1', '0'],
      ['1', '1'],
      ['+Inf', '1'],
    ]);
  });

  test('registries share nothing, with each other or with the process', async () => {
    const registry = createRegistry();
    gauge({ registry, name: 'alone', help: 'Alone.' }).set(1);
    gauge({ registry: createRegistry(), name: 'alone', help: 'Alone.' }).set(2);
    assert.match(await registry.metrics(), /^alone 1$/m);
    assert.equal(register.getSingleMetric('alone'), undefined);
  });

  test('a name is taken once per registry', () => {
    const registry = createRegistry();
    gauge({ registry, name: 'twice', help: 'Twice.' });
    assert.throws(() => gauge({ registry, name: 'twice', help: 'Twice.' }), /already been registered/);
  });
});
