import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { listeningProcess } from '../../../sandbox/proxy/listening-process.ts';
import { type StartedProcess, startAnnounced } from '../../support/started-process.ts';

const skip = process.platform === 'linux' ? false : 'there is no /proc';

async function folderFor(t: TestContext): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'listening-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function startListener(t: TestContext, socketPath: string): Promise<StartedProcess> {
  const script = `require('node:net').createServer().listen(${JSON.stringify(socketPath)}, () => console.log('{}'))`;
  const { process: child } = await startAnnounced({ program: process.execPath, args: ['-e', script] });
  t.after(() => child.stop());
  return child;
}

describe('the process that listens on a socket', { skip }, () => {
  for (const prefix of ['', '/']) {
    test(`is found when it was bound to ${prefix}/path`, async (t) => {
      const socketPath = path.join(await folderFor(t), 'a.sock');
      const child = await startListener(t, prefix + socketPath);
      assert.equal(listeningProcess(socketPath), child.pid);
    });
  }

  test('is found while connections wait to be accepted', async (t) => {
    const socketPath = path.join(await folderFor(t), 'a.sock');
    const child = await startListener(t, socketPath);
    process.kill(child.pid, 'SIGSTOP');
    try {
      for (let i = 0; i < 16; i++) {
        const socket = net.connect(socketPath).on('error', () => undefined); // the process ends first
        t.after(() => socket.destroy());
        await once(socket, 'connect');
      }
      assert.equal(listeningProcess(socketPath), child.pid);
    } finally {
      process.kill(child.pid, 'SIGCONT');
    }
  });

  test('is the newer one of two that were bound to the path', async (t) => {
    const socketPath = path.join(await folderFor(t), 'a.sock');
    await startListener(t, socketPath);
    await rm(socketPath);
    const newer = await startListener(t, socketPath);
    assert.equal(listeningProcess(socketPath), newer.pid);
  });
});
