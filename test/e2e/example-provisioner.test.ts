/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { type Admin, boundClaim, connectAdmin, eventsOf, assertVolumeGone, ifFound } from '../support/admin.ts';
import type { Cluster } from '../support/cluster.ts';
import { startCluster } from '../support/start-cluster.ts';
import { eventually } from '../support/eventually.ts';
import { type Example, exampleFolder, installExample } from '../support/example-process.ts';
import { refusedRights } from '../support/refused-rights.ts';
import type { StartedProcess } from '../support/started-process.ts';

const provisioner = 'hostpath.example.com';
const namespace = `e2e-${randomBytes(4).toString('hex')}`;
const storageClassName = namespace;

describe('the provisioner in provisioners/', () => {
  let cluster: Cluster;
  let admin: Admin;
  let example: Example;
  /** A kubeconfig with the rights of the example's manifest. */
  let kubeconfig: string;
  const running = new Set<StartedProcess>();
  const logs: string[] = [];

  const start = async (program: string, env: Record<string, string> = {}): Promise<StartedProcess> => {
    const started = await example.start(program, { kubeconfig, env });
    running.add(started);
    return started;
  };
  const stop = async (started: StartedProcess): Promise<string> => {
    await started.stop();
    running.delete(started);
    logs.push(started.log());
    return await started.ending();
  };
  const createClaim = (name: string) =>
    admin.core.createNamespacedPersistentVolumeClaim({
      namespace,
      body: {
        metadata: { name },
        spec: { storageClassName, accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '5Mi' } } },
      },
    });
  /** The volume of a claim, once it is bound. */
  const bound = (name: string) =>
    eventually(async () => (await boundClaim(admin, namespace, name)).volume, {
      hopeless: () => ([...running].every((each) => each.running()) ? undefined : 'the provisioner has ended'),
    });
  const gone = (volumeName: string) => eventually(() => assertVolumeGone(admin, volumeName));

  before(async () => {
    cluster = await startCluster();
    admin = connectAdmin(cluster.adminKubeconfig);
    example = await installExample();
    kubeconfig = await cluster.accountKubeconfig(await readFile(join(exampleFolder, 'rbac.yaml'), 'utf8'), {
      namespace: 'default',
      name: 'hostpath-provisioner',
    });
    await admin.core.createNamespace({ body: { metadata: { name: namespace } } });
    await admin.storage.createStorageClass({
      body: { metadata: { name: storageClassName }, provisioner, parameters: { mode: '750' } },
    });
  });
  afterEach(async (context) => {
    for (const started of running) await stop(started);
    if ('passed' in context && !context.passed) console.error(logs.join('\n---\n'), cluster.log());
    logs.length = 0;
  });
  after(async () => {
    await ifFound(admin.storage.deleteStorageClass({ name: storageClassName }));
    await ifFound(admin.core.deleteNamespace({ name: namespace }));
    await example[Symbol.asyncDispose]();
    await cluster.stop();
  });

  test('makes a folder for a claim and removes it with the claim', async () => {
    const program = await start('main.ts');
    const { metadata } = await createClaim('photos');
    const volume = await bound('photos');
    const name = `pvc-${metadata?.uid ?? ''}`;
    assert.equal(volume.metadata?.name, name);
    assert.deepEqual(volume.spec?.hostPath?.path, join(example.volumes, name));
    assert.deepEqual(volume.spec.capacity, { storage: '5Mi' });
    assert.equal(volume.metadata.annotations?.['pv.kubernetes.io/provisioned-by'], provisioner);
    assert.ok(existsSync(join(example.volumes, name)));
    await eventually(async () => {
      const reasons = (await eventsOf(admin, namespace, metadata?.uid ?? '')).map(({ reason }) => reason);
      assert.ok(reasons.includes('ProvisioningSucceeded'), reasons.join(', '));
    });

    await admin.core.deleteNamespacedPersistentVolumeClaim({ name: 'photos', namespace });
    await gone(name);
    assert.equal(existsSync(join(example.volumes, name)), false);
    assert.equal(await stop(program), 'exit code 0');
    assert.deepEqual(refusedRights(program.log()), [], 'the rights suffice');
  });

  test('works as several instances, of which one leads and another takes over', async () => {
    const port = await freePort();
    const first = await start('replicated.ts', { METRICS_PORT: String(port) });
    const { metadata } = await createClaim('first');
    const volume = await bound('first');
    assert.equal(volume.metadata?.name, `pvc-${metadata?.uid ?? ''}`);
    assert.ok(volume.metadata.finalizers?.includes('external-provisioner.volume.kubernetes.io/finalizer'));
    await eventually(async () => {
      const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      assert.match(metrics, /^controller_persistentvolumeclaim_provision_total\{.*\} 1$/m);
      assert.match(metrics, /^workqueue_adds_total\{name="claims"\} [1-9]/m);
    });

    const second = await start('replicated.ts', { METRICS_PORT: String(await freePort()) });
    await eventually(() => assert.match(second.log(), /Attempting to acquire leader lease/));
    assert.equal(await stop(first), 'exit code 0');
    await admin.core.deleteNamespacedPersistentVolumeClaim({ name: 'first', namespace });
    await gone(volume.metadata.name);
    assert.equal(existsSync(join(example.volumes, volume.metadata.name)), false);
    assert.equal(await stop(second), 'exit code 0');
    for (const each of [first, second]) assert.deepEqual(refusedRights(each.log()), [], 'the rights suffice');
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
