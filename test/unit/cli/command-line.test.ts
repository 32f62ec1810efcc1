import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  CommandLineError,
  parseCommandLine,
  type ParsedCommandLine,
  reportExit,
} from '../../../src/cli/command-line.ts';
import type { Config, Environment } from '../../../src/cli/config.ts';
import { createLogger } from '../../../src/cli/logging.ts';
import { ExitError, failureExit, fatalExit, panicExit, usageExit } from '../../../src/run/exit.ts';

function parse(args: string[], environment: Environment = {}): ParsedCommandLine {
  return parseCommandLine({ argv0: '/csi-provisioner', args, environment, version: 'v1.2.3' });
}

function configOf(args: string[], environment: Environment = {}): Config {
  const parsed = parse(args, environment);
  assert.equal(parsed.kind, 'run');
  return parsed.config;
}

function noticesOf(args: string[], environment: Environment = {}): string[] {
  const parsed = parse(args, environment);
  assert.equal(parsed.kind, 'run');
  return parsed.notices.map(({ level, fields, message }) => `${level} ${message} ${JSON.stringify(fields)}`);
}

function exitOf(args: string[], environment: Environment = {}): CommandLineError {
  try {
    parse(args, environment);
  } catch (error) {
    assert.ok(error instanceof CommandLineError, String(error));
    return error;
  }
  throw new assert.AssertionError({ message: `accepted: ${args.join(' ')}` });
}

describe('what a command line asks for', () => {
  test('help goes to stderr', () => {
    const parsed = parse(['--help']);
    assert.equal(parsed.kind, 'print');
    assert.equal(parsed.stream, 'stderr');
    assert.match(parsed.text, /^Usage of \/csi-provisioner:\n/);
  });

  test('the version goes to stdout', () => {
    assert.deepEqual(parse(['--version']), { kind: 'print', stream: 'stdout', text: '/csi-provisioner v1.2.3\n' });
  });

  test('--version=false runs', () => assert.equal(parse(['--version=false']).kind, 'run'));

  test('an argument that is no flag is ignored, with a warning', () => {
    assert.deepEqual(noticesOf(['some', 'words']), [
      'warn Arguments that are not flags are ignored {"arguments":["some","words"]}',
    ]);
  });
});

describe('the order of checks', () => {
  const bad = {
    syntax: '--bogus',
    logging: '--logging-format=xml',
    gates: '--feature-gates=Foo=true',
    node: '--node-deployment',
    version: '--version',
    addresses: ['--http-endpoint=:1', '--metrics-address=:2'],
  };
  test('syntax comes first', () => {
    assert.equal(exitOf([bad.logging, bad.gates, bad.node, bad.version, bad.syntax]).code, 2);
  });
  test('then logging', () => assert.equal(exitOf([bad.gates, bad.node, bad.version, bad.logging]).code, 1));
  test('then gates', () => {
    assert.equal(exitOf([bad.node, bad.version, bad.gates]).line, 'unrecognized feature gate: Foo');
  });
  test('then NODE_NAME', () => assert.match(exitOf([bad.version, bad.node]).line, /NODE_NAME/));
  test('then the version, before anything else', () => {
    assert.equal(parse([...bad.addresses, '--enable-capacity', bad.version]).kind, 'print');
  });
});

