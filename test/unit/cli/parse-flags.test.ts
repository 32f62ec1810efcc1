import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { flagGroups, flagList, type FlagName, type FlagValues } from '../../../src/cli/flags.ts';
import { helpText, parseFlags } from '../../../src/cli/parse-flags.ts';
import { ExitError } from '../../../src/run/exit.ts';

function parsed(...args: string[]): { values: FlagValues; given: ReadonlySet<FlagName>; ignored: readonly string[] } {
  const result = parseFlags('/csi-provisioner', args);
  if (result.kind === 'help') throw new Error('asked for help');
  return result;
}

function errorOf(...args: string[]): string {
  try {
    parseFlags('/csi-provisioner', args);
  } catch (error) {
    assert.ok(error instanceof ExitError, String(error));
    assert.equal(error.code, 2);
    assert.equal(error.severity, 'plain');
    return error.line;
  }
  throw new assert.AssertionError({ message: `accepted: ${args.join(' ')}` });
}

const seconds = (n: number): bigint => BigInt(n) * 1_000_000_000n;

describe('the grammar', () => {
  test('a value stands behind = or a blank', () => {
    assert.equal(parsed('--timeout=7s').values.timeout, seconds(7));
    assert.equal(parsed('--timeout', '7s').values.timeout, seconds(7));
  });

  test('the next argument is the value whatever it looks like', () => {
    const { values } = parsed('--csi-address', '--version');
    assert.equal(values['csi-address'], '--version');
    assert.equal(values.version, false);
    assert.equal(parsed('--csi-address', '--').values['csi-address'], '--');
    assert.equal(parsed('--csi-address', '').values['csi-address'], '');
  });

  test('a value may be empty, and may hold = and line breaks', () => {
    assert.equal(parsed('--csi-address=').values['csi-address'], '');
    assert.equal(parsed('--csi-address=a=b\nc').values['csi-address'], 'a=b\nc');
  });

  test('a boolean alone is true and takes a value only behind =', () => {
    assert.equal(parsed('--strict-topology').values['strict-topology'], true);
    assert.equal(parsed('--immediate-topology=false').values['immediate-topology'], false);
    const { values, ignored } = parsed('--immediate-topology', 'false');
    assert.equal(values['immediate-topology'], true);
    assert.deepEqual(ignored, ['false']);
  });

  for (const args of [['-v', '5'], ['-v=5'], ['-v5'], ['--v=5'], ['--v', '5']]) {
    test(`${args.join(' ')} sets the verbosity`, () => assert.equal(parsed(...args).values.v, 5));
  }

  test('arguments that are no flags are set aside, wherever they stand', () => {
    const { values, ignored } = parsed('a', '--v=1', '-', '', '--worker-threads=3', 'b');
    assert.deepEqual(ignored, ['a', '-', '', 'b']);
    assert.equal(values['worker-threads'], 3);
  });

  test('-test.* is ignored', () => {
    assert.deepEqual(parsed('-test.v', '-test.timeout=5').given, new Set());
  });

  test('-- ends the flags', () => {
    const { values, ignored } = parsed('--v=1', '--', '--v=2', '--bogus');
    assert.equal(values.v, 1);
    assert.deepEqual(ignored, ['--v=2', '--bogus']);
  });

  test('the last of repeated flags wins', () => {
    assert.equal(parsed('--timeout=1s', '--timeout=2s').values.timeout, seconds(2));
    assert.equal(parsed('--strict-topology', '--strict-topology=false').values['strict-topology'], false);
  });

  test('gates, labels and vmodule accumulate', () => {
    const { values } = parsed(
      '--feature-gates=A=true, B = false ,',
      '--feature-gates=A=0',
      '--leader-election-labels=k1:v1,k2:',
      '--leader-election-labels=k1:v3',
      '--vmodule=a=1,,b*=2',
      '--vmodule=c=3',
    );
    assert.deepEqual([...values['feature-gates']], [['A', false], ['B', false]]); // prettier-ignore
    assert.deepEqual([...values['leader-election-labels']], [['k1', 'v3'], ['k2', '']]); // prettier-ignore
    assert.deepEqual(values.vmodule.map(({ pattern, verbosity }) => `${pattern}=${verbosity}`), ['a=1', 'b*=2', 'c=3']); // prettier-ignore
  });

  for (const args of [['--help'], ['-h'], ['-help'], ['-hello'], ['--help=no'], ['x', '--v=1', '--help', '--bogus']]) {
    test(`${args.join(' ')} asks for help`, () => assert.equal(parseFlags('x', args).kind, 'help'));
  }

  test('what was given is told apart from what is default', () => {
    assert.deepEqual(parsed('--timeout=10s', '-v0').given, new Set(['timeout', 'v']));
  });

  test('no flag leaks from one command line into the next', () => {
    parsed('--feature-gates=A=true', '--leader-election-labels=a:b');
    const { values } = parsed();
    assert.equal(values['feature-gates'].size, 0);
    assert.equal(values['leader-election-labels'].size, 0);
  });
});

