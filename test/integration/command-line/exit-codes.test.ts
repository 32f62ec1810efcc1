/** How the program ends before it has done anything: streams, last line and exit code of chapter 01, rows by name. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { claimingVersion, mainFile, runNode, runProgram } from './program-run.ts';

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
    row: '§1.1: a long name behind a single dash is a cluster of short flags',
    args: ['-csi-address=/s'],
    code: 2,
    last: /^unknown shorthand flag: 'c' in -csi-address=\/s \(did you mean --csi-address\?\)$/,
  },
  {
    row: '§1.1: a name that starts with v is -v with the rest as value',
    args: ['-version'],
    code: 2,
    last: /^invalid argument "ersion" for "-v, --v" flag: strconv\.ParseUint: parsing "ersion": invalid syntax$/,
  },
  { row: '§1.1: the last line names an unknown flag', args: ['--bogus'], code: 2, last: /^unknown flag: --bogus$/ },
  {
    row: '§1.1: the next argument is the value, whatever it looks like',
    args: ['--csi-address', '--version', master],
    code: 1,
    last: /OnConnectionLoss callback only supported for unix:\/\/ addresses: --csi-address must be an absolute path/,
  },
  {
    row: '§1.3: a bad logging configuration is one error line',
    args: ['--logging-format=xml'],
    code: 1,
    last: /^E.*\] "LoggingConfiguration is invalid" err="format: Invalid value: \\"xml\\": Unsupported log format"$/,
  },
  { row: '§1.3: klog flags are unknown', args: ['--logtostderr'], code: 2, last: /^unknown flag: --logtostderr$/ },
  {
    row: '§2: KUBECONFIG wins over the flag and is one path, also with a colon',
    args: ['--kubeconfig=/flag', noCsi],
    environment: { KUBECONFIG: '/a:/b' },
    code: 255,
    last: /^F.*\] Failed to create config: stat \/a:\/b: no such file or directory$/,
  },
  {
    row: '§2: without kubeconfig, master and the variables of a pod',
    args: [noCsi],
    code: 255,
    last: /^F.*\] Failed to create config: unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined$/,
  },
  {
    row: '§2: an in-cluster token that cannot be read',
    args: [noCsi],
    environment: { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: '1' },
    code: 255,
    last: /^F.*\] Failed to create config: open \/var\/run\/secrets\/kubernetes\.io\/serviceaccount\/token/,
  },
  {
    row: '§3: an unknown gate ends without usage',
    args: ['--feature-gates=Foo=true'],
    code: 255,
    last: /^F.*\] unrecognized feature gate: Foo$/,
  },
  {
    row: '§3: a locked gate',
    args: ['--feature-gates=APIServerTracing=false'],
    code: 255,
    last: /\] cannot set feature gate APIServerTracing to false, feature is locked to true$/,
  },
  {
    row: '§4.1 step 4: NODE_NAME is missing, even with --version',
    args: ['--node-deployment', '--version'],
    code: 255,
    last: /\] The NODE_NAME environment variable must be set when using --enable-node-deployment\.$/,
  },
  {
    row: '§4.1 step 7: both addresses',
    args: ['--http-endpoint=:1', '--metrics-address=:2'],
    code: 1,
    last: /^E.*\] only one of `--metrics-address` and `--http-endpoint` can be set\.$/,
  },
  {
    row: '§4.1 step 9, §11: a rate without a burst',
    args: [master, '--kube-api-qps=1', '--kube-api-burst=0'],
    code: 255,
    last: /\] Failed to create client: burst is required to be greater than 0 when RateLimiter is not set and QPS is set to greater than 0/,
  },
  {
    row: '§5: timings that cannot work',
    args: [master, '--leader-election', '--leader-election-renew-deadline=15s'],
    code: 2,
    last: /^panic: leaseDuration must be greater than renewDeadline/,
  },
  {
    row: '§6: an address without a port',
    args: [master, '--http-endpoint=foo'],
    code: 255,
    last: /^F.*\] Failed to start HTTP server at specified address \("foo"\) and metrics path \("\/metrics"\): listen tcp: address foo: missing port in address$/,
  },
  {
    row: '§6: a metrics path without a slash',
    args: [master, '--http-endpoint=:0', '--metrics-path=metrics'],
    code: 2,
    last: /^panic: parsing "metrics": at offset 0: host\/path missing \/$/,
  },
  ...['', 'csi.sock', 'unix:/csi.sock', 'localhost:9000', 'tcp://localhost:9000', 'dns:///localhost'].map(
    (address) => ({
      row: `§9: the address ${JSON.stringify(address)} is refused at once`,
      args: [master, `--csi-address=${address}`],
      code: 1,
      last: /^E.*\] OnConnectionLoss callback only supported for unix:\/\/ addresses: --csi-address must be an absolute path/,
    }),
  ),
  {
    row: '§9: unix:// with an authority',
    args: [master, '--csi-address=unix://rel/csi.sock'],
    code: 1,
    last: /^E.*\] failed to exit idle mode: failed to start resolver: invalid \(non-empty\) authority: rel: --csi-address must be an absolute path/,
  },
];

describe('01: the end of the program', () => {
  for (const { row, args, environment, code, last } of rows) {
    test(`01 ${row}: exit ${code}`, async () => {
      const run = await runProgram(args, environment);
      assert.match(run.stderr.trimEnd().split('\n').at(-1) ?? '', last);
      assert.equal(run.code, code);
      assert.equal(run.stdout, '', 'stdout carries only the version');
      assert.doesNotMatch(run.stderr, /\n\s+at /, 'no stack trace');
      if (code === 2) assert.equal(run.stderr.split('\n').length, 2, 'one line');
    });
  }

  for (const flag of ['--help', '-h', '-help']) {
    test(`01 §1.1: ${flag} prints the usage on stderr, nothing on stdout: exit 0`, async () => {
      const run = await runProgram(['--v=1', flag, '--bogus']);
      assert.deepEqual([run.code, run.stdout], [0, '']);
      assert.ok(run.stderr.startsWith(`Usage of ${mainFile}:\n`), run.stderr.slice(0, 100));
    });
  }

  for (const args of [['--version'], ['x', '--version', '--', '--bogus'], ['--version=1', '-test.v']]) {
    test(`01 §1.2, §4.1 step 5: ${args.join(' ')} prints name and version on stdout: exit 0`, async () => {
      const run = await runProgram(args);
      assert.deepEqual([run.code, run.stderr], [0, '']);
      assert.match(run.stdout, /^\/.*main\.ts \S+\n$/);
    });
  }

  test('01 §1.3: json puts the fatal line on stderr as an info line with v 0, and keeps the exit code', async () => {
    const run = await runProgram(['--logging-format=json', '--feature-gates=Foo=true']);
    assert.deepEqual([run.code, run.stdout], [255, '']);
    const line = JSON.parse(run.stderr) as Record<string, unknown>;
    assert.deepEqual([line['v'], line['msg']], [0, 'unrecognized feature gate: Foo']);
    assert.equal(typeof line['ts'], 'number');
    assert.match(String(line['caller']), /^cli\/[\w-]+\.ts:\d+$/);
  });

  test('a Node.js that is too old is named in one line before anything else: exit 1', async () => {
    const run = await runNode([...claimingVersion('22.12.0'), mainFile, '--version']);
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

    test('01 §4.1 step 8: an empty file, after the lines that say where it was looked for: exit 255', async () => {
      const run = await runProgram([`--csi-address=/s`], { KUBECONFIG: join(folder, 'empty') });
      assert.equal(run.code, 255);
      assert.match(run.stderr, /"Version" version="/);
      assert.match(run.stderr, /Found KUBECONFIG environment variable set, using that\.\./);
      assert.match(run.stderr, /Either master or kubeconfig specified\. building kube config from that\.\./);
      assert.match(run.stderr, /Failed to create config: invalid configuration: no configuration has been provided,/);
    });
  });
});
