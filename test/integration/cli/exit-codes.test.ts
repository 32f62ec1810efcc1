/** How the program ends before it has done anything: its streams, its last line and its exit code. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { claimingVersion, mainFile, runNode, runProgram } from './program-run.ts';
import { programSource } from '../../support/program-file.ts';

/** One row: what is asked, and how it ends. */
interface Row {
  row: string;
  args: string[];
  environment?: Record<string, string>;
  code: number;
  /** Of the last line of standard error. */
  last: RegExp;
}

const master = '--master=http://127.0.0.1:9';
const noCsi = '--csi-address=/nonexistent/csi.sock';

const rows: Row[] = [
  {
    row: 'a long name behind a single dash is a cluster of short flags',
    args: ['-csi-address=/s'],
    code: 2,
    last: /^unknown shorthand flag: 'c' in -csi-address=\/s \(did you mean --csi-address\?\)$/,
  },
  {
    row: 'a name that starts with v is -v with the rest as value',
    args: ['-version'],
    code: 2,
    last: /^invalid argument "ersion" for "-v, --v" flag: strconv\.ParseUint: parsing "ersion": invalid syntax$/,
  },
  { row: 'the last line names an unknown flag', args: ['--bogus'], code: 2, last: /^unknown flag: --bogus$/ },
  {
    row: 'the next argument is the value, whatever it looks like',
    args: ['--csi-address', '--version', master],
    code: 1,
    last: /OnConnectionLoss callback only supported for unix:\/\/ addresses: --csi-address must be an absolute path/,
  },
  {
    row: 'a bad logging configuration is one error line',
    args: ['--logging-format=xml'],
    code: 1,
    last: /^E.*\] "LoggingConfiguration is invalid" err="format: Invalid value: \\"xml\\": Unsupported log format"$/,
  },
  { row: 'klog flags are unknown', args: ['--logtostderr'], code: 2, last: /^unknown flag: --logtostderr$/ },
  {
    row: 'KUBECONFIG wins over the flag and is one path, also with a colon',
    args: ['--kubeconfig=/flag', noCsi],
    environment: { KUBECONFIG: '/a:/b' },
    code: 255,
    last: /^F.*\] Failed to create config: stat \/a:\/b: no such file or directory$/,
  },
  {
    row: 'kubeconfig, master and the variables of a pod are all missing',
    args: [noCsi],
    code: 255,
    last: /^F.*\] Failed to create config: unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined$/,
  },
  {
    row: 'the in-cluster token cannot be read',
    args: [noCsi],
    environment: { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: '1' },
    code: 255,
    last: /^F.*\] Failed to create config: open \/var\/run\/secrets\/kubernetes\.io\/serviceaccount\/token/,
  },
  {
    row: 'an unknown gate ends without usage',
    args: ['--feature-gates=Foo=true'],
    code: 255,
    last: /^F.*\] unrecognized feature gate: Foo$/,
  },
  {
    row: 'a locked gate cannot be changed',
    args: ['--feature-gates=APIServerTracing=false'],
    code: 255,
    last: /\] cannot set feature gate APIServerTracing to false, feature is locked to true$/,
  },
  {
    row: 'NODE_NAME is missing, even with --version',
    args: ['--node-deployment', '--version'],
    code: 255,
    last: /\] The NODE_NAME environment variable must be set when using --enable-node-deployment\.$/,
  },
  {
    row: '--http-endpoint and --metrics-address exclude each other',
    args: ['--http-endpoint=:1', '--metrics-address=:2'],
    code: 1,
    last: /^E.*\] only one of `--metrics-address` and `--http-endpoint` can be set\.$/,
  },
  {
    row: 'a rate without a burst is refused',
    args: [master, '--kube-api-qps=1', '--kube-api-burst=0'],
    code: 255,
    last: /\] Failed to create client: burst is required to be greater than 0 when RateLimiter is not set and QPS is set to greater than 0/,
  },
  {
    row: 'timings of leader election that cannot work are refused',
    args: [master, '--leader-election', '--leader-election-renew-deadline=15s'],
    code: 2,
    last: /^panic: leaseDuration must be greater than renewDeadline/,
  },
  {
    row: 'an HTTP address without a port is refused',
    args: [master, '--http-endpoint=foo'],
    code: 255,
    last: /^F.*\] Failed to start HTTP server at specified address \("foo"\) and metrics path \("\/metrics"\): listen tcp: address foo: missing port in address$/,
  },
  {
    row: 'a metrics path without a slash is refused',
    args: [master, '--http-endpoint=:0', '--metrics-path=metrics'],
    code: 2,
    last: /^panic: parsing "metrics": at offset 0: host\/path missing \/$/,
  },
  ...['', 'csi.sock', 'unix:/csi.sock', 'localhost:9000', 'tcp://localhost:9000', 'dns:///localhost'].map(
    (address) => ({
      row: `the CSI address ${JSON.stringify(address)} is refused at once`,
      args: [master, `--csi-address=${address}`],
      code: 1,
      last: /^E.*\] OnConnectionLoss callback only supported for unix:\/\/ addresses: --csi-address must be an absolute path/,
    }),
  ),
  {
    row: 'a CSI address unix:// with an authority is refused',
    args: [master, '--csi-address=unix://rel/csi.sock'],
    code: 1,
    last: /^E.*\] failed to exit idle mode: failed to start resolver: invalid \(non-empty\) authority: rel: --csi-address must be an absolute path/,
  },
];

