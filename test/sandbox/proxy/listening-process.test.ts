import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { listeningProcess } from '../../../sandbox/proxy/listening-process.ts';
import { startAnnounced } from '../../support/started-process.ts';

const skip = process.platform === 'linux' ? false : 'there is no /proc';

describe('the process that listens on a socket', { skip }, () => {
  for (const prefix of ['', '/']) {
    test(`is found when it was bound to ${prefix}/path`, async (t) => {
      const folder = await mkdtemp(path.join(tmpdir(), 'listening-'));
      t.after(() => rm(folder, { recursive: true, force: true }));
      const socketPath = path.join(folder, 'a.sock');
      const script = `require('node:net').createServer().listen(${JSON.stringify(prefix + socketPath)}, () => console.log('{}'))`;
      const { process: child } = await startAnnounced({ program: process.execPath, args: ['-e', script] });
      t.after(() => child.stop());
      assert.equal(listeningProcess(socketPath), child.pid);
    });
  }
});
