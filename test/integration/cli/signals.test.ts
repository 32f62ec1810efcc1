/** Signals: how a process that works, stands by or waits for its driver ends. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import type { SandboxObject } from '../../../sandbox/api/client.ts';
import { startProcess } from '../../support/started-process.ts';
import { shutdownTimes } from '../../../src/run/shutdown.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { RecordingDriver } from '../../support/fakes/recording-driver.ts';
import { ScriptedServer } from '../../support/fakes/scripted-server.ts';
import { Program } from '../../support/program.ts';
import { StoredCluster } from '../csi/stored-cluster.ts';
import { mainFile } from './program-run.ts';
import { startSidecar } from './sidecar-process.ts';

const gateOff = '--feature-gates=ReleaseLeaderElectionOnExit=false';
const working = /"Started provisioner controller"/;
const stopping = /Received SIGTERM or SIGINT signal, shutting down controller\./;

const claimAndClass: SandboxObject[] = [
  {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'sc' },
    provisioner: 'd.example.com',
    reclaimPolicy: 'Delete',
    volumeBindingMode: 'Immediate',
  },
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: 'c1',
      namespace: 'ns1',
      annotations: { 'volume.kubernetes.io/storage-provisioner': 'd.example.com' },
    },
    spec: { storageClassName: 'sc', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    status: { phase: 'Pending' },
  },
];

describe('on a signal', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`with graceful release off ${signal} kills at once, and the lease is kept`, async () => {
      await using sidecar = await startSidecar({ flags: [gateOff, '--leader-election'] });
      await sidecar.logged(working);
      await sidecar.process.stop(signal);
      assert.equal(await sidecar.process.ending(), `signal ${signal}`);
      assert.doesNotMatch(sidecar.process.log(), stopping);
      const [lease] = sidecar.cluster.server
        .client('test')
        .list({ group: 'coordination.k8s.io', version: 'v1', plural: 'leases' });
      assert.notEqual((lease?.['spec'] as { holderIdentity: string }).holderIdentity, '');
    });

    test(`without leader election ${signal} ends with code 0`, async () => {
      await using sidecar = await startSidecar({});
      await sidecar.logged(working);
      await sidecar.process.stop(signal);
      assert.equal(await sidecar.process.ending(), 'exit code 0');
      assert.match(sidecar.process.log(), stopping);
    });
  }

  test('a leader that released its lease ends with code 0', async () => {
    await using sidecar = await startSidecar({ flags: ['--leader-election'] });
    await sidecar.logged(working);
    await sidecar.process.stop('SIGTERM');
    assert.equal(await sidecar.process.ending(), 'exit code 0');
    const [lease] = sidecar.cluster.server
      .client('test')
      .list({ group: 'coordination.k8s.io', version: 'v1', plural: 'leases' });
    const spec = lease?.['spec'] as Record<string, unknown>;
    assert.deepEqual([spec['holderIdentity'] ?? '', spec['leaseDurationSeconds']], ['', 1]);
    assert.equal(spec['acquireTime'], spec['renewTime']);
    assert.equal(spec['leaseTransitions'], 0);
  });

  test('a leader that could not release its lease says so and ends with code 1', async () => {
    await using sidecar = await startSidecar({ flags: ['--leader-election'] });
    await sidecar.logged(working);
    const action = { type: 'status', code: 403, reason: 'Forbidden', message: 'no' } as const;
    sidecar.cluster.server.faults.add({ match: { verb: 'get', resource: 'leases' }, action });
    await sidecar.process.stop('SIGTERM');
    assert.equal(await sidecar.process.ending(), 'exit code 1');
    const lastLine = sidecar.process.log().trimEnd().split('\n').at(-1) ?? '';
    assert.match(lastLine, /^E.*\] Stopped leading without releasing the lease/);
  });

  test('a drain that does not end in time is aborted and ends with code 1', async () => {
    await using driver = await RecordingDriver.start();
    await using cluster = await StoredCluster.start(claimAndClass);
    driver.always('CreateVolume', () => new Promise<object>(() => undefined));
    const clock = new ManualClock();
    const flags = ['--leader-election', '--timeout=10m'];
    await using program = new Program({
      socketPath: driver.socketPath,
      apiUrl: cluster.url,
      flags,
      shutdownClock: clock,
    });
    await driver.called('CreateVolume');
    program.signal('SIGTERM');
    await clock.advance(shutdownTimes(600_000).abortMs);
    assert.deepEqual(await program.ended, { code: 1 });
    assert.match(program.lines.at(-1) ?? '', /^E.*\] Work under way did not end in time and was aborted/);
  });

  test('a process whose first look at the API gets no answer does not wait for it, and ends with code 0', async () => {
    await using driver = await RecordingDriver.start();
    await using server = await ScriptedServer.start();
    server.otherwise(() => undefined);
    await using program = new Program({ socketPath: driver.socketPath, apiUrl: server.url, flags: ['-v=5'] });
    await server.requested(1);
    program.signal('SIGTERM');
    assert.deepEqual(await program.ended, { code: 0 });
    assert.ok(!program.lines.some((line) => line.includes('no response within')), program.lines.join(''));
  });

  test('a second signal ends at once with code 1, whatever is under way', async () => {
    await using sidecar = await startSidecar({ objects: claimAndClass, flags: ['--timeout=10m'] });
    sidecar.driver.always('CreateVolume', () => new Promise<object>(() => undefined));
    await sidecar.driver.called('CreateVolume');
    process.kill(sidecar.process.pid, 'SIGTERM');
    await sidecar.logged(stopping);
    assert.equal(sidecar.process.running(), true, 'it waits for the driver');
    await sidecar.process.stop('SIGTERM');
    assert.equal(await sidecar.process.ending(), 'exit code 1');
  });

  test('a process that still waits for its driver ends with code 0', async () => {
    const started = await startProcess({
      program: process.execPath,
      args: [mainFile, '--csi-address=/nonexistent/csi.sock', '--master=http://127.0.0.1:9'],
      env: { KUBECONFIG: undefined },
    });
    while (!started.log().includes('"Connecting"')) await new Promise(setImmediate);
    await started.stop('SIGTERM');
    assert.equal(await started.ending(), 'exit code 0');
  });

  const unshare = ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--kill-child'];
  const possible = spawnSync(unshare[0] ?? '', [...unshare.slice(1), 'true']).status === 0;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(
      `with graceful release off ${signal} ends process 1 with code 2`,
      { skip: !possible && 'no namespaces' },
      async () => {
        await using sidecar = await startSidecar({ flags: [gateOff], wrapper: unshare });
        await sidecar.logged(working);
        const { pid } = sidecar.process;
        const child = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim());
        assert.ok(child > 0);
        process.kill(child, signal);
        assert.equal(await sidecar.process.ending(), 'exit code 2');
      },
    );
  }
});
