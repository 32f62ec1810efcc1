import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { connectionProblem } from '../../../src/csi/csi-address.ts';

const source = join(import.meta.dirname, '../../../src/csi/csi-address.ts');
const exec = promisify(execFile);

async function listen(path: string): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return server;
}

/** What a process of another user finds; root may open everything. */
async function asAnotherUser(path: string): Promise<string> {
  const program = `import { connectionProblem } from ${JSON.stringify(source)};
    if (process.getuid() === 0) { process.setgroups([]); process.setgid(65532); process.setuid(65532); }
    console.log(await connectionProblem(${JSON.stringify(path)}));`;
  const { stdout } = await exec(process.execPath, ['--input-type=module', '--eval', program]);
  return stdout.trim();
}

describe('why nobody answers on a socket', () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'problem-'));
    await chmod(folder, 0o755);
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const end = 'is --csi-address the path of its socket as this container sees it?';

  test('it is not there', async () => {
    const path = join(folder, 'none.sock');
    assert.equal(await connectionProblem(path), `ENOENT: there is no ${path}: has the driver started, and ${end}`);
  });

  test('it is a directory', async () => {
    const path = join(folder, 'directory');
    await mkdir(path);
    assert.equal(await connectionProblem(path), `${path} is a directory, not a socket: ${end}`);
  });

  test('it is a file', async () => {
    const path = join(folder, 'file');
    await writeFile(path, '');
    assert.equal(await connectionProblem(path), `${path} is a file, not a socket: ${end}`);
  });

  test('a folder of its path is a file', async () => {
    const path = join(folder, 'other-file', 'csi.sock');
    await writeFile(join(folder, 'other-file'), '');
    assert.match(await connectionProblem(path), /^connect ENOTDIR .*: is --csi-address the path/);
  });

  test('its driver has ended', async () => {
    const path = join(folder, 'stale.sock');
    const server = await listen(join(folder, 'live.sock'));
    await rename(join(folder, 'live.sock'), path); // Node removes a socket that it closes
    server.close();
    assert.match(await connectionProblem(path), /^ECONNREFUSED: nothing listens on .*stale\.sock: /);
  });

  test('somebody listens, and is no driver', async (context) => {
    const path = join(folder, 'silent.sock');
    const server = await listen(path);
    context.after(() => server.close());
    assert.equal(await connectionProblem(path), `${path}: what listens there does not respond as a gRPC server`);
  });

  test('it belongs to another user: owner, mode and our user are named', async (context) => {
    const path = join(folder, 'closed.sock');
    const server = await listen(path);
    context.after(() => server.close());
    await chmod(path, 0o555);
    const { uid = 0, gid = 0 } = { uid: process.getuid?.(), gid: process.getgid?.() };
    const us = uid === 0 ? '65532:65532' : `${uid}:${gid}`;
    const problem = await asAnotherUser(path);
    assert.ok(
      problem.startsWith(`EACCES: ${path} belongs to ${uid}:${gid} with mode 0555, this process runs as ${us}: `),
      problem,
    );
    assert.ok(problem.includes(`--csi-address=${path}`), problem);
  });

  test('a folder above it is closed', async (context) => {
    const closed = join(folder, 'closed');
    await mkdir(closed, { mode: 0 });
    context.after(() => chmod(closed, 0o755));
    const problem = await asAnotherUser(join(closed, 'csi.sock'));
    assert.match(
      problem,
      /^EACCES: .*csi\.sock is in a folder that may not be entered, this process runs as \d+:\d+: /,
    );
  });
});
