/** What the whole program does on bad days, as a process beside a real driver and the sandbox's API. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { systemClock } from '../../src/base/clock.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { freePort } from '../support/free-ports.ts';
import { type DriverProcess, startDriver } from '../support/driver-process.ts';
import { eventually } from '../support/eventually.ts';
import { type StartedProcess, startProcess } from '../support/started-process.ts';
import { programFile } from '../support/program-file.ts';

const program = programFile('csi-provisioner');

/** The program with these arguments; ended by the test or by itself. */
async function sidecar(...args: string[]): Promise<StartedProcess & AsyncDisposable> {
  const started = await startProcess({
    program: process.execPath,
    args: [program, ...args],
    env: { KUBECONFIG: undefined },
  });
  return { ...started, [Symbol.asyncDispose]: () => started.stop('SIGKILL') };
}

async function logs(of: StartedProcess, text: RegExp): Promise<void> {
  await eventually(
    () => {
      assert.match(of.log(), text);
    },
    { hopeless: () => (of.running() ? undefined : `the sidecar has ended\n${of.log()}`) },
  );
}

describe('on bad days the sidecar', () => {
  let folder: string;
  let driver: DriverProcess;
  let kubeconfig: string;
  let sandbox: Sandbox;
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'bad-days-'));
    kubeconfig = path.join(folder, 'kubeconfig');
    sandbox = await Sandbox.start({ logger: silentLogger, clock: systemClock, kubeconfigPath: kubeconfig, nodes: 0 });
    driver = await startDriver({ driverName: 'bad.example.com', folder });
  });
  after(async () => {
    await driver.stop();
    await sandbox.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('names an unknown flag in one line and ends with code 2', async () => {
    await using started = await sidecar('--bogus=1');
    assert.equal(await started.ending(), 'exit code 2');
    assert.match(started.log(), /^unknown flag: --bogus$/m);
  });

  test('names the flag and the value that it cannot read', async () => {
    await using started = await sidecar('--timeout=5');
    assert.equal(await started.ending(), 'exit code 2');
    assert.match(started.log(), /invalid argument "5" for "--timeout" flag: time: missing unit in duration "5"/);
  });

  test('ends with code 255 without a way to the API server', async () => {
    await using started = await sidecar(`--csi-address=${driver.address}`);
    assert.equal(await started.ending(), 'exit code 255');
    assert.match(started.log(), /Failed to create config: .*KUBERNETES_SERVICE_HOST/);
  });

  test('waits for an absent socket and says so, then goes on', async () => {
    const late = await mkdtemp(path.join(tmpdir(), 'bad-late-'));
    const address = path.join(late, 'csi.sock');
    await using started = await sidecar(`--csi-address=${address}`, `--kubeconfig=${kubeconfig}`);
    await logs(started, /"Connecting" address="unix:\/\/.*csi\.sock"/);
    await logs(started, /"Still connecting"/);
    const lateDriver = await startDriver({ driverName: 'late.example.com', folder: late });
    try {
      await logs(started, /"Started provisioner controller"/);
    } finally {
      await lateDriver.stop();
      await rm(late, { recursive: true, force: true });
    }
  });

  test('goes on beside a driver that cannot create volumes, and says so', async () => {
    const poor = await mkdtemp(path.join(tmpdir(), 'bad-poor-'));
    const poorDriver = await startDriver({
      driverName: 'poor.example.com',
      folder: poor,
      flags: ['--capabilities-off=controller:CREATE_DELETE_VOLUME'],
    });
    try {
      await using started = await sidecar(`--csi-address=${poorDriver.address}`, `--kubeconfig=${kubeconfig}`);
      await logs(started, /"Started provisioner controller"/);
      const said = started.log().matchAll(/^E.*controller CREATE_DELETE_VOLUME capability is not reported/gm);
      assert.equal([...said].length, 1);
    } finally {
      await poorDriver.stop();
      await rm(poor, { recursive: true, force: true });
    }
  });

  test('waits for an API server that is away at the start, and ends cleanly while it waits', async () => {
    await using started = await sidecar(`--csi-address=${driver.address}`, '--master=http://127.0.0.1:9');
    await logs(started, /"Reading a resource failed, trying again" resource="persistentvolumeclaims"/);
    assert.equal(started.running(), true);
    await started.stop('SIGTERM');
    assert.equal(await started.ending(), 'exit code 0');
  });

  test('ends with code 0 on SIGTERM', async () => {
    await using started = await sidecar(`--csi-address=${driver.address}`, `--kubeconfig=${kubeconfig}`);
    await logs(started, /"Started provisioner controller"/);
    await started.stop('SIGTERM');
    assert.equal(await started.ending(), 'exit code 0');
    assert.match(started.log(), /Received SIGTERM or SIGINT signal, shutting down controller\./);
  });

  test('dies of SIGTERM where the feature gate for a graceful end is off', async () => {
    await using started = await sidecar(
      `--csi-address=${driver.address}`,
      `--kubeconfig=${kubeconfig}`,
      '--feature-gates=ReleaseLeaderElectionOnExit=false',
    );
    await logs(started, /"Started provisioner controller"/);
    await started.stop('SIGTERM');
    assert.equal(await started.ending(), 'signal SIGTERM');
  });

  test('reports on its health paths when the driver goes away and is back, without ending', async () => {
    const own = await mkdtemp(path.join(tmpdir(), 'bad-own-'));
    const port = await freePort();
    let ownDriver = await startDriver({ driverName: 'own.example.com', folder: own });
    try {
      await using started = await sidecar(
        `--csi-address=${ownDriver.address}`,
        `--kubeconfig=${kubeconfig}`,
        `--http-endpoint=127.0.0.1:${port}`,
      );
      await logs(started, /"Started provisioner controller"/);
      const read = async (page: string): Promise<string> => (await fetch(`http://127.0.0.1:${port}${page}`)).text();
      const ready = (): Promise<string> => read('/readyz');
      assert.equal(await ready(), 'ok');
      assert.equal(await read('/healthz'), 'ok');
      await ownDriver.stop('SIGKILL');
      await eventually(async () => {
        assert.match(await ready(), /the CSI driver does not respond/);
      });
      ownDriver = await startDriver({ driverName: 'own.example.com', folder: own });
      await eventually(async () => {
        assert.equal(await ready(), 'ok');
      });
      assert.equal(started.running(), true);
    } finally {
      await ownDriver.stop();
      await rm(own, { recursive: true, force: true });
    }
  });

  test('ends with code 1 when the driver is away for longer than --csi-reconnect-limit', async () => {
    const own = await mkdtemp(path.join(tmpdir(), 'bad-away-'));
    const ownDriver = await startDriver({ driverName: 'away.example.com', folder: own });
    try {
      await using started = await sidecar(
        `--csi-address=${ownDriver.address}`,
        `--kubeconfig=${kubeconfig}`,
        '--csi-reconnect-limit=100ms',
      );
      await logs(started, /"Started provisioner controller"/);
      await ownDriver.stop('SIGKILL');
      assert.equal(await started.ending(), 'exit code 1');
      assert.match(started.log(), /\] "?Lost connection to CSI driver, exiting"?\n$/);
    } finally {
      await rm(own, { recursive: true, force: true });
    }
  });

  test('ends with code 1 when another driver answers on the socket', async () => {
    const own = await mkdtemp(path.join(tmpdir(), 'bad-name-'));
    let ownDriver = await startDriver({ driverName: 'one.example.com', folder: own });
    try {
      await using started = await sidecar(`--csi-address=${ownDriver.address}`, `--kubeconfig=${kubeconfig}`);
      await logs(started, /"Started provisioner controller"/);
      await ownDriver.stop('SIGKILL');
      await rm(path.join(own, 'state'), { recursive: true, force: true });
      ownDriver = await startDriver({ driverName: 'two.example.com', folder: own });
      assert.equal(await started.ending(), 'exit code 1');
      assert.match(started.log(), /changed its name from one\.example\.com to two\.example\.com/);
    } finally {
      await ownDriver.stop();
      await rm(own, { recursive: true, force: true });
    }
  });
});
