import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { RecordingDriver } from '../../support/fakes/recording-driver.ts';
import { StoredCluster } from '../csi/stored-cluster.ts';
import { mainFile, type ProgramRun, runNode, runProgram } from './program-run.ts';

/** The name that the program is started by. */
const { name } = path.parse(mainFile);

describe('a subcommand of the program', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'subcommands-'));
  });
  after(() => rm(folder, { recursive: true }));

  test('prints its help on standard output and ends with code 0', async () => {
    const { code, stdout, stderr } = await runProgram(['why', '--help']);
    assert.equal(code, 0, stderr);
    assert.ok(stdout.startsWith(`Usage: ${name} why [options] <object>`), stdout);
  });

  test('ends with code 3 and points to its help when it does not understand its arguments', async () => {
    for (const args of [['why'], ['why', 'a/b/c'], ['why', 'ns/claim', '--nonsense'], ['why', 'one', 'two']]) {
      const { code, stderr } = await runProgram(args);
      assert.equal(code, 3, args.join(' '));
      assert.match(stderr, new RegExp(`^${name} why: .*\\. See ${name} why --help\\n$`), args.join(' '));
    }
  });

  test('says where a configuration can come from when there is none', async () => {
    const { code, stderr } = await runProgram(['why', 'ns/claim'], { HOME: folder });
    assert.equal(code, 3);
    assert.match(stderr, new RegExp(`^${name} why: unable to load in-cluster configuration, .*KUBECONFIG\\n$`));
  });

  test('says the same to a user without a name and a home', async () => {
    const nameless = `import os from 'node:os'; os.homedir = () => { throw new Error('uv_os_homedir returned ENOENT') }`;
    const args = [`--import=data:text/javascript,${nameless}`, mainFile, 'why', 'ns/claim'];
    for (const environment of [{}, { HOME: '' }]) {
      const { code, stderr } = await runNode(args, { environment });
      assert.equal(code, 3, stderr);
      assert.match(stderr, new RegExp(`^${name} why: unable to load in-cluster configuration, .*KUBECONFIG\\n$`));
    }
  });

  test('names the contexts that there are when it is asked for another', async () => {
    const file = path.join(folder, 'kubeconfig');
    await writeFile(
      file,
      JSON.stringify({
        clusters: [{ name: 'c', cluster: { server: 'http://127.0.0.1:9' } }],
        users: [{ name: 'u', user: {} }],
        contexts: [{ name: 'home', context: { cluster: 'c', user: 'u' } }],
      }),
    );
    await chmod(file, 0o600);
    const { code, stderr } = await runProgram(['why', 'ns/claim', '--kubeconfig', file, '--context', 'away']);
    assert.equal(code, 3);
    assert.match(stderr, /kubeconfig has no context "away"\. These are there: home\n$/);
  });
});

describe('among flags of the sidecar', () => {
  let driver: RecordingDriver;
  let cluster: StoredCluster;
  before(async () => {
    driver = await RecordingDriver.start({ controller: ['CREATE_DELETE_VOLUME', 'LIST_VOLUMES'] });
    driver.always('ListVolumes', { entries: [] });
    cluster = await StoredCluster.start([claim]);
  });
  after(async () => {
    await driver[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });
  const claim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'why', namespace: 'ns1', uid: 'u' },
    spec: { storageClassName: 'none', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    status: { phase: 'Pending' },
  };
  /** With the flags of a sidecar before and behind. A second sidecar would not end by itself. */
  const run = async (...args: string[]): Promise<ProgramRun> => {
    const found = [`--csi-address=${driver.socketPath}`, '--master', cluster.url];
    const result = await runProgram([...found, ...args, '--leader-election', 'false', '--timeout=5s']);
    assert.equal(driver.callsOf('CreateVolume').length, 0);
    return result;
  };

  test('audit is the audit', async () => {
    const { code, stdout, stderr } = await run('audit', '--second-look=0s', '--intent-journal=off');
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^d\.example\.com: /m);
  });

  test('audit is the audit behind the value that a boolean does not take', async () => {
    const { code, stderr } = await run(
      '--leader-election',
      'false',
      'audit',
      '--second-look=0s',
      '--intent-journal=off',
    );
    assert.equal(code, 0, stderr);
  });

  test('why explains a claim, also one of its own name', async () => {
    for (const args of [
      ['why', 'ns1/why'],
      ['why', '--namespace', 'ns1', 'why'],
    ]) {
      // prettier-ignore
      const { code, stdout, stderr } = await run(...args);
      assert.equal(code, 2, stderr);
      assert.match(stdout, /^ns1\/why: stuck: /);
    }
  });

  test('journal reads its action behind them', async () => {
    const { code, stderr } = await run('journal', '--driver=d.example', '--v=0', 'list');
    assert.equal(code, 3);
    assert.match(stderr, new RegExp(`^${name} journal: .*there is no Lease `));
  });

  for (const [command, ...rest] of [
    ['audit', 'all'],
    ['why', 'a/b', 'c'],
    ['journal', 'list', 'all'],
  ] as const) {
    // prettier-ignore
    test(`${command} refuses a word that it does not know`, async () => {
      const { code, stderr } = await run(command, ...rest);
      assert.ok(code === 1 || code === 3, String(code));
      assert.match(stderr, new RegExp(`^${name} ${command}: unexpected argument "(all|c)"\\. See ${name} ${command} --help\n$`));
    });

    test(`${command} refuses a flag that neither it nor the sidecar has`, async () => {
      const { stderr } = await run(command, ...rest.slice(0, command === 'audit' ? 0 : 1), '--nonsense');
      assert.match(
        stderr,
        new RegExp(`^${name} ${command}: unknown flag: --nonsense\\. See ${name} ${command} --help\n$`),
      );
    });
  }

  test('the word help prints the help and starts nothing, also that of a subcommand', async () => {
    const [word, flag] = [await run('help'), await run('--help')];
    assert.deepEqual(word, flag);
    assert.equal(word.code, 0);
    assert.deepEqual(await run('help', 'why'), await run('why', '--help'));
    assert.deepEqual(await run('help', 'me'), flag);
  });

  test('npm start names itself in the help of a subcommand', async () => {
    const { stdout } = await runProgram(['preflight', '--help'], { npm_lifecycle_event: 'start' });
    assert.match(stdout, /^Usage: npm start -- preflight /);
  });

  test('a word that is almost a subcommand ends with code 2, and nothing was asked', async () => {
    const before = driver.callsOf('GetPluginInfo').length;
    for (const word of ['whyy', 'adit']) {
      const { code, stdout, stderr } = await run(word);
      assert.equal(code, 2);
      assert.equal(stdout, '');
      assert.match(stderr, new RegExp(`^unknown subcommand "${word}" \\(did you mean (why|audit)\\?\\)\n$`));
    }
    assert.equal(driver.callsOf('GetPluginInfo').length, before);
  });

  test('the value of a flag is no subcommand: the sidecar starts', async () => {
    const { code, stderr } = await runProgram([
      '--csi-address=/nonexistent/s',
      '--leader-election-namespace',
      'audit',
      'stray',
    ]);
    assert.equal(code, 255);
    const warnings = stderr.split('\n').filter((line) => line.includes('Arguments that are not flags are ignored'));
    assert.equal(warnings.length, 1, stderr);
    assert.match(stderr, /Failed to create config/);
  });
});