describe('syntax errors', () => {
  const cases: [string[], string][] = [
    [['--bogus'], 'unknown flag: --bogus'],
    [['--bogus=1'], 'unknown flag: --bogus'],
    [['--constructor'], 'unknown flag: --constructor'],
    [['-q'], "unknown shorthand flag: 'q' in -q"],
    [['-csi-address=x'], "unknown shorthand flag: 'c' in -csi-address=x (did you mean --csi-address?)"],
    [['-node-deployment'], "unknown shorthand flag: 'n' in -node-deployment (did you mean --node-deployment?)"],
    [['-='], "unknown shorthand flag: '=' in -="],
    [["-'"], "unknown shorthand flag: '\\'' in -'"],
    [['-"'], `unknown shorthand flag: '"' in -"`],
    [['-\u00e9'], "unknown shorthand flag: '\u00c3' in -\u00e9"],
    [['--timeout'], 'flag needs an argument: --timeout'],
    [['--feature-gates'], 'flag needs an argument: --feature-gates'],
    [['-v'], "flag needs an argument: 'v' in -v"],
    [['--v'], 'flag needs an argument: --v'],
    [['--=x'], 'bad flag syntax: --=x'],
    [['---x'], 'bad flag syntax: ---x'],
    [['---'], 'bad flag syntax: ---'],
    ...[
      '--provisioner',
      '--logtostderr',
      '--alsologtostderr',
      '--stderrthreshold',
      '--log-file',
      '--log_dir',
      '--skip-headers',
      '--add-dir-header',
    ].map((flag): [string[], string] => [[flag, 'x'], `unknown flag: ${flag}`]),
    [['-alsologtostderr'], "unknown shorthand flag: 'a' in -alsologtostderr"],
  ];
  for (const [args, line] of cases) {
    test(args.join(' '), () => assert.equal(errorOf(...args), line));
  }

  const slips: [given: string, meant: string][] = [
    ['--csi-adress', '--csi-address'],
    ['--csi_address', '--csi-address'],
    ['--Timeout', '--timeout'],
    ['--kube-config', '--kubeconfig'],
    ['--leader-elction-lease-duration', '--leader-election-lease-duration'],
    ['--worker-thread', '--worker-threads'],
    ['--connection-timeout', '--timeout'],
    ['--enable-leader-election', '--leader-election'],
    ['--leader-election-type', '--leader-election'],
  ];
  for (const [given, meant] of slips) {
    test(`${given} names ${meant} as what was meant`, () => {
      assert.equal(errorOf(`${given}=x`), `unknown flag: ${given} (did you mean ${meant}?)`);
    });
  }

  test('a name that comes near none is reported alone, however long it is', () => {
    assert.equal(errorOf(`--${'x'.repeat(100_000)}`), `unknown flag: --${'x'.repeat(100_000)}`);
  });

  test('the first problem from the left decides', () => {
    assert.match(errorOf('--timeout=x', '--bogus', '--help'), /^invalid argument "x" for "--timeout" flag/);
    assert.equal(errorOf('--bogus', '--timeout=x', '--help'), 'unknown flag: --bogus');
    assert.match(errorOf('--timeout=x', '--help'), /^invalid argument/);
  });
});