describe('how the program ends before it has done anything', () => {
  for (const { row, args, environment, code, last } of rows) {
    test(`${row}: exit ${code}`, async () => {
      const run = await runProgram(args, environment);
      assert.match(run.stderr.trimEnd().split('\n').at(-1) ?? '', last);
      assert.equal(run.code, code);
      assert.equal(run.stdout, '', 'stdout carries only the version');
      assert.doesNotMatch(run.stderr, /\n\s+at /, 'no stack trace');
      if (code === 2) assert.equal(run.stderr.split('\n').length, 2, 'one line');
    });
  }

  for (const flag of ['--help', '-h', '-help']) {
    test(`${flag} prints the usage on stderr, nothing on stdout: exit 0`, async () => {
      const run = await runProgram(['--v=1', flag, '--bogus']);
      assert.deepEqual([run.code, run.stdout], [0, '']);
      assert.ok(run.stderr.startsWith(`Usage of ${mainFile}:\n`), run.stderr.slice(0, 100));
    });
  }

  for (const args of [['--version'], ['x', '--version', '--', '--bogus'], ['--version=1', '-test.v']]) {
    test(`${args.join(' ')} prints name and version on stdout: exit 0`, async () => {
      const run = await runProgram(args);
      assert.deepEqual([run.code, run.stderr], [0, '']);
      assert.ok(run.stdout.startsWith(`${mainFile} `), run.stdout);
      assert.match(run.stdout.slice(mainFile.length), /^ \S+\n$/);
    });
  }

  test('--logging-format=json puts the fatal line on stderr as an info line with v 0, and keeps the exit code', async () => {
    const run = await runProgram(['--logging-format=json', '--feature-gates=Foo=true']);
    assert.deepEqual([run.code, run.stdout], [255, '']);
    const line = JSON.parse(run.stderr) as Record<string, unknown>;
    assert.deepEqual([line['v'], line['msg']], [0, 'unrecognized feature gate: Foo']);
    assert.equal(typeof line['ts'], 'number');
    assert.match(String(line['caller']), /^cli\/[\w-]+\.ts:\d+$/);
  });

  test('a Node.js that is too old is named in one line before anything else: exit 1', async () => {
    const source = programSource('csi-provisioner'); // the bundle is tested with the package
    const run = await runNode([...claimingVersion('22.12.0'), source, '--version']);
    const line = 'csi-provisioner needs Node.js 24 or newer, and this is Node.js 22.12.0\n';
    assert.deepEqual(run, { code: 1, stdout: '', stderr: line });
  });

  describe('with a kubeconfig', () => {
    let folder: string;
    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'exit-codes-'));
      await writeFile(join(folder, 'empty'), '');
    });
    after(() => rm(folder, { recursive: true, force: true }));

    test('that is empty, the last lines say where it came from: exit 255', async () => {
      const run = await runProgram([`--csi-address=/s`], { KUBECONFIG: join(folder, 'empty') });
      assert.equal(run.code, 255);
      assert.match(run.stderr, /"Version" version="/);
      assert.match(run.stderr, /Found KUBECONFIG environment variable set, using that\.\./);
      assert.match(run.stderr, /Either master or kubeconfig specified\. building kube config from that\.\./);
      assert.match(run.stderr, /Failed to create config: invalid configuration: no configuration has been provided,/);
    });
  });
});
