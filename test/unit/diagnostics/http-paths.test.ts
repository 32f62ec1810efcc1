import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkPaths, parsePathPattern } from '../../../src/diagnostics/http-paths.ts';

describe('parsePathPattern', () => {
  const cases: { pattern: string; yes: string[]; no: string[] }[] = [
    {
      pattern: '/metrics',
      yes: ['/metrics'],
      no: ['/metrics/', '/metrics/x', '/metric', '/', '/xmetrics', '/Metrics'],
    },
    { pattern: '/', yes: ['/', '/a', '/a/b'], no: [] },
    { pattern: '/m/', yes: ['/m/', '/m/a', '/m/a/b'], no: ['/m', '/n/'] },
    { pattern: '/m/{x}', yes: ['/m/a'], no: ['/m/', '/m', '/m/a/b'] },
    { pattern: '/{x}/m', yes: ['/a/m'], no: ['//m', '/m'] },
    { pattern: '/m/{x...}', yes: ['/m/', '/m/a', '/m/a/b'], no: ['/m', '/n'] },
    { pattern: '/m/{$}', yes: ['/m/'], no: ['/m', '/m/a'] },
    { pattern: '/a.b+c', yes: ['/a.b+c'], no: ['/aXb+c', '/a.bbc'] },
    { pattern: '/$^', yes: ['/$^'], no: ['/'] },
  ];
  for (const { pattern, yes, no } of cases) {
    test(pattern, () => {
      const { matches } = parsePathPattern(pattern);
      for (const path of yes) assert.equal(matches('any', path), true, path);
      for (const path of no) assert.equal(matches('any', path), false, path);
    });
  }

  test('a host in front restricts to that host', () => {
    const { matches } = parsePathPattern('a/b');
    assert.equal(matches('a', '/b'), true);
    assert.equal(matches('c', '/b'), false);
    assert.equal(matches('a', '/a/b'), false);
  });

  const rejected: [string, string][] = [
    ['', 'http: invalid pattern'],
    ['metrics', 'parsing "metrics": at offset 0: host/path missing /'],
    ['/a b', 'parsing "/a b": at offset 0: invalid method "/a"'],
    ['/a{b}', 'parsing "/a{b}": at offset 1: bad wildcard segment (must be whole segment)'],
    ['/x/{a', 'parsing "/x/{a": at offset 3: bad wildcard segment (must be whole segment)'],
    ['/{}', 'parsing "/{}": at offset 1: empty wildcard'],
    ['/{1}', 'parsing "/{1}": at offset 1: bad wildcard name "1"'],
    ['/{$}/a', 'parsing "/{$}/a": at offset 1: {$} not at end'],
    ['/{a...}/b', 'parsing "/{a...}/b": at offset 1: {...} wildcard not at end'],
    ['/{a}/{a}', 'parsing "/{a}/{a}": at offset 5: duplicate wildcard name "a"'],
  ];
  for (const [pattern, message] of rejected) {
    test(`${JSON.stringify(pattern)} is refused`, () => {
      assert.throws(() => parsePathPattern(pattern), { name: 'PathPatternError', message });
    });
  }
});

describe('checkPaths', () => {
  test('the paths of others are taken only while they are served', () => {
    const off = { health: false, profiles: false, statusPage: false };
    checkPaths({ ...off, metricsPath: '/healthz/leader-election' });
    checkPaths({ ...off, metricsPath: '/debug/pprof/' });
    checkPaths({ ...off, metricsPath: '/status' });
    checkPaths({ health: true, profiles: true, statusPage: true, metricsPath: '/debug/pprof/mine' });
    checkPaths({ ...off, statusPage: true, metricsPath: '/status/metrics' });
    assert.throws(() => checkPaths({ ...off, health: true, metricsPath: '/healthz/leader-election' }), /conflicts/);
    assert.throws(() => checkPaths({ ...off, profiles: true, metricsPath: '/debug/pprof/' }), /conflicts/);
    for (const metricsPath of ['/status', '/status/'])
      assert.throws(() => checkPaths({ ...off, statusPage: true, metricsPath }), /conflicts/);
  });
});
