/** Quotas that are set again from PersistentVolumes: a real directory and the API of the sandbox; `xfs_quota` is a fake. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { connect, KubeClient, type PersistentVolume, persistentVolumes, silentLogger } from '../../../src/index.ts';
import { EventRecorder } from '../../../src/kube.ts';
import { AtomicFile } from '../../../provisioners/nfs-server/atomic-file.ts';
import { LostQuotas } from '../../../provisioners/nfs-server/lost-quotas.ts';
import { OwnVolumes } from '../../../provisioners/nfs-server/own-volumes.ts';
import { ProjectQuota } from '../../../provisioners/nfs-server/project-quota.ts';
import { VolumeDirectories } from '../../../provisioners/nfs-server/volume-directory.ts';
import { Sandbox } from '../../../sandbox/sandbox.ts';
import { eventually } from '../../support/eventually.ts';
import { installXfsQuota, xfsMount } from './fake-xfs-quota.ts';

describe('quotas that were lost', () => {
  let stack: AsyncDisposableStack;
  let folder: string;
  let root: string;
  let client: KubeClient;
  let sandbox: Sandbox;
  const leaving = new Set<string>();

  beforeEach(async () => {
    stack = new AsyncDisposableStack();
    folder = await mkdtemp(path.join(tmpdir(), 'lost-quotas-'));
    stack.defer(() => rm(folder, { recursive: true }));
    root = path.join(folder, 'export');
    await mkdir(root);
    stack.defer(await installXfsQuota(folder));
    sandbox = await Sandbox.start({ nodes: 0 });
    stack.defer(() => sandbox.close());
    client = new KubeClient({
      transport: stack.use(connect({ kubeconfig: sandbox.kubeconfig })),
      fieldManager: 'test',
    });
    leaving.clear();
  });
  afterEach(() => stack.disposeAsync());

  const start = async (): Promise<{ lost: LostQuotas; quota: ProjectQuota }> => {
    const transport = stack.use(connect({ kubeconfig: sandbox.kubeconfig }));
    const logger = silentLogger;
    const volumes = new OwnVolumes({
      transport,
      identity: 'me',
      directories: new VolumeDirectories(root),
      onChange: (name) => lost.changed(name),
      logger,
    });
    const file = new AtomicFile(path.join(root, 'projects'));
    const quota = await ProjectQuota.open(
      { mountPoint: root, file, isTaken: (id) => volumes.hasProjectId(id), logger },
      await xfsMount(folder, { mountPoint: root }),
    );
    const lost: LostQuotas = new LostQuotas({
      volumes,
      quota,
      directories: new VolumeDirectories(root),
      isLeaving: (directory) => leaving.has(directory),
      recorder: stack.use(new EventRecorder({ client, component: 'test', logger })),
      checkDisk: () => undefined,
      logger,
      retryMs: 200,
    });
    const stop = new AbortController();
    const running = Promise.all([volumes.run(stop.signal), lost.run(stop.signal)]);
    stack.defer(async () => {
      stop.abort();
      await running;
    });
    await volumes.synced;
    return { lost, quota };
  };
  const createVolume = async (name: string, id: string, { directory = true } = {}): Promise<void> => {
    const nfs = { server: '10.0.0.1', path: path.join(root, name) };
    if (directory) await mkdir(nfs.path);
    const annotations = { Provisioner_Id: 'me', Export_Id: '1', Project_Id: id, Project_block: '\n1:/etc:7\n' };
    await client.create<PersistentVolume>(persistentVolumes, {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name, annotations },
      spec: {
        nfs,
        capacity: { storage: '1Mi' },
        accessModes: ['ReadWriteMany'],
        persistentVolumeReclaimPolicy: 'Retain',
      },
    });
  };
  const line = (name: string, id: number): string => `\n${id}:${path.join(root, name)}:1048576\n`;
  const projects = (): Promise<string> => readFile(path.join(root, 'projects'), 'utf8');
  const calls = (): Promise<string> => readFile(path.join(folder, 'calls'), 'utf8');
  const eventsOn = (name: string): string =>
    (sandbox.api.client('test').list({ group: '', version: 'v1', plural: 'events' }) as unknown as EventObject[])
      .filter(({ involvedObject }) => involvedObject.name === name)
      .map(({ message }) => message)
      .join();

  test('are restored with their ids, and no id is given to another volume', async () => {
    await createVolume('pvc-a', '1');
    await createVolume('pvc-b', '3');
    await createVolume('pvc-free', '0');
    const { lost, quota } = await start();
    await eventually(async () => assert.equal(await projects(), line('pvc-a', 1) + line('pvc-b', 3)));
    await eventually(async () => assert.match(await calls(), /limit -p bhard=1048576 3/));
    assert.match(await calls(), new RegExp(`project -s -p ${root}/pvc-a 1 `));
    assert.doesNotMatch(await calls(), /etc|pvc-free/);
    await mkdir(path.join(root, 'pvc-c'));
    assert.equal((await quota.set(path.join(root, 'pvc-c'), 7n)).id, 2);
    await quota.remove(path.join(root, 'pvc-b'));
    await mkdir(path.join(root, 'pvc-d'));
    assert.equal((await quota.set(path.join(root, 'pvc-d'), 7n)).id, 4, 'a living volume names 3');
    assert.equal(lost.count, 0);
  });

  test('that the file has are not changed', async () => {
    await mkdir(path.join(root, 'pvc-a'));
    await writeFile(path.join(root, 'projects'), `\n9:${root}/pvc-a:5\n`);
    await createVolume('pvc-a', '4', { directory: false });
    await createVolume('pvc-b', '3');
    await start();
    await eventually(async () => assert.equal(await projects(), `\n9:${root}/pvc-a:5\n${line('pvc-b', 3)}`));
  });

  test('get an event and are counted while they cannot be set, and are set later', async () => {
    await writeFile(path.join(folder, 'broken'), '');
    await createVolume('pvc-a', '1');
    await createVolume('pvc-evil', '2; rm -r /');
    const { lost } = await start();
    await eventually(() => {
      assert.match(eventsOn('pvc-a'), /^The quota of the volume is not set: xfs_quota .* failed: no such project$/);
      assert.match(eventsOn('pvc-evil'), /annotation Project_Id "2; rm -r \/": it must be a number/);
    });
    assert.equal(lost.count, 2);
    assert.equal(await projects(), '');
    await rm(path.join(folder, 'broken'));
    await eventually(() => assert.equal(lost.count, 1));
    assert.equal(await projects(), line('pvc-a', 1));
  });

  test('with the same id are set for one of the two volumes', async () => {
    await createVolume('pvc-a', '1');
    await createVolume('pvc-b', '1');
    const { lost } = await start();
    await eventually(() => assert.equal(lost.count, 1));
    await eventually(() =>
      assert.match(eventsOn('pvc-a') + eventsOn('pvc-b'), /the project id 1 is already used by .*pvc-[ab]/),
    );
  });

  test('are set once the directory is restored, such as from a backup, and not while the volume is being removed', async () => {
    await createVolume('pvc-a', '1', { directory: false });
    leaving.add(path.join(root, 'pvc-going'));
    await createVolume('pvc-going', '2');
    await start();
    await createVolume('pvc-c', '3');
    await eventually(async () => assert.equal(await projects(), line('pvc-c', 3)));
    await mkdir(path.join(root, 'pvc-a'));
    await eventually(async () => assert.equal(await projects(), line('pvc-c', 3) + line('pvc-a', 1)));
  });
});

interface EventObject {
  involvedObject: { name: string };
  message: string;
}
