import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { counter, createRegistry, gauge, histogram } from '../../../src/base/metrics.ts';
import { exposition, goNumber } from '../../../src/diagnostics/metrics-handler.ts';

describe('goNumber', () => {
  const cases: [number, string][] = [
    [0, '0'],
    [1, '1'],
    [-1.5, '-1.5'],
    [0.25, '0.25'],
    [0.0001, '0.0001'],
    [0.00001, '1e-05'],
    [1e-8, '1e-08'],
    [9.999999999999999e-6, '9.999999999999999e-06'],
    [999999, '999999'],
    [1e6, '1e+06'],
    [1234567, '1.234567e+06'],
    [-(2 ** 64), '-1.8446744073709552e+19'],
    [1e100, '1e+100'],
    [Infinity, '+Inf'],
    [-Infinity, '-Inf'],
    [NaN, 'NaN'],
  ];
  for (const [value, want] of cases) test(want, () => assert.equal(goNumber(value), want));
});

describe('exposition', () => {
  test('families in the order of their names, bounds last and as Go prints them', async () => {
    const registry = createRegistry();
    const wait = {
      name: 'wait_seconds',
      help: 'Wait.',
      labels: ['name'],
      stability: 'BETA',
      buckets: [1e-8, 10],
    } as const;
    histogram({ registry, ...wait }).observe({ name: 'claims' }, 1);
    gauge({ registry, name: 'depth', help: 'Depth.' }).set(2_000_000);
    assert.equal(
      await exposition(registry),
      `# HELP depth Depth.
# TYPE depth gauge
depth 2e+06
# HELP wait_seconds [BETA] Wait.
# TYPE wait_seconds histogram
wait_seconds_bucket{name="claims",le="1e-08"} 0
wait_seconds_bucket{name="claims",le="10"} 1
wait_seconds_bucket{name="claims",le="+Inf"} 1
wait_seconds_sum{name="claims"} 1
wait_seconds_count{name="claims"} 1
`,
    );
  });

  test('a family with labels appears with its first sample', async () => {
    const registry = createRegistry();
    const calls = counter({ registry, name: 'calls_total', help: 'Calls.', labels: ['code'] });
    assert.equal(await exposition(registry), '');
    calls.inc({ code: 'OK' }, 0);
    assert.match(await exposition(registry), /^calls_total\{code="OK"\} 0$/m);
  });

  test('labels and help are escaped', async () => {
    const registry = createRegistry();
    gauge({ registry, name: 'g', help: 'a\\b\nc "d"', labels: ['l'] }).set({ l: 'x"\\\n' }, 1);
    assert.equal(await exposition(registry), '# HELP g a\\\\b\\nc "d"\n# TYPE g gauge\ng{l="x\\"\\\\\\n"} 1\n');
  });
});
