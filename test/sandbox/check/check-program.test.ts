/** `csi-sandbox check` as the author of a driver runs it. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { catalogue } from '../../../sandbox/check/catalogue.ts';
import type { CheckResult } from '../../../sandbox/check/check.ts';
import { BrokenDriver } from '../../support/broken-drivers/broken-driver.ts';
import { eventually } from '../../support/eventually.ts';
import { programFile } from '../../support/program-file.ts';
import { SandboxProgram } from '../cluster/sandbox-program.ts';
import { HostpathHere } from '../hostpath/hostpath-process.ts';
import { wellFormed } from './well-formed.ts';

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'check-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const sampleDriverProgram = `exec '${process.execPath}' '${programFile('hostpath-driver')}'`;

/** The shell's words that start the sample driver. */
function sampleDriver(folder: string): string {
  const flags = ['--attach', '--topology=zone=a', '--topology=zone=b', `--state-dir=${folder}/state`];
  return `${sampleDriverProgram} --csi-address=${folder}/csi.sock ${flags.join(' ')}`;
}

/** The same for each node. */
const nodeDriver = `${sampleDriverProgram} --csi-address=$CSI_ADDRESS --state-dir=$(dirname $CSI_ADDRESS)/state --topology=node=$NODE_NAME --node-id=$NODE_NAME`;

async function volumesLeft(socketFolder: string): Promise<string[]> {
  await using driver = await HostpathHere.start({ home: socketFolder });
  return await volumeFolders(driver.stateDir);
}

async function volumeFolders(stateDir: string): Promise<string[]> {
  return (await readdir(path.join(stateDir, 'volumes'))).filter((name) => !name.startsWith('.'));
}

describe('csi-sandbox check', () => {
  test('passes the sample driver in every check, leaves no volume, and writes both reports', async (t) => {
    const folder = await temporaryFolder(t);
    const [junit, json] = [path.join(folder, 'junit.xml'), path.join(folder, 'report.json')];
    await using program = SandboxProgram.start(
      'check',
      `--csi-address=${folder}/csi.sock`,
      `--driver-command=${sampleDriver(folder)}`,
      `--node-driver-command=${nodeDriver}`,
      '--node=far=zone=b',
      '--mutable-parameter=tier=fast',
      '--timeout=5s',
      '--strict',
      `--junit=${junit}`,
      `--json=${json}`,
    );
    assert.equal(await program.end(), 'exit code 0', program.output);
    const { results } = JSON.parse(await readFile(json, 'utf8')) as { results: CheckResult[] };
    assert.deepEqual(
      results.filter(({ status }) => status !== 'pass'),
      [],
    );
    assert.deepEqual(results.map(({ id }) => id).toSorted(), catalogue.map(({ id }) => id).toSorted());
    const xml = await readFile(junit, 'utf8');
    assert.equal(wellFormed(xml), undefined);
    assert.equal(xml.match(/<testcase /g)?.length, catalogue.length);
    assert.deepEqual(await volumesLeft(folder), []);
  });

  test('fails a driver whose topology cannot be a label, and names the section', async () => {
    await using driver = await BrokenDriver.start({
      spoils: {
        CreateVolume: async (_, proper) => {
          const { volume } = await proper();
          return {
            volume: { ...(volume as object), accessible_topology: [{ segments: { 'not a key!': '<x y>&\u0007' } }] },
          };
        },
      },
    });
    await using program = SandboxProgram.start('check', `--csi-address=${driver.socketPath}`, '--only=volume-topology');
    assert.equal(await program.end(), 'exit code 1', program.output);
    assert.match(
      program.output,
      /"not a key!" is not a valid topology key or label key \[CreateVolume, accessible_topology\]/,
    );
    assert.match(program.output, /^failed: volume-topology$/m);
    assert.ok(!program.output.includes('\u0007'));
  });

  test('fails a driver that forgets its volumes when it is killed', async (t) => {
    const folder = await temporaryFolder(t);
    await using program = SandboxProgram.start(
      'check',
      `--csi-address=${folder}/csi.sock`,
      `--driver-command=rm -rf ${folder}/state; ${sampleDriver(folder)}`,
      '--only=restart',
    );
    assert.equal(await program.end(), 'exit code 1', program.output);
    assert.match(program.output, /after a restart, CreateVolume for the name of \S+ returned/);
  });

  test('says that a driver is not there', async (t) => {
    const folder = await temporaryFolder(t);
    await using program = SandboxProgram.start('check', `--csi-address=${folder}/csi.sock`, '--wait=300ms');
    assert.equal(await program.end(), 'exit code 1', program.output);
    assert.match(program.output, /no CSI driver is ready at .* after 0\.3 s \(--wait\): there is no such socket/);
  });

  test('refuses to start a driver beside one that runs', async (t) => {
    const folder = await temporaryFolder(t);
    await using driver = await HostpathHere.start({ home: folder });
    await using program = SandboxProgram.start('check', `--csi-address=${driver.socketPath}`, '--driver-command=true');
    assert.equal(await program.end(), 'exit code 2', program.output);
    assert.match(program.output, /--driver-command: a driver runs at .* already; end it, or leave the flag out/);
  });

  test('deletes its volumes and ends the driver when it is interrupted, also while a response is lost', async (t) => {
    const folder = await temporaryFolder(t);
    await using program = SandboxProgram.start(
      'check',
      `--csi-address=${folder}/csi.sock`,
      `--driver-command=${sampleDriver(folder)}`,
      '--only=lost-create',
    );
    await program.prints('pass  claim ');
    await eventually(async () => assert.notDeepEqual(await volumeFolders(`${folder}/state`), []));
    const driverPid = await program.childPid('hostpath');
    await program.stop('SIGINT');
    assert.equal(program.ending, 'exit code 130', program.output);
    assert.throws(() => process.kill(driverPid, 0), /ESRCH/);
    assert.deepEqual(await volumesLeft(folder), []);
  });

  test('leaves no driver behind when it is killed', async (t) => {
    const folder = await temporaryFolder(t);
    await using program = SandboxProgram.start(
      'check',
      `--csi-address=${folder}/csi.sock`,
      `--driver-command=${sampleDriver(folder)}`,
    );
    await program.prints('pass  probe ');
    const driverPid = await program.childPid('hostpath');
    await program.stop('SIGKILL');
    await eventually(() => assert.throws(() => process.kill(driverPid, 0), /ESRCH/));
  });
});