describe('the configuration', () => {
  test('defaults', () => {
    assert.deepEqual(configOf([]), {
      argv0: '/csi-provisioner',
      logging: { format: 'text', verbosity: 0 },
      featureGates: {
        topology: true,
        volumeAttributesClass: true,
        crossNamespaceVolumeDataSource: false,
        releaseLeaderElectionOnExit: true,
        volumeAttributesClassNamed: false,
      },
      csiAddress: '/run/csi/socket',
      csiTimeoutMs: 10_000,
      csiReconnectLimitMs: null,
      nodeDeployment: null,
      http: null,
      kubernetes: {
        kubeconfigFiles: [],
        kubeconfigFromEnvironment: false,
        masterUrl: '',
        rateLimit: null,
        capacityRateLimit: null,
      },
      provisioning: {
        volumeNamePrefix: 'pvc',
        volumeNameUuidLength: -1,
        defaultFsType: '',
        extraCreateMetadata: false,
        controllerPublishReadOnly: false,
        preventVolumeModeConversion: true,
        strictTopology: false,
        immediateTopology: true,
        workerThreads: 100,
        cloningProtectionThreads: 1,
        retryIntervalStartMs: 1_000,
        retryIntervalMaxMs: 300_000,
        snapshotSweepIntervalMs: 300_000,
      },
      capacity: null,
      leaderElection: null,
      auditIntervalMs: null,
      intentJournal: { namespace: '' },
    } satisfies Config);
  });

  test('is frozen all the way down', () => {
    const config = configOf(['--leader-election', '--leader-election-labels=a:b']);
    assert.throws(() => Object.assign(config, { csiAddress: 'x' }), TypeError);
    assert.throws(() => Object.assign(config.provisioning, { workerThreads: 1 }), TypeError);
    assert.throws(() => Object.assign(config.leaderElection?.labels ?? {}, { a: 'c' }), TypeError);
  });

  test('the arguments of the published capacity manifest', () => {
    const config = configOf(
      ['--csi-address=/s', '--leader-election', '--enable-capacity', '--capacity-ownerref-level=2'],
      { NAMESPACE: 'storage', POD_NAME: 'csi-0' },
    );
    assert.equal(config.csiAddress, '/s');
    assert.deepEqual(config.capacity, {
      namespace: 'storage',
      podName: 'csi-0',
      ownerRefLevel: 2,
      threads: 1,
      pollIntervalMs: 60_000,
      forImmediateBinding: false,
    });
    assert.deepEqual(config.leaderElection, {
      namespace: '',
      leaseDurationMs: 15_000,
      renewDeadlineMs: 10_000,
      retryPeriodMs: 5_000,
      labels: {},
    });
  });

  test('node deployment', () => {
    assert.deepEqual(
      configOf(['--node-deployment', '--node-deployment-base-delay=1s'], { NODE_NAME: 'n1' }).nodeDeployment,
      {
        nodeName: 'n1',
        immediateBinding: true,
        baseDelayMs: 1_000,
        maxDelayMs: 60_000,
      },
    );
    assert.equal(configOf([], { NODE_NAME: 'n1' }).nodeDeployment, null);
  });

  test('a non-empty KUBECONFIG wins over the flag, and may list several files', () => {
    const given = configOf(['--kubeconfig=/flag'], { KUBECONFIG: '/variable::/other:/variable' }).kubernetes;
    assert.deepEqual(given.kubeconfigFiles, ['/variable', '/other']);
    assert.equal(given.kubeconfigFromEnvironment, true);
    const empty = configOf(['--kubeconfig=/flag'], { KUBECONFIG: '' }).kubernetes;
    assert.deepEqual(empty.kubeconfigFiles, ['/flag']);
    assert.equal(empty.kubeconfigFromEnvironment, false);
    assert.deepEqual(configOf(['--kubeconfig=/a:b']).kubernetes.kubeconfigFiles, ['/a:b'], 'the flag names one file');
  });

  test('the intent journal is in the namespace of the lease, also without leader election', () => {
    const environment = { POD_NAMESPACE: 'b' };
    assert.equal(configOf([], environment).intentJournal?.namespace, 'b');
    assert.equal(configOf(['--leader-election-namespace=a'], environment).intentJournal?.namespace, 'a');
  });

  test('the namespace of the lease: flag, then POD_NAMESPACE', () => {
    const namespace = (args: string[], environment: Environment): string | undefined =>
      configOf(['--leader-election', ...args], environment).leaderElection?.namespace;
    assert.equal(namespace(['--leader-election-namespace=a'], { POD_NAMESPACE: 'b' }), 'a');
    assert.equal(namespace([], { POD_NAMESPACE: 'b', NAMESPACE: 'c' }), 'b');
    assert.equal(namespace([], { NAMESPACE: 'c' }), '');
  });

  test('health is served with leader election on --http-endpoint only', () => {
    const health = (...args: string[]): boolean | undefined => configOf(args).http?.health;
    assert.equal(health('--leader-election', '--http-endpoint=:1'), true);
    assert.equal(health('--leader-election', '--metrics-address=:1'), false);
    assert.equal(health('--http-endpoint=:1'), false);
  });

  test('--enable-pprof without an address serves nothing', () => assert.equal(configOf(['--enable-pprof']).http, null));

  test('a sweep interval of zero or less means no sweep', () => {
    for (const interval of ['0', '-1s']) {
      assert.equal(
        configOf([`--snapshot-orphan-sweep-interval=${interval}`]).provisioning.snapshotSweepIntervalMs,
        null,
      );
    }
  });

  test('no owner needs no Pod name', () => {
    const config = configOf(['--enable-capacity', '--capacity-ownerref-level=-5'], { NAMESPACE: 'n', POD_NAME: 'p' });
    assert.equal(config.capacity?.podName, '');
  });
});

