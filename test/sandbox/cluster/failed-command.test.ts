import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { programFile } from '../../support/program-file.ts';
import { HostpathHere } from '../hostpath/hostpath-process.ts';
import { SandboxProgram } from './sandbox-program.ts';

/** For a test command: requests to the API of its kubeconfig. */
const prelude = `
  const { readFileSync } = require('node:fs');
  const server = /server: (\\S+)/.exec(readFileSync(process.env.KUBECONFIG, 'utf8'))[1];
  const send = async (method, path, body) => {
    const headers = { 'content-type': 'application/json' };
    return await (await fetch(server + path, { method, headers, body: body && JSON.stringify(body) })).json();
  };
  const claims = '/api/v1/namespaces/default/persistentvolumeclaims';
  const until = async (path, isDone) => { while (!isDone(await send('GET', path))); };
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
`;

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'failed-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

describe('a command that fails', () => {
  test('gets the reason of each claim that is not bound, and the logs, which stay', async (t) => {
    const folder = await temporaryFolder(t);
    await using driver = await HostpathHere.start({ home: path.join(folder, 'driver') });
    const fault = { method: 'CreateVolume', code: 'RESOURCE_EXHAUSTED' as const, message: 'the pool is full' };
    await driver.setFaults([fault]);
    const script = `${prelude} (async () => {
      await send('POST', claims, { metadata: { name: 'photos' }, spec });
      await until('/api/v1/namespaces/default/events', ({ items }) => items.some(({ reason }) => reason === 'ProvisioningFailed'));
      process.exit(3);
    })()`;
    await using program = SandboxProgram.start(
      `--csi-address=${folder}/driver/csi.sock`,
      ...['--', process.execPath, '--eval', script],
    );
    assert.equal(await program.end(), 'exit code 3');
    assert.match(program.output, /The command ended with exit code 3\.\n\ndefault\/photos: stuck: no-capacity/);
    assert.match(program.output, /the pool is full/);
    const [, log = ''] = /Logs: (\S+sidecar\.log)/.exec(program.output) ?? [];
    assert.match(await readFile(log, 'utf8'), /the pool is full/);
    await rm(path.dirname(log), { recursive: true });
  });

  test('gets the reason of each volume that could not be deleted', async (t) => {
    const folder = await temporaryFolder(t);
    await using driver = await HostpathHere.start({ home: path.join(folder, 'driver') });
    await driver.setFaults([{ method: 'DeleteVolume', code: 'INTERNAL', message: 'the disk is stuck' }]);
    const script = `${prelude} (async () => {
      await send('POST', claims, { metadata: { name: 'photos' }, spec });
      await until(claims + '/photos', ({ status }) => status?.phase === 'Bound');
      await send('DELETE', claims + '/photos');
      await until('/api/v1/events', ({ items }) => items.some(({ reason }) => reason === 'VolumeFailedDelete'));
      process.exit(1);
    })()`;
    await using program = SandboxProgram.start(
      ...[`--csi-address=${folder}/driver/csi.sock`, `--log=${folder}/logs`],
      ...['--', process.execPath, '--eval', script],
    );
    assert.equal(await program.end(), 'exit code 1');
    assert.match(program.output, /\npv\/pvc-\S+: \S+: /);
    assert.match(program.output, /the disk is stuck/);
    assert.ok(program.output.includes(`\nLogs: ${folder}/logs/sidecar.log\n`), program.output);
  });

  test('one that succeeds gets neither', async (t) => {
    const folder = await temporaryFolder(t);
    await using program = SandboxProgram.start(`--kubeconfig=${folder}/kubeconfig`, '--', 'true');
    assert.equal(await program.end(), 'exit code 0');
    assert.equal(program.output, '');
  });
});

describe('nothing is left behind', () => {
  for (const [signal, handler] of [
    ['SIGTERM', `process.on('SIGTERM', () => {});`],
    ['SIGKILL', ''],
    ['SIGHUP', ''],
  ] as const) {
    const command = handler === '' ? 'command' : 'a command that ignores it';
    test(`by ${signal}: sidecar, driver and ${command} end`, async (t) => {
      const folder = await temporaryFolder(t);
      const file = path.join(folder, 'pid');
      const script = `${handler} require('node:fs').writeFileSync(${JSON.stringify(file)}, process.pid + ' ' + process.env.KUBECONFIG); setInterval(() => {}, 1000)`;
      await using program = SandboxProgram.start(`--log=${folder}/logs`, '--', process.execPath, '--eval', script);
      const [pid = '', kubeconfig = ''] = await eventually(() => {
        assert.ok(existsSync(file) && readFileSync(file, 'utf8') !== '');
        return readFileSync(file, 'utf8').split(' ');
      });
      const children = [
        Number(pid),
        await program.childPid(programFile('csi-provisioner')),
        await program.childPid('--state-dir'),
      ];
      t.after(() => rm(path.dirname(kubeconfig), { recursive: true, force: true })); // SIGKILL leaves it
      await program.stop(signal);
      if (handler !== '') assert.equal(program.ending, 'exit code 137');
      await eventually(() => assert.deepEqual(children.filter(isRunning), []));
    });
  }
});
