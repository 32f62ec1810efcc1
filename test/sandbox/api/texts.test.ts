import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ageText, durationText } from '../../../sandbox/api/age.ts';
import { decodeContinue, encodeContinue } from '../../../sandbox/api/list-read.ts';
import { Faults, parseFaultRule } from '../../../sandbox/api/faults.ts';
import { kindSchemas } from '../../../sandbox/api/kind-schemas.ts';
import {
  labelNameProblem,
  labelValueProblem,
  qualifiedNameProblem,
  subdomainProblem,
} from '../../../sandbox/api/names.ts';
import { canonicalQuantity, sameQuantity } from '../../../sandbox/api/quantity.ts';
import { conform } from '../../../sandbox/api/schema.ts';
import { parseSandboxFlags } from '../../../sandbox/sandbox-flags.ts';

describe('ages', () => {
  const s = 1000;
  const m = 60 * s;
  const h = 60 * m;
  const d = 24 * h;
  const cases: [number, string][] = [
    [0, '0s'],
    [119 * s, '119s'],
    [2 * m, '2m'],
    [2 * m + 5 * s, '2m5s'],
    [10 * m, '10m'],
    [179 * m, '179m'],
    [3 * h, '3h'],
    [3 * h + m, '3h1m'],
    [8 * h, '8h'],
    [47 * h, '47h'],
    [48 * h, '2d'],
    [49 * h, '2d1h'],
    [8 * d, '8d'],
    [729 * d, '729d'],
    [730 * d, '2y'],
    [800 * d, '2y70d'],
    [9 * 365 * d, '9y'],
    [-500, '0s'],
    [-5 * s, '<invalid>'],
  ];
  for (const [ms, want] of cases) test(`${ms} ms is ${want}`, () => assert.equal(durationText(ms), want));
  test('an absent time is unknown', () => assert.equal(ageText(undefined, 0), '<unknown>'));
  test('a time is measured to now', () => {
    assert.equal(ageText('2026-01-01T00:00:00Z', Date.parse('2026-01-01T00:01:00Z')), '60s');
  });
});

describe('names', () => {
  const good: [string, (name: string) => string, string[]][] = [
    ['subdomain', subdomainProblem, ['a', 'a-b.c', '0', 'a'.repeat(253)]],
    ['label', labelNameProblem, ['a', 'a-b', 'a'.repeat(63)]],
    ['qualified name', qualifiedNameProblem, ['a', 'A_b.c', 'x.io/y', 'pv.kubernetes.io/bind-completed']],
    ['label value', labelValueProblem, ['', 'a', 'A_b.c']],
  ];
  for (const [what, problem, names] of good) {
    test(`good ${what}s`, () => {
      for (const name of names) assert.equal(problem(name), '', name);
    });
  }
  const bad: [string, (name: string) => string, string[]][] = [
    ['subdomain', subdomainProblem, ['A', '-a', 'a_b', 'a..b', 'a'.repeat(254)]],
    ['label', labelNameProblem, ['a.b', 'a-', 'a'.repeat(64)]],
    ['qualified name', qualifiedNameProblem, ['', '/a', 'a/', 'a/b/c', 'X_/a', 'a'.repeat(64)]],
    ['label value', labelValueProblem, ['-a', 'a b', 'a'.repeat(64)]],
  ];
  for (const [what, problem, names] of bad) {
    test(`bad ${what}s`, () => {
      for (const name of names) assert.notEqual(problem(name), '', name);
    });
  }
});

describe('quantities', () => {
  const cases: [unknown, string | undefined][] = [
    ['1024Mi', '1Gi'],
    ['0.5Gi', '512Mi'],
    ['1.5Gi', '1536Mi'],
    ['1000', '1k'],
    ['100m', '100m'],
    ['1e3', '1e3'],
    ['0', '0'],
    ['-5', '-5'],
    [12, '12'],
    ['abc', undefined],
    ['', undefined],
    ['1 Gi', undefined],
    [true, undefined],
  ];
  for (const [text, want] of cases) {
    test(`${String(text)} is ${want}`, () => assert.equal(canonicalQuantity(text), want));
  }
  test('equality is numeric', () => {
    assert.ok(sameQuantity('1Gi', '1024Mi'));
    assert.ok(!sameQuantity('1Gi', '1G'));
    assert.ok(sameQuantity(undefined, undefined));
  });
});

describe('conform', () => {
  const schema = kindSchemas.get('PersistentVolumeClaim');
  assert.ok(schema);
  test('unknown fields go, with their paths told', () => {
    const claim = {
      metadata: { name: 'a', nonsense: 1 },
      spec: { accessModes: ['x'], selector: { matchExpressions: [{ key: 'k', bad: 1 }] }, foo: {} },
      extra: true,
    };
    assert.deepEqual(conform(claim, schema), [
      'metadata.nonsense',
      'spec.selector.matchExpressions[0].bad',
      'spec.foo',
      'extra',
    ]);
    assert.deepEqual(Object.keys(claim), ['metadata', 'spec']);
  });
  for (const bad of [
    { spec: 5 },
    { spec: { accessModes: 'x' } },
    { spec: { volumeName: 1 } },
    { metadata: { labels: { a: 1 } } },
  ]) {
    test(`${JSON.stringify(bad)} has a wrong type`, () => assert.throws(() => conform(bad, schema), { code: 400 }));
  }
});