describe('rate limits', () => {
  const limit = (...args: string[]): unknown => configOf(args).kubernetes.rateLimit;

  test('hold only when a rate is given', () => {
    assert.equal(limit(), null);
    assert.equal(limit('--kube-api-burst=50'), null);
    assert.deepEqual(limit('--kube-api-qps=5'), { perSecond: 5, burst: 10 });
    assert.deepEqual(limit('--kube-api-qps=20', '--kube-api-burst=40'), { perSecond: 20, burst: 40 });
  });
  test('zero is the default of the client library', () => {
    assert.deepEqual(limit('--kube-api-qps=0', '--kube-api-burst=0'), { perSecond: 5, burst: 10 });
    assert.deepEqual(limit('--kube-api-qps=0', '--kube-api-burst=7'), { perSecond: 5, burst: 7 });
  });
  for (const none of ['-1', 'inf', 'nan']) {
    test(`${none} is no limit`, () => assert.equal(limit(`--kube-api-qps=${none}`, '--kube-api-burst=0'), null));
  }
  test('a rate without a burst is fatal', () => {
    const { code, line } = exitOf(['--kube-api-qps=20', '--kube-api-burst=0']);
    assert.equal(code, 255);
    assert.match(
      line,
      /^Failed to create client: burst is required to be greater than 0 when RateLimiter is not set and QPS is set to greater than 0 \(--kube-api-qps=20, --kube-api-burst=0\)$/,
    );
  });
  test('capacity has its own, in force only with capacity', () => {
    const flags = ['--kube-api-capacity-qps=0.5'];
    assert.equal(configOf(flags).kubernetes.capacityRateLimit, null);
    assert.deepEqual(
      configOf([...flags, '--enable-capacity'], { NAMESPACE: 'n', POD_NAME: 'p' }).kubernetes.capacityRateLimit,
      { perSecond: 0.5, burst: 5 },
    );
  });
});

