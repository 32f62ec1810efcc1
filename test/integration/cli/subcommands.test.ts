import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { mainFile, runNode, runProgram } from './program-run.ts';

describe('a subcommand of the program', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'subcommands-'));
  });
  after(() => rm(folder, { recursive: true }));

  test('prints its help on standard output and ends with code 0', async () => {
    const { code, stdout, stderr } = await runProgram(['why', '--help']);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^Usage: main why \[options\] <object>/);
  });

  test('is started by a link that kubectl takes for its plugin', async () => {
    const link = path.join(folder, 'kubectl-why_pvc');
    await symlink(mainFile, link);
    const { code, stdout, stderr } = await runNode([link, '-h']);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^Usage: kubectl why-pvc \[options\] <object>/);
  });

  test('ends with code 3 and points to its help when it does not understand its arguments', async () => {
    for (const args of [['why'], ['why', 'a/b/c'], ['why', 'ns/claim', '--nonsense'], ['why', 'one', 'two']]) {
      const { code, stderr } = await runProgram(args);
      assert.equal(code, 3, args.join(' '));
      assert.match(stderr, /^main why: .*\. See main why --help\n$/, args.join(' '));
    }
  });

  test('says where a configuration can come from when there is none', async () => {
    const { code, stderr } = await runProgram(['why', 'ns/claim'], { HOME: folder });
    assert.equal(code, 3);
    assert.match(stderr, /^main why: unable to load in-cluster configuration, .*KUBECONFIG\n$/);
  });

  test('says the same to a user without a name and a home', async () => {
    const nameless = `import os from 'node:os'; os.homedir = () => { throw new Error('uv_os_homedir returned ENOENT') }`;
    const args = [`--import=data:text/javascript,${nameless}`, mainFile, 'why', 'ns/claim'];
    for (const environment of [{}, { HOME: '' }]) {
      const { code, stderr } = await runNode(args, { environment });
      assert.equal(code, 3, stderr);
      assert.match(stderr, /^main why: unable to load in-cluster configuration, .*KUBECONFIG\n$/);
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