describe('continue tokens', () => {
  test('a token leads back to its point', () => {
    const point = { rv: 1005, after: 'ns\0name' };
    const token = encodeContinue(point);
    assert.match(token, /^[\w-]+$/);
    assert.deepEqual(decodeContinue(token), point);
  });
  for (const bad of ['x', '', Buffer.from('{"v":"other"}').toString('base64url')]) {
    test(`${JSON.stringify(bad)} is none`, () => assert.throws(() => decodeContinue(bad), { code: 400 }));
  }
});

describe('Faults', () => {
  const subject = {
    user: 'u',
    userAgent: 'client/v1',
    verb: 'list',
    group: '',
    resource: 'pods',
    subresource: '',
    namespace: 'ns',
    name: '',
    watch: false,
  };
  const struck = (rule: Parameters<Faults['add']>[0], times: number, random = () => 0): string => {
    const faults = new Faults({ random });
    faults.add(rule);
    return Array.from({ length: times }, () => (faults.strike(subject) === undefined ? '.' : 'x')).join('');
  };
  const action = { type: 'dropBefore' } as const;
  const cases: { name: string; rule: Parameters<Faults['add']>[0]; want: string }[] = [
    { name: 'always', rule: { action }, want: 'xxxxxx' },
    { name: 'twice', rule: { action, times: 2 }, want: 'xx....' },
    { name: 'after two', rule: { action, after: 2 }, want: '..xxxx' },
    { name: 'every third', rule: { action, every: 3 }, want: '..x..x' },
    { name: 'for another resource', rule: { action, match: { resource: 'nodes' } }, want: '......' },
    {
      name: 'for part of a user agent',
      rule: { action, match: { userAgent: 'client', verb: 'list' } },
      want: 'xxxxxx',
    },
    { name: 'never by chance', rule: { action, probability: 0 }, want: '......' },
  ];
  for (const { name, rule, want } of cases) test(`strikes ${name}`, () => assert.equal(struck(rule, 6), want));

  test('the first rule that matches wins, until it is removed', () => {
    const faults = new Faults({ random: () => 0 });
    const first = faults.add({ action: { type: 'compactNow' } });
    faults.add({ action });
    assert.equal(faults.strike(subject)?.type, 'compactNow');
    first.remove();
    assert.equal(faults.strike(subject)?.type, 'dropBefore');
    faults.clear();
    assert.equal(faults.strike(subject), undefined);
    assert.equal(first.hits, 1);
  });

  test('a rule read from HTTP must make sense', () => {
    const rule = { match: { verb: 'list' }, action: { type: 'delay', ms: 5 }, times: 1 };
    assert.deepEqual(parseFaultRule(rule), rule);
    for (const bad of [
      {},
      { action: { type: 'shred' } },
      { action: { type: 'delay' } },
      { action: { type: 'delay', ms: 5, more: 1 } },
      { action, match: { color: 'red' } },
      { action, match: { watch: 'yes' } },
      { action, times: 'many' },
      { action, color: 1 },
    ]) {
      assert.throws(() => parseFaultRule(bad), { code: 400 }, JSON.stringify(bad));
    }
  });
});

describe('flags of the sandbox', () => {
  test('both forms of a flag are read', () => {
    assert.deepEqual(parseSandboxFlags(['--port=8080', '--nodes', '3', '--kubeconfig', '/k', '--faults']), {
      kind: 'run',
      options: { api: { port: 8080, faults: true, tls: false }, nodes: 3, rbac: false, kubeconfigPath: '/k' },
    });
    assert.deepEqual(parseSandboxFlags(['--data=/d', '--tls', '--rbac']), {
      kind: 'run',
      options: { api: { port: 0, faults: false, tls: true, persistence: { path: '/d' } }, nodes: 2, rbac: true },
    });
    assert.deepEqual(parseSandboxFlags(['--rbac-manifest', 'rbac.yaml']), {
      kind: 'run',
      options: { api: { port: 0, faults: false, tls: false }, nodes: 2, rbac: false, rbacManifest: 'rbac.yaml' },
    });
    const older = ['--serve=volumeattributesclasses.storage.k8s.io=v1beta1', '--serve', 'nodes=none'];
    assert.deepEqual(parseSandboxFlags(older), {
      kind: 'run',
      options: {
        api: {
          port: 0,
          faults: false,
          tls: false,
          versions: { 'volumeattributesclasses.storage.k8s.io': ['v1beta1'] },
          disabledResources: ['nodes'],
        },
        nodes: 2,
        rbac: false,
      },
    });
    assert.deepEqual(parseSandboxFlags(['--help']), { kind: 'help' });
  });
  const bad: [string[], RegExp][] = [
    [['--port', 'x'], /--port "x": must be a whole number from 0 to 65535/],
    [['--port=70000'], /--port "70000"/],
    [['--nodes'], /--nodes: must be a whole number from 0 to 1000/],
    [['--kubeconfig='], /--kubeconfig "": must be a file path/],
    [['--serve=nodes=latest'], /--serve "nodes=latest": must be PLURAL\.GROUP=VERSION/],
    [['--serve=nothing.example.com=v1'], /--serve "nothing\.example\.com=v1": must be /],
    [['--color'], /unknown flag: --color: must be --port/],
  ];
  for (const [args, message] of bad) {
    test(`${args.join(' ')} is refused in one line`, () => {
      const flags = parseSandboxFlags(args);
      assert.ok(flags.kind === 'error');
      assert.match(flags.message, message);
    });
  }
});