describe('fatal configurations', () => {
  const cases: { args: string[]; environment?: Environment; code: number; line: string }[] = [
    {
      args: ['--node-deployment'],
      environment: { NODE_NAME: '' },
      code: 255,
      line: 'The NODE_NAME environment variable must be set when using --enable-node-deployment.',
    },
    {
      args: ['--http-endpoint=:1', '--metrics-address=:2'],
      code: 1,
      line: 'only one of `--metrics-address` and `--http-endpoint` can be set.',
    },
    { args: ['--enable-capacity'], code: 255, line: 'need NAMESPACE env variable for CSIStorageCapacity objects' },
    {
      args: ['--enable-capacity'],
      environment: { NAMESPACE: 'n' },
      code: 255,
      line: 'need POD_NAME env variable to determine CSIStorageCapacity owner',
    },
    {
      args: ['--http-endpoint=foo'],
      code: 255,
      line:
        'Failed to start HTTP server at specified address ("foo") and metrics path ("/metrics"): ' +
        'listen tcp: address foo: missing port in address',
    },
    { args: ['--http-endpoint=:1', '--metrics-path='], code: 2, line: 'panic: http: invalid pattern' },
    {
      args: ['--http-endpoint=:1', '--metrics-path=metrics'],
      code: 2,
      line: 'panic: parsing "metrics": at offset 0: host/path missing /',
    },
    {
      args: ['--http-endpoint=:1', '--metrics-path=/a b'],
      code: 2,
      line: 'panic: parsing "/a b": at offset 0: invalid method "/a"',
    },
    {
      args: ['--leader-election', '--leader-election-lease-duration=10s'],
      code: 2,
      line:
        'panic: leaseDuration must be greater than renewDeadline ' +
        '(--leader-election-lease-duration=10s, --leader-election-renew-deadline=10s)',
    },
    {
      args: ['--leader-election', '--leader-election-renew-deadline=6s'],
      code: 2,
      line:
        'panic: renewDeadline must be greater than retryPeriod*JitterFactor ' +
        '(--leader-election-renew-deadline=6s, --leader-election-retry-period=5s, factor 1.2)',
    },
    {
      args: [
        '--leader-election',
        '--leader-election-lease-duration=900ms',
        '--leader-election-renew-deadline=500ms',
        '--leader-election-retry-period=100ms',
      ],
      code: 2,
      line: 'panic: leaseDuration must be at least 1s, a Lease counts whole seconds (--leader-election-lease-duration=900ms)',
    },
    {
      args: ['--audit-interval=-1s'],
      code: 1,
      line: '--audit-interval must not be negative. 0: no audit.',
    },
    {
      args: ['--leader-election', '--leader-election-retry-period=0'],
      code: 2,
      line: 'panic: retryPeriod must be greater than zero (--leader-election-retry-period=0s)',
    },
  ];
  for (const { args, environment, code, line } of cases) {
    test(`${args.join(' ')}: exit ${code}`, () => {
      const exit = exitOf(args, environment);
      assert.equal(exit.line, line);
      assert.equal(exit.code, code);
    });
  }

  for (const path of ['/healthz/leader-election', '/debug/pprof/', '/status']) {
    test(`the metrics cannot take ${path}`, () => {
      const others = ['--leader-election', '--enable-pprof', '--status-page'];
      const flags = ['--http-endpoint=:1', `--metrics-path=${path}`, ...others];
      const exit = exitOf(flags);
      assert.equal(exit.code, 2);
      assert.match(exit.line, /^panic: pattern .* conflicts with pattern /);
      assert.equal(parse([flags[0] ?? '', flags[1] ?? '']).kind, 'run', 'free without its other owner');
    });
  }

  test('bad paths and timings do not matter where nothing uses them', () => {
    assert.equal(parse(['--metrics-path=', '--leader-election-retry-period=0']).kind, 'run');
  });
});

describe('bad logging flags', () => {
  const cases: [string[], string][] = [
    [['--logging-format=xml'], 'format: Invalid value: "xml": Unsupported log format'],
    [['--logging-format='], 'format: Invalid value: "": Unsupported log format'],
    [['--log-flush-frequency=0'], 'flushFrequency: Invalid value: "0s": Must be greater than zero'],
    [['--log-flush-frequency=-1m'], 'flushFrequency: Invalid value: "-1m0s": Must be greater than zero'],
    [['--logging-format=json', '--vmodule=a=1'], 'vmodule: Forbidden: Only supported for text log format'],
    [['--log-text-split-stream'], 'options.text.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled'],
    [['--log-json-split-stream'], 'options.json.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled'],
    [
      ['--log-text-info-buffer-size=1Ki'],
      'options.text.infoBufferSize: Forbidden: Feature LoggingAlphaOptions is disabled',
    ],
    [
      ['--log-json-info-buffer-size=1m'],
      'options.json.infoBufferSize: Forbidden: Feature LoggingAlphaOptions is disabled',
    ],
    [
      ['--logging-format=xml', '--log-flush-frequency=0'],
      '[format: Invalid value: "xml": Unsupported log format, flushFrequency: Invalid value: "0s": Must be greater than zero]',
    ],
  ];
  for (const [args, err] of cases) {
    test(args.join(' '), () => {
      const exit = exitOf(args);
      assert.equal(exit.code, 1);
      assert.equal(exit.line, 'LoggingConfiguration is invalid');
      assert.deepEqual(exit.fields, { err });
      assert.equal(exit.logging, null);
    });
  }

  test('harmless values are accepted', () => {
    const args = [
      '--log-text-split-stream=false',
      '--log-json-info-buffer-size=0Ki',
      '--vmodule=a=1',
      '--log-flush-frequency=1ns',
    ];
    assert.deepEqual(configOf([...args, '-v=3']).logging, { format: 'text', verbosity: 3 });
  });

  test('later failures carry the logging that was asked for', () => {
    assert.deepEqual(exitOf(['--logging-format=json', '-v=2', '--enable-capacity']).logging, {
      format: 'json',
      verbosity: 2,
    });
  });
});

