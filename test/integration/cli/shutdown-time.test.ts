/** A shutdown in real time: the whole program as a process, in its worst cases. What it must not wait for never ends. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { SandboxObject } from '../../../sandbox/api/client.ts';
import { shutdownTimes } from '../../../src/run/shutdown.ts';
import { eventually } from '../../support/eventually.ts';
import { RecordingDriver } from '../../support/fakes/recording-driver.ts';
import { type StartedProcess, startProcess } from '../../support/started-process.ts';
import { StoredCluster } from '../csi/stored-cluster.ts';
import { mainFile } from './program-run.ts';

const { totalMs, gracePeriodSeconds } = shutdownTimes(10_000);
const volumes = { group: '', version: 'v1', plural: 'persistentvolumes' };
const name = 'pvc-11111111-1111-4111-8111-111111111111';
const objects: SandboxObject[] = [
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
      uid: '11111111-1111-4111-8111-111111111111',
      annotations: { 'volume.kubernetes.io/storage-provisioner': 'd.example.com' },
    },
    spec: { storageClassName: 'sc', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    status: { phase: 'Pending' },
  },
];

describe('a shutdown ends before the grace period of the Pod', { concurrency: true }, () => {
  test('while the API server does not respond, and the next start saves the volume that was created', async () => {
    await using driver = await RecordingDriver.start();
    await using cluster = await StoredCluster.start(objects);
    await using opened = new AsyncDisposableStack();
    const start = async (): Promise<StartedProcess> => {
      const args = [mainFile, `--csi-address=${driver.socketPath}`, `--master=${cluster.url}`];
      const started = await startProcess({ program: process.execPath, args, env: { KUBECONFIG: undefined } });
      opened.defer(() => started.stop('SIGKILL'));
      return started;
    };
    const action = { type: 'delay', ms: 3_600_000 } as const;
    const saving = cluster.server.faults.add({ match: { resource: 'persistentvolumes', verb: 'create' }, action });
    const first = await start();
    await eventually(() => assert.equal(saving.hits, 1, first.log()));
    cluster.server.faults.add({ action });
    assert.ok(totalMs < gracePeriodSeconds * 1000);
    await first.stop('SIGTERM'); // without leader election: a lost lease would end it sooner
    assert.equal(await first.ending(), 'exit code 1');
    assert.match(first.log(), new RegExp(`terminationGracePeriodSeconds=${gracePeriodSeconds}`));
    assert.match(first.log(), /Ended before a volume could be saved/);
    cluster.server.faults.clear();
    const next = await start();
    await eventually(() => assert.ok(cluster.server.client('test').get(volumes, { name }), next.log()));
    const names = new Set(driver.callsOf('CreateVolume').map(({ request }) => request['name']));
    assert.deepEqual([...names], [name]);
  });

  test('immediately while a credential plugin hangs, which ends with it', async () => {
    await using driver = await RecordingDriver.start();
    await using opened = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), 'shutdown-time-'));
    opened.defer(() => rm(folder, { recursive: true, force: true }));
    const begun = join(folder, 'begun');
    const args = ['-c', `echo $$ > ${begun}; exec sleep 3600`];
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'sh', args };
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'c',
      clusters: [{ name: 'c', cluster: { server: 'http://127.0.0.1:9' } }],
      users: [{ name: 'u', user: { exec: { ...exec, interactiveMode: 'Never' } } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    };
    const path = join(folder, 'kubeconfig.json');
    await writeFile(path, JSON.stringify(config));
    const started = await startProcess({
      program: process.execPath,
      args: [mainFile, `--csi-address=${driver.socketPath}`, `--kubeconfig=${path}`],
      env: { KUBECONFIG: undefined },
    });
    opened.defer(() => started.stop('SIGKILL'));
    const pid = await eventually(async () => {
      const text = await readFile(begun, 'utf8');
      assert.match(text, /^\d+\n$/, started.log());
      return Number(text);
    });
    await started.stop('SIGTERM');
    assert.equal(await started.ending(), 'exit code 0', started.log());
    // of a process that has ended and was not awaited yet, the command line is empty
    await eventually(async () => assert.equal(await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''), ''));
  });
});
