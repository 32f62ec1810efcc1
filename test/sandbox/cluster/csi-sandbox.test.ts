/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** `csi-sandbox` as the author of a driver meets it: the sample driver plays the driver of somebody's own. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { CoreV1Api, KubeConfig, StorageV1Api } from '@kubernetes/client-node';
import { eventually } from '../../support/eventually.ts';
import { programFile } from '../../support/program-file.ts';
import { HostpathHere, HostpathProcess } from '../hostpath/hostpath-process.ts';
import { SandboxProgram } from './sandbox-program.ts';

const sidecar = programFile('csi-provisioner');
const topology = ['--topology=example.com/zone=north', '--attach'];

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'own-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

function clients(kubeconfig: string): { core: CoreV1Api; storage: StorageV1Api } {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  return { core: config.makeApiClient(CoreV1Api), storage: config.makeApiClient(StorageV1Api) };
}

describe('csi-sandbox with a driver of its own author', () => {
  test('waits for it, registers it, and makes a volume for a claim that names no class', async (t) => {
    const folder = await temporaryFolder(t);
    const [home, kubeconfig, logs] = ['driver', 'kubeconfig', 'logs'].map((name) => path.join(folder, name)) as [
      string,
      string,
      string,
    ];
    await using program = SandboxProgram.start(
      `--csi-address=${home}/csi.sock`,
      `--kubeconfig=${kubeconfig}`,
      `--log=${logs}`,
    );
    await program.prints(`Waiting for a CSI driver at ${home}/csi.sock`);
    await using driver = await HostpathHere.start({ home, flags: ['--driver-name=my.driver.example', ...topology] });
    const banner = await program.prints('Ctrl-C ends it');
    assert.match(banner, /my\.driver\.example 1\.0\.0 at/);
    assert.match(banner, /node id localhost, example\.com\/zone=north/);
    assert.match(banner, /everybody may do everything; --rbac for/);
    assert.ok(banner.includes(`logs     ${logs}/sidecar.log`), banner);
    assert.ok(banner.includes(`export KUBECONFIG=${kubeconfig}`), banner);

    const { core, storage } = clients(kubeconfig);
    const { spec } = await storage.readCSIDriver({ name: 'my.driver.example' });
    assert.equal(spec.attachRequired, true);
    const { items } = await storage.listCSINode();
    assert.deepEqual(
      items.map((node) => [
        node.metadata?.name,
        node.spec.drivers.map(({ name, nodeID, topologyKeys }) => ({ name, nodeID, topologyKeys })),
      ]),
      [['node-1', [{ name: 'my.driver.example', nodeID: 'localhost', topologyKeys: ['example.com/zone'] }]]],
    );
    const node = await core.readNode({ name: 'node-1' });
    assert.equal(node.metadata?.labels?.['example.com/zone'], 'north');

    const namespace = 'default';
    const claimSpec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
    await core.createNamespacedPersistentVolumeClaim({
      namespace,
      body: { metadata: { name: 'photos' }, spec: claimSpec },
    });
    const volumeName = await eventually(async () => {
      const claim = await core.readNamespacedPersistentVolumeClaim({ namespace, name: 'photos' });
      assert.equal(claim.status?.phase, 'Bound');
      assert.equal(claim.spec?.storageClassName, 'sandbox');
      return claim.spec.volumeName ?? '';
    });
    const volume = await core.readPersistentVolume({ name: volumeName });
    assert.equal(volume.spec?.csi?.driver, 'my.driver.example');
    assert.match(JSON.stringify(volume.spec.nodeAffinity), /example\.com\/zone.*north/);
    await core.deleteNamespacedPersistentVolumeClaim({ namespace, name: 'photos' });
    await eventually(async () => assert.deepEqual((await core.listPersistentVolume()).items, []));
    assert.ok((await driver.calls()).some(({ method }) => method === 'DeleteVolume'));

    await program.stop('SIGINT');
    assert.equal(program.ending, 'exit code 0');
    assert.match(await readFile(path.join(logs, 'sidecar.log'), 'utf8'), /Storage deleted/);
  });

  test('says why a driver cannot be used yet, starts a sidecar that dies again, and ends although that waits for a driver that is gone', async (t) => {
    const home = path.join(await temporaryFolder(t), 'driver');
    await using driver = await HostpathProcess.start({ home });
    await driver.setFaults([{ method: 'Probe', code: 'FAILED_PRECONDITION', message: 'no login to the backend' }]);
    await using program = SandboxProgram.start(`--csi-address=${home}/csi.sock`);
    await program.prints(
      `Waiting for a CSI driver at ${home}/csi.sock: Probe: 9 FAILED_PRECONDITION: no login to the backend. Ctrl-C`,
    );
    await driver.setFaults([{ method: 'GetPluginInfo', code: 'UNAVAILABLE', message: 'the backend is asleep' }]);
    await program.prints('GetPluginInfo: 14 UNAVAILABLE: the backend is asleep. Ctrl-C');
    await driver.setFaults([]);
    await program.prints('Ctrl-C ends it');

    process.kill(await program.childPid(sidecar), 'SIGKILL');
    const report = await program.prints('The sidecar runs again, as process');
    assert.match(report, /The sidecar ended with signal SIGKILL and is started again\. The end of its log:\n.*\S/);

    await driver.end();
    process.kill(await program.childPid(sidecar), 'SIGKILL');
    await eventually(() => assert.equal(program.output.split('The sidecar ended with signal SIGKILL').length, 3));
    await eventually(() => program.childPid(sidecar));
    await program.stop('SIGTERM');
    assert.equal(program.ending, 'exit code 0');
  });

  test('ends when the driver has a name that no CSIDriver object can have', async (t) => {
    const home = path.join(await temporaryFolder(t), 'driver');
    await using _driver = await HostpathHere.start({ home, flags: ['--driver-name=My.Driver'] });
    await using program = SandboxProgram.start(`--csi-address=${home}/csi.sock`);
    assert.equal(await program.end(), 'exit code 1');
    assert.match(program.output, /csi\.sock cannot be registered: CSIDriver\.storage\.k8s\.io "My\.Driver" is invalid/);
  });

  test('reports a driver that was killed although its socket is still there, and registers it again with another topology', async (t) => {
    const home = path.join(await temporaryFolder(t), 'driver');
    const first = await HostpathProcess.start({ home, flags: topology });
    await using program = SandboxProgram.start(`--csi-address=unix://${home}/csi.sock`, '--nodes=2');
    const banner = await program.prints('Ctrl-C ends it');
    await first.end('SIGKILL');
    await program.prints(`The driver is gone: its socket ${home}/csi.sock is still there, but refuses connections.`);
    const second = await HostpathProcess.start({ home, flags: ['--topology=example.com/rack=7'] });
    await program.prints('The driver is back');
    const { storage } = clients(/KUBECONFIG=(.*)/.exec(banner)?.[1] ?? '');
    const { items } = await storage.listCSINode();
    assert.deepEqual(
      items.map(({ spec }) => spec.drivers.map(({ topologyKeys }) => topologyKeys)),
      [[['example.com/rack']], [['example.com/rack']]],
    );
    await second.end();
    await program.prints('The driver is gone from');
  });

  test('ends with the log of a sidecar that cannot start', async (t) => {
    const home = path.join(await temporaryFolder(t), 'driver');
    await using _driver = await HostpathHere.start({ home });
    await using program = SandboxProgram.start(`--csi-address=${home}/csi.sock`, '--sidecar-flag=--no-such-flag');
    assert.equal(await program.end(), 'exit code 1');
    assert.match(program.output, /csi-sandbox: the sidecar ended with exit code \d+:\n.*no-such-flag/s);
  });

  test('with --rbac the sidecar has the rights of our manifests and the administrator all; --fault spoils calls', async (t) => {
    const folder = await temporaryFolder(t);
    const [home, kubeconfig] = [path.join(folder, 'driver'), path.join(folder, 'kubeconfig')];
    await using _driver = await HostpathHere.start({ home, flags: topology });
    await using program = SandboxProgram.start(
      `--csi-address=${home}/csi.sock`,
      `--kubeconfig=${kubeconfig}`,
      ...['--rbac', '--fault=Probe:delay=1ms:1'],
    );
    await program.prints('Fault: Probe reaches the driver 1 ms late\n');
    assert.match(await program.prints('Ctrl-C ends it'), /access {3}authorization as a cluster's/);
    const { core } = clients(kubeconfig);
    const body = {
      metadata: { name: 'photos' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    };
    await core.createNamespacedPersistentVolumeClaim({ namespace: 'default', body });
    await eventually(async () => {
      const claim = await core.readNamespacedPersistentVolumeClaim({ namespace: 'default', name: 'photos' });
      assert.equal(claim.status?.phase, 'Bound');
    });
    const text = await readFile(kubeconfig, 'utf8');
    await writeFile(kubeconfig, text.replace(/token: .*/, 'token: made-up'));
    await assert.rejects(clients(kubeconfig).core.listNode(), { code: 401 });
  });
});

describe('csi-sandbox for a command', () => {
  test('hands it a kubeconfig and ends with its exit code', async (t) => {
    const logs = await temporaryFolder(t);
    const script = `process.stdout.write(require('node:fs').readFileSync(process.env.KUBECONFIG, 'utf8')); process.exit(7);`;
    await using program = SandboxProgram.start(`--log=${logs}`, '--', process.execPath, '--eval', script);
    assert.equal(await program.end(), 'exit code 7');
    assert.match(program.output, /current-context: sandbox/);
    assert.doesNotMatch(program.output, /Ctrl-C ends it/);
  });

  test('names a command that is not there', async () => {
    await using program = SandboxProgram.start('--', 'no-such-command');
    assert.equal(await program.end(), 'exit code 1');
    assert.match(program.output, /^csi-sandbox: .*no-such-command.*\n$/);
  });
});

describe('csi-sandbox refuses', () => {
  test("to overwrite a kubeconfig of somebody's own", async (t) => {
    const kubeconfig = path.join(await temporaryFolder(t), 'config');
    await writeFile(kubeconfig, 'current-context: production\n');
    await using program = SandboxProgram.start(`--kubeconfig=${kubeconfig}`);
    assert.equal(await program.end(), 'exit code 1');
    assert.match(program.output, /^csi-sandbox: --kubeconfig: \S+ is there and not from a sandbox.*\n$/);
    assert.equal(await readFile(kubeconfig, 'utf8'), 'current-context: production\n');
  });

  test('a wrong flag in one line', async () => {
    await using program = SandboxProgram.start('--port=many');
    assert.equal(await program.end(), 'exit code 2');
    assert.equal(program.output, 'csi-sandbox: --port: "many" is no whole number from 0 to 65535\n');
  });

  test('an old Node.js in one line', async () => {
    const older = `Object.defineProperty(process, 'versions', { value: { node: '20.1.0' } })`;
    await using program = SandboxProgram.startWith(['--import', `data:text/javascript,${encodeURIComponent(older)}`]);
    assert.equal(await program.end(), 'exit code 1');
    assert.match(program.output, /^csi-sandbox needs Node\.js 24 or newer; \S+ is v\S+\n$/);
  });
});

test('csi-sandbox --help names every flag, and leaves nothing behind', async () => {
  await using program = SandboxProgram.start('--help');
  assert.equal(await program.end(), 'exit code 0');
  for (const flag of [
    'csi-address',
    'port',
    'kubeconfig',
    'log',
    'nodes',
    'rbac',
    'sidecar-flag',
    'data',
    'fault',
    'faults',
  ]) {
    assert.ok(program.output.includes(`--${flag} `), flag);
  }
});

test('csi-sandbox without a flag has a sample driver, and removes its folder with SIGTERM', async () => {
  await using program = SandboxProgram.start();
  const banner = await program.prints('Ctrl-C ends it');
  assert.match(banner, /driver {3}hostpath\.csi\.k8s\.io/);
  assert.match(banner, /logs {5}\S+sidecar\.log\n\s+\S+driver\.log/);
  const kubeconfig = /KUBECONFIG=(.*)/.exec(banner)?.[1] ?? '';
  assert.ok(existsSync(kubeconfig));
  await program.stop('SIGTERM');
  assert.equal(program.ending, 'exit code 0');
  assert.equal(existsSync(path.dirname(kubeconfig)), false);
});
