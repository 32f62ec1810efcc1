/** Files that others read while they are written. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import {
  chmod,
  chown,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { replaceFile } from '../../sandbox/replace-file.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { eventually } from '../support/eventually.ts';
import { programFile } from '../support/program-file.ts';

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'replace-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

describe('replaceFile', () => {
  test('a process that has the old file open reads all of it, and nothing is left beside the new one', async (t) => {
    const folder = await temporaryFolder(t);
    const file = path.join(folder, 'file');
    await writeFile(file, 'the old text');
    await using old = await open(file);
    await replaceFile(file, 'new', { mode: 0o600 });
    assert.equal(await old.readFile('utf8'), 'the old text');
    assert.equal(await readFile(file, 'utf8'), 'new');
    assert.deepEqual(await readdir(folder), ['file']);
  });

  test('a new file has the given mode, another one keeps its own', async (t) => {
    const file = path.join(await temporaryFolder(t), 'file');
    await replaceFile(file, 'a', { mode: 0o600 });
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    await chmod(file, 0o644);
    await replaceFile(file, 'b', { mode: 0o600 });
    assert.equal((await stat(file)).mode & 0o777, 0o644);
  });

  test('links stay, and the file that they lead to is replaced', async (t) => {
    const folder = await temporaryFolder(t);
    await mkdir(path.join(folder, 'a'));
    await symlink('a/link', path.join(folder, 'link'));
    await symlink('../file', path.join(folder, 'a', 'link'));
    for (const content of ['made', 'replaced']) {
      await replaceFile(path.join(folder, 'link'), content, { mode: 0o600 });
      assert.equal(await readFile(path.join(folder, 'file'), 'utf8'), content);
      assert.ok((await lstat(path.join(folder, 'link'))).isSymbolicLink());
      assert.deepEqual(await readdir(folder), ['a', 'file', 'link']);
    }
  });

  test('links are followed as the kernel does, also below a folder that is a link', async (t) => {
    const folder = await temporaryFolder(t);
    await mkdir(path.join(folder, 'real/deep'), { recursive: true });
    await symlink('real/deep', path.join(folder, 'folder'));
    await symlink('../file', path.join(folder, 'real/deep/link'));
    for (const [name, content] of [
      ['folder/link', 'by a link'],
      ['folder/../file', 'by its path'],
    ] as const) {
      await replaceFile(`${folder}/${name}`, content, { mode: 0o600 });
      assert.equal(await readFile(path.join(folder, 'real/file'), 'utf8'), content);
    }
    assert.deepEqual(await readdir(folder), ['folder', 'real']);
    assert.deepEqual(await readdir(path.join(folder, 'real')), ['deep', 'file']);
  });

  test('a circle of links is an error, and stays', async (t) => {
    const folder = await temporaryFolder(t);
    await symlink('b', path.join(folder, 'a'));
    await symlink('a', path.join(folder, 'b'));
    await assert.rejects(replaceFile(path.join(folder, 'a'), '', { mode: 0o600 }), { code: 'ELOOP' });
    for (const name of ['a', 'b']) assert.ok((await lstat(path.join(folder, name))).isSymbolicLink());
    assert.deepEqual(await readdir(folder), ['a', 'b']);
  });

  test('the old text stays when there is no room for the new one', async (t) => {
    const folder = await temporaryFolder(t);
    const file = path.join(folder, 'file');
    await writeFile(file, 'the old text');
    const module = path.join(import.meta.dirname, '../../sandbox/replace-file.ts');
    const program = `import { replaceFile } from ${JSON.stringify(module)};
      await replaceFile(process.argv[1], 'new'.repeat(100_000), { mode: 0o600 }).catch(({ code }) => console.log(code));`;
    const limited = `trap '' XFSZ; ulimit -f 1; exec "$@"`;
    const command = [process.execPath, '--input-type=module', '-e', program, file];
    const { stdout } = await promisify(execFile)('sh', ['-c', limited, 'sh', ...command]);
    assert.equal(stdout.trim(), 'EFBIG');
    assert.equal(await readFile(file, 'utf8'), 'the old text');
    assert.deepEqual(await readdir(folder), ['file']);
  });

  const isRoot = process.getuid?.() === 0;
  test('a file keeps its owner', { skip: isRoot ? false : 'only root replaces files of others' }, async (t) => {
    const file = path.join(await temporaryFolder(t), 'file');
    await writeFile(file, 'old', { mode: 0o600 });
    await chown(file, 1234, 5678);
    await replaceFile(file, 'new', { mode: 0o644 });
    const { uid, gid, mode } = await stat(file);
    assert.deepEqual([uid, gid, mode & 0o777], [1234, 5678, 0o600]);
    assert.equal(await readFile(file, 'utf8'), 'new');
  });

  test('a pipe gets the text', async (t) => {
    const pipe = path.join(await temporaryFolder(t), 'pipe');
    await promisify(execFile)('mkfifo', [pipe]);
    const reader = spawn('cat', [pipe], { stdio: ['ignore', 'pipe', 'ignore'] });
    t.after(() => reader.kill('SIGKILL'));
    const [received] = await Promise.all([text(reader.stdout), replaceFile(pipe, 'text', { mode: 0o600 })]);
    assert.equal(received, 'text');
    assert.ok((await stat(pipe)).isFIFO());
  });

  test('what cannot be written is an error that names the path', async (t) => {
    const folder = await temporaryFolder(t);
    await assert.rejects(replaceFile(folder, '', { mode: 0o600 }), { code: 'EISDIR', message: new RegExp(folder) });
    await assert.rejects(replaceFile(`${folder}/none/file`, '', { mode: 0o600 }), {
      code: 'ENOENT',
      message: new RegExp(`${folder}/none/file'`),
    });
  });
});

describe('the kubeconfig of a sandbox', () => {
  test('is replaced at the next start, so that nobody reads a part of it', async (t) => {
    const kubeconfigPath = path.join(await temporaryFolder(t), 'kubeconfig');
    await (await Sandbox.start({ nodes: 0, kubeconfigPath })).close();
    const first = await readFile(kubeconfigPath, 'utf8');
    await using old = await open(kubeconfigPath);
    await using sandbox = await Sandbox.start({ nodes: 0, kubeconfigPath });
    assert.equal(await old.readFile('utf8'), first);
    assert.ok((await readFile(kubeconfigPath, 'utf8')).includes(sandbox.url));
  });

  test('goes into a pipe', async (t) => {
    const kubeconfigPath = path.join(await temporaryFolder(t), 'pipe');
    await promisify(execFile)('mkfifo', [kubeconfigPath]);
    const reader = spawn('cat', [kubeconfigPath], { stdio: ['ignore', 'pipe', 'ignore'] });
    t.after(() => reader.kill('SIGKILL'));
    await using sandbox = await Sandbox.start({ nodes: 0, kubeconfigPath });
    assert.ok((await text(reader.stdout)).includes(sandbox.url));
  });

  test('goes to standard output, also where that is a file', async (t) => {
    const file = path.join(await temporaryFolder(t), 'output');
    await using output = await open(file, 'a');
    const flags = ['--nodes=0', '--kubeconfig=/dev/stdout'];
    const child = spawn(process.execPath, [programFile('sandbox'), ...flags], { stdio: ['ignore', output.fd, 'pipe'] });
    t.after(() => child.kill('SIGKILL'));
    const printed = await eventually(
      async () => {
        const found = await readFile(file, 'utf8');
        assert.match(found, /"pid"/);
        return found;
      },
      { hopeless: () => (child.exitCode === null ? undefined : `exit code ${child.exitCode}`) },
    );
    assert.match(printed, /^apiVersion: v1\nkind: Config\n[^]*current-context: sandbox\n\{"url"/);
  });
});