describe('value errors', () => {
  const uint = (text: string, why = 'invalid syntax'): string => `strconv.ParseUint: parsing "${text}": ${why}`;
  const cases: [FlagName, string, string][] = [
    ['timeout', 'abc', 'time: invalid duration "abc"'],
    ['timeout', '5', 'time: missing unit in duration "5"'],
    ['timeout', '1d', 'time: unknown unit "d" in duration "1d"'],
    ['timeout', '', 'time: invalid duration ""'],
    ['leader-election-lease-duration', '15', 'parse error'],
    ['leader-election-retry-period', '5S', 'parse error'],
    ['volume-name-uuid-length', 'x', 'strconv.ParseInt: parsing "x": invalid syntax'],
    [
      'volume-name-uuid-length',
      '9223372036854775808',
      'strconv.ParseInt: parsing "9223372036854775808": value out of range',
    ],
    ['kube-api-burst', 'x', 'parse error'],
    ['kube-api-burst', '9223372036854775808', 'value out of range'],
    ['worker-threads', '-1', uint('-1')],
    ['worker-threads', '18446744073709551616', uint('18446744073709551616', 'value out of range')],
    ['kube-api-qps', 'x', 'parse error'],
    ['kube-api-capacity-qps', 'x', 'strconv.ParseFloat: parsing "x": invalid syntax'],
    ['kube-api-capacity-qps', '1e39', 'strconv.ParseFloat: parsing "1e39": value out of range'],
    ['strict-topology', 'maybe', 'strconv.ParseBool: parsing "maybe": invalid syntax'],
    ['strict-topology', '', 'strconv.ParseBool: parsing "": invalid syntax'],
    ['leader-election', 'maybe', 'parse error'],
    ['version', '', 'parse error'],
    ['automaxprocs', 'maybe', 'strconv.ParseBool: parsing "maybe": invalid syntax'],
    ['intent-journal', 'Lease', 'must be lease or off'],
    ['intent-journal', '', 'must be lease or off'],
    [
      'intent-journal',
      'configmap',
      'ConfigMaps need permissions that no manifest grants, and everybody with the role "view" can read them; use lease, or off',
    ],
    ['leader-election-labels', 'a', 'malformed item in list of labels: a'],
    ['leader-election-labels', 'k:v,a:b:c', 'malformed item in list of labels: a:b:c'],
    ['leader-election-labels', 'k:v,', 'malformed item in list of labels: '],
    ['leader-election-labels', '', 'malformed item in list of labels: '],
    ['feature-gates', 'Topology', 'malformed pair, expect string=bool'],
    [
      'feature-gates',
      'Topology=maybe',
      'invalid value of Topology: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax',
    ],
    ['vmodule', 'foo', '"foo" does not have the pattern=N format'],
    ['vmodule', 'a=1,=2', '"=2" does not have the pattern=N format'],
    ['vmodule', 'a=', '"a=" does not have the pattern=N format'],
    ['vmodule', 'a=1=2', '"a=1=2" does not have the pattern=N format'],
    ['vmodule', 'a=x', `parsing verbosity in "a=x": ${uint('x')}`],
    ['log-flush-frequency', '5', 'time: missing unit in duration "5"'],
    ['log-text-split-stream', 'maybe', 'strconv.ParseBool: parsing "maybe": invalid syntax'],
    [
      'log-json-info-buffer-size',
      'x',
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ],
  ];
  for (const [flag, value, reason] of cases) {
    test(`--${flag}=${value}`, () => {
      assert.equal(errorOf(`--${flag}=${value}`), `invalid argument "${value}" for "--${flag}" flag: ${reason}`);
    });
  }

  const verbosity: [string, string][] = [
    ['ersion', 'invalid syntax'],
    ['-1', 'invalid syntax'],
    ['0x1', 'invalid syntax'],
    ['2147483648', 'value out of range'],
  ];
  for (const [value, why] of verbosity) {
    test(`-v${value}`, () => {
      assert.equal(errorOf(`-v${value}`), `invalid argument "${value}" for "-v, --v" flag: ${uint(value, why)}`);
    });
  }

  test('-v= takes the sign itself as value', () => {
    assert.equal(errorOf('-v='), `invalid argument "=" for "-v, --v" flag: ${uint('=')}`);
  });

  test('values are quoted as Go quotes them', () => {
    assert.equal(
      errorOf('--leader-election=a"\n'),
      'invalid argument "a\\"\\n" for "--leader-election" flag: parse error',
    );
  });
});

describe('every flag', () => {
  for (const [name, spec] of flagList) {
    if (spec.kind === 'labels') continue; // no labels cannot be written
    test(`--${name} accepts its default`, () => {
      const { values, given } = parsed(`--${name}=${spec.default}`);
      assert.ok(given.has(name));
      assert.deepEqual(values[name], parsed().values[name]);
    });
  }
});

const help = helpText('/csi-provisioner');

/** The part of the help below a heading. */
function section(title: string): string {
  return help.split(/\n(?=\S.*:\n)/).find((part) => part.startsWith(`${title}:\n`)) ?? '';
}

describe('the help', () => {
  test('begins with the program and fits 100 columns', () => {
    assert.match(help, /^Usage of \/csi-provisioner:\n\nProvisions /);
    for (const line of help.split('\n')) assert.ok(line.length <= 100, line);
  });

  for (const [name, spec] of flagList) {
    test(`--${name} stands under "${flagGroups[spec.group]}", once`, () => {
      const term = new RegExp(`^(?:  -v, |      )--${name}(?:[ =]|$)`, 'gm');
      assert.equal([...section(flagGroups[spec.group]).matchAll(term)].length, 1);
      assert.equal([...help.matchAll(term)].length, 1);
    });
  }

  test('headings come in the order of the table', () => {
    const headings = [...help.matchAll(/^(\S.*):$/gm)].map(([, title]) => title).slice(1);
    assert.deepEqual(headings, Object.values(flagGroups));
  });

  test('shows defaults, what is deprecated and what has no effect', () => {
    const flowing = help.replace(/\s+/g, ' ');
    assert.match(flowing, /--timeout <duration> .*?\(default: 10s\)/);
    assert.match(flowing, /--immediate-topology=false .*?\(default: true\)/);
    assert.match(flowing, /--metrics-address <address> .*?\(deprecated: use --http-endpoint; default: no server\)/);
    assert.match(flowing, /--vmodule <pattern=N,...> .*?\(accepted, without effect\)/);
  });

  test('names every path that an address serves', () => {
    const flowing = help.replace(/\s+/g, ' ');
    assert.match(
      flowing,
      /--http-endpoint <address> [^(]*metrics, \/healthz, \/readyz and, with leader election, \/healthz\/leader-election\./,
    );
    assert.match(
      flowing,
      /--metrics-address <address> [^(]*metrics, \/healthz and \/readyz, without \/healthz\/leader-election\./,
    );
  });

  test('GA gates are not shown', () => {
    assert.doesNotMatch(help, /VolumeAttributesClass/);
    assert.match(help, /CrossNamespaceVolumeDataSource/);
  });
});
