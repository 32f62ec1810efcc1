/** nfs-provisioner as a process that cannot start as it is set up: it says why, and leaves no identity behind. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { startProcess } from '../../support/started-process.ts';
import { programFile } from '../../support/program-file.ts';

const program = programFile('nfs-provisioner');

describe('nfs-provisioner writes no identity and no configuration', () => {
  let folder: string;
  let kubeconfig: string;

  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'nfs-start-'));
    kubeconfig = path.join(folder, 'kubeconfig');
    const server = 'https://127.0.0.1:1';
    await writeFile(
      kubeconfig,
      JSON.stringify({
        'current-context': 'a',
        contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
        clusters: [{ name: 'a', cluster: { server } }],
        users: [{ name: 'a', user: { token: 'none' } }],
      }),
    );
  });
  after(() => rm(folder, { recursive: true }));

  for (const { title, args, why, code = 2 } of [
    {
      title: 'with flags that do not fit together',
      args: ['-run-server=false', '-grace-period=10'],
      why: /-grace-period 10 needs/,
    },
    { title: 'with an unknown flag', args: ['-nosuch=1'], why: /nosuch/ },
    {
      title: 'with a journal that it cannot have',
      args: ['-intent-journal=configmap'],
      why: /-intent-journal "configmap"/,
    },
    {
      title: 'with a kubeconfig that is not there',
      args: ['-kubeconfig=/nowhere/config'],
      why: /\/nowhere\/config/,
      code: 1,
    },
    {
      title: 'without the configuration of a server that others run',
      args: ['-run-server=false'],
      why: /vfs\.conf does not exist/,
    },
    {
      title: 'without the exports of the server of the kernel',
      args: ['-run-server=false', '-use-ganesha=false', '-exports-file=/nowhere/exports'],
      why: /\/nowhere\/exports does not exist/,
    },
  ]) {
    test(title, async () => {
      const exports = await mkdtemp(path.join(folder, 'export-'));
      const all = [program, '-kubeconfig', kubeconfig, '-server-hostname=127.0.0.1', '-export-dir', exports, ...args];
      const started = await startProcess({ program: process.execPath, args: all });
      assert.equal(await started.ending(), `exit code ${code}`, started.log());
      assert.match(started.log(), why);
      const written = (await readdir(exports)).filter((name) => name !== '.nfs-provisioner.probe');
      assert.deepEqual(written, []);
    });
  }
});