describe('notices', () => {
  test('none by default', () => assert.deepEqual(noticesOf([]), []));

  const cases: [string[], RegExp][] = [
    [['--immediate-topology', 'false'], /^warn Arguments that are not flags are ignored \{"arguments":\["false"\]\}$/],
    [['--feature-gates=Topology=false'], /^info Warning: setting GA feature gate/],
    [['--timeout=0'], /^warn Every call to the driver will fail.*--timeout/],
    [['--volume-name-prefix='], /^warn No volume can be named.*--volume-name-prefix/],
    [['--volume-name-uuid-length=33'], /^warn No volume can be named.*"value":33/],
    [['--volume-name-uuid-length=-2'], /^warn No volume can be named.*"value":-2/],
    [['--worker-threads=0'], /^warn Nothing will be provisioned/],
    [['--enable-capacity', '--capacity-threads=0'], /^warn No capacity will be published/],
    [['--audit-interval=59s'], /^warn The driver will be asked for all its volumes more than once in a minute/],
    [['--node-deployment', '--leader-election'], /^warn Leader election is left out/],
  ];
  for (const [args, want] of cases) {
    test(args.join(' '), () => {
      const notices = noticesOf(args, { NODE_NAME: 'n', NAMESPACE: 'ns', POD_NAME: 'p' });
      assert.equal(notices.length, 1, notices.join('\n'));
      assert.match(notices[0] ?? '', want);
    });
  }

  test('an audit every minute is fine', () => assert.deepEqual(noticesOf(['--audit-interval=1m']), []));

  test('the whole range of name lengths is fine', () => {
    for (const length of [-1, 0, 32]) assert.deepEqual(noticesOf([`--volume-name-uuid-length=${length}`]), []);
  });
});

function report(error: ExitError): { code: number; text: string } {
  let text = '';
  const write = (part: string): void => void (text += part);
  const logger = createLogger({ format: 'text', verbosity: 0, sink: { write } });
  return { code: reportExit(error, { logger, writeError: write }), text };
}

describe('the end of the process', () => {
  test('a bad command line: one line whatever it holds, 2', () => {
    assert.deepEqual(report(usageExit('unknown flag: --x')), { code: 2, text: 'unknown flag: --x\n' });
    assert.deepEqual(report(usageExit('unknown flag: --a\nb "c"')), { code: 2, text: 'unknown flag: --a\\nb "c"\n' });
  });

  test('what panics in the original: its text, 2', () => {
    assert.deepEqual(report(panicExit('http: invalid pattern')), { code: 2, text: 'panic: http: invalid pattern\n' });
  });

  test('fatal: one F line, 255', () => {
    const { code, text } = report(fatalExit('Failed to create config: stat /x: no such file or directory'));
    assert.equal(code, 255);
    assert.match(text, /^F\d{4} .*\] Failed to create config: stat \/x: no such file or directory\n$/);
  });

  test('failure: one E line, 1', () => {
    const { code, text } = report(failureExit('Lost connection', { address: 'unix:///s' }));
    assert.equal(code, 1);
    assert.match(text, /^E\d{4} .*\] "Lost connection" address="unix:\/\/\/s"\n$/);
  });

  test('no line, no output', () => {
    assert.deepEqual(report(new ExitError('', { code: 0, severity: 'plain' })), { code: 0, text: '' });
  });

  test('the cause stays with the error', () => {
    const cause = new Error('why');
    assert.equal(fatalExit('x', cause).cause, cause);
  });
});
