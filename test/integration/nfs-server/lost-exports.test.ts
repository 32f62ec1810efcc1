/** Exports that are restored from PersistentVolumes: real files and the API of the sandbox; the server is one in memory. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { connect, KubeClient, type PersistentVolume, persistentVolumes, silentLogger } from '../../../src/index.ts';
import { EventRecorder } from '../../../src/kube.ts';
import { AtomicFile } from '../../../provisioners/nfs-server/atomic-file.ts';
import { Exports } from '../../../provisioners/nfs-server/exports.ts';
import { defaultConfig, exportBlock, exportsIn } from '../../../provisioners/nfs-server/ganesha-config.ts';
import { LostExports } from '../../../provisioners/nfs-server/lost-exports.ts';
import { OwnVolumes } from '../../../provisioners/nfs-server/own-volumes.ts';
import { VolumeDirectories } from '../../../provisioners/nfs-server/volume-directory.ts';
import { Sandbox } from '../../../sandbox/sandbox.ts';
import { eventually } from '../../support/eventually.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { ServerInMemory } from './server-in-memory.ts';

const base = defaultConfig({ recoveryRoot: '/export', nfsV3: true });
const { signal } = new AbortController();

describe('exports that were lost', () => {
  let stack: AsyncDisposableStack;
  let root: string;
  let server: ServerInMemory;
  let client: KubeClient;
  let sandbox: Sandbox;
  let log: LogLine[];
  const config = (): string => path.join(root, 'vfs.conf');
  const ids = async (): Promise<number[]> => exportsIn(await readFile(config(), 'utf8')).map(({ id }) => id);

  beforeEach(async () => {
    stack = new AsyncDisposableStack();
    log = [];
    root = await mkdtemp(path.join(tmpdir(), 'lost-'));
    stack.defer(() => rm(root, { recursive: true }));
    await writeFile(config(), base);
    server = new ServerInMemory(config());
    sandbox = await Sandbox.start({ nodes: 0 });
    stack.defer(() => sandbox.close());
    const transport = stack.use(connect({ kubeconfig: sandbox.kubeconfig }));
    client = new KubeClient({ transport, fieldManager: 'test' });
  });
  afterEach(() => stack.disposeAsync());

  const start = async (
    isServing = () => true,
    checkDisk: () => void = () => undefined,
  ): Promise<{ lost: LostExports; exports: Exports; own: OwnVolumes }> => {
    const transport = stack.use(connect({ kubeconfig: sandbox.kubeconfig }));
    const directories = new VolumeDirectories(root);
    const own = new OwnVolumes({
      transport,
      identity: 'me',
      directories,
      onChange: (name) => lost.changed(name),
      logger: silentLogger,
    });
    const exports = await Exports.open({
      file: new AtomicFile(config()),
      format: { write: exportBlock, read: exportsIn },
      server,
      isTaken: (id) => own.hasId(id),
      logger: silentLogger,
    });
    const recorder = stack.use(new EventRecorder({ client, component: 'test', logger: silentLogger }));
    const options = {
      volumes: own,
      identity: { id: 'me', file: '/export/nfs-provisioner.identity' },
      exports,
      directories,
      recorder,
      isServing,
      checkDisk,
      logger: recordedLogger(log),
      retryMs: 200,
    };
    const lost: LostExports = new LostExports(options);
    const stop = new AbortController();
    const running = lost.run(stop.signal);
    stack.defer(() => running);
    stack.defer(() => stop.abort());
    if (isServing()) await lost.whenRestored(AbortSignal.timeout(60_000));
    return { lost, exports, own };
  };
  const createVolume = async (
    name: string,
    { id, identity = 'me', squash = 'no_root_squash', directory = true, more = {} }: VolumeOptions,
  ): Promise<PersistentVolume> => {
    const nfs = { server: '10.0.0.1', path: path.join(root, name) };
    if (directory) await mkdir(nfs.path);
    const block = exportBlock({ id, path: nfs.path, squash });
    return await client.create<PersistentVolume>(persistentVolumes, {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: {
        name,
        annotations: { Provisioner_Id: identity, Export_Id: String(id), EXPORT_block: block, ...more },
      },
      spec: {
        nfs,
        capacity: { storage: '1Mi' },
        accessModes: ['ReadWriteMany'],
        persistentVolumeReclaimPolicy: 'Retain',
      },
    });
  };
  const eventsOn = (name: string): string[] =>
    (sandbox.api.client('test').list(eventKind) as unknown as EventObject[])
      .filter(({ involvedObject }) => involvedObject.name === name)
      .map(({ message }) => message);

  test('are all back at the start, 1,000 of them, with ids and options, and no id is given twice', async () => {
    const squashOf = (id: number) => (id % 2 === 0 ? 'root_id_squash' : 'no_root_squash');
    const wanted = Array.from({ length: 1001 }, (_, index) => index + 1).filter((id) => id !== 152);
    for (const id of wanted) await createVolume(`pvc-${id}`, { id, squash: squashOf(id) });
    const { lost, exports } = await start();
    assert.deepEqual([lost.count, exports.count, server.served.size], [0, 1000, 1001]);
    assert.deepEqual([server.calls, server.rereads], [0, 1], 'all at once');
    const file = await readFile(config(), 'utf8');
    for (const id of wanted) {
      const text = exportBlock({ id, path: path.join(root, `pvc-${id}`), squash: squashOf(id) });
      assert.ok(file.includes(text), `${id}`);
      assert.equal(server.served.get(id), path.join(root, `pvc-${id}`));
    }
    const added = await exports.add({ directory: path.join(root, 'pvc-new'), squash: 'no_root_squash' }, signal);
    assert.equal(added.id, 1002);
  });

  test('come back when a volume of ours is seen that is not exported, without the others', async () => {
    const { exports } = await start();
    await createVolume('pvc-other', { id: 3, identity: 'another', directory: false }); // its disk is another one
    await createVolume('pvc-a', { id: 2 });
    await eventually(() => assert.ok(exports.isServed(path.join(root, 'pvc-a'))));
    assert.deepEqual(await ids(), [0, 2]);
    assert.equal((await exports.add({ directory: path.join(root, 'pvc-b'), squash: 'no_root_squash' }, signal)).id, 1);
    assert.equal((await exports.add({ directory: path.join(root, 'pvc-c'), squash: 'no_root_squash' }, signal)).id, 3);
  });

  test('are not guessed for volumes of another identity whose data is here: a warning, an event, and no new volume with their ids', async () => {
    const annotationsOf = (id: number) => ({ Project_Id: String(10 + id) });
    await createVolume('pvc-1', { id: 1, identity: 'old', more: annotationsOf(1) });
    await createVolume('pvc-2', { id: 2, identity: 'old', more: annotationsOf(2) });
    await createVolume('pvc-3', { id: 3, identity: 'elsewhere', directory: false, more: annotationsOf(3) });
    await createVolume('pvc-4', { id: 4, more: annotationsOf(4) });
    const { exports, own, lost } = await start();
    const add = async (name: string) =>
      (await exports.add({ directory: path.join(root, name), squash: 'no_root_squash' }, signal)).id;
    assert.deepEqual([await add('pvc-a'), await add('pvc-b')], [3, 5]);
    assert.deepEqual(
      [11, 12, 13, 14].map((id) => own.hasProjectId(id)),
      [true, true, false, true],
    );
    const warnings = log.filter(({ message }) => message.includes('name another identity'));
    assert.deepEqual(
      warnings.map(({ level, fields }) => ({ level, ...fields })),
      [
        {
          level: 'warn',
          file: '/export/nfs-provisioner.identity',
          identity: 'me',
          lost: 'old',
          volumes: 2,
          volume: 'pvc-1',
        },
      ],
    );
    await eventually(() => {
      for (const name of ['pvc-1', 'pvc-2'])
        assert.match(eventsOn(name).join(), /write old into \/export\/nfs-provisioner.identity and restart/);
    });
    assert.deepEqual([eventsOn('pvc-3'), lost.count], [[], 0]);
    const body = { metadata: { annotations: { Provisioner_Id: 'me' } } };
    await client.patch(persistentVolumes, { name: 'pvc-1' }, { type: 'merge', body });
    await eventually(() => assert.ok(exports.isServed(path.join(root, 'pvc-1')))); // as the event says
    await client.patch(
      persistentVolumes,
      { name: 'pvc-2' },
      { type: 'merge', body: { metadata: { labels: { a: 'b' } } } },
    );
    await client.delete(persistentVolumes, { name: 'pvc-1' });
    await eventually(() => assert.equal(own.hasProjectId(11), false));
    assert.ok(own.hasProjectId(12), 'also after a change');
    await client.delete(persistentVolumes, { name: 'pvc-2' });
    await eventually(() => assert.deepEqual([own.hasId(2), own.hasProjectId(12)], [false, false]));
  });

  test('wait for a server that starts, without an event, and come back once it answers', async () => {
    let isServing = false;
    await createVolume('pvc-a', { id: 2 });
    const { lost, exports } = await start(() => isServing);
    await assert.rejects(lost.whenRestored(AbortSignal.timeout(500)), /have not all been checked yet/);
    assert.equal(exports.isServed(path.join(root, 'pvc-a')), false);
    isServing = true;
    lost.lookAtAll();
    await lost.whenRestored(AbortSignal.timeout(60_000));
    assert.ok(exports.isServed(path.join(root, 'pvc-a')));
    assert.deepEqual([lost.count, eventsOn('pvc-a')], [0, []]);
  });

  test('have an event and count where they cannot come back, and do once they can', async () => {
    await createVolume('pvc-a', { id: 5 });
    await createVolume('pvc-same-id', { id: 5 });
    await createVolume('pvc-gone', { id: 6, directory: false });
    await createVolume('pvc-link', { id: 7, directory: false });
    await mkdir(path.join(root, 'elsewhere'));
    await symlink(path.join(root, 'elsewhere'), path.join(root, 'pvc-link'));
    const { lost, exports } = await start();
    assert.equal(lost.count, 3);
    const given: number[] = [];
    for (const name of ['v', 'w', 'x', 'y', 'z']) {
      const directory = path.join(root, `pvc-${name}`);
      given.push((await exports.add({ directory, squash: 'no_root_squash' }, signal)).id);
      await exports.remove(directory, signal);
    }
    assert.deepEqual(given, [1, 2, 3, 4, 8], 'those of volumes that are not exported are given to no other');
    await eventually(() => {
      assert.match(
        eventsOn('pvc-gone').join(),
        /^The volume is not exported: .*\/pvc-gone is not a directory, or is gone$/,
      );
      assert.match(eventsOn('pvc-link').join(), /pvc-link is not a directory/);
    });
    const refused = eventsOn('pvc-a').length > 0 ? 'pvc-a' : 'pvc-same-id';
    await eventually(() =>
      assert.match(eventsOn(refused).join(), /the export id 5 is not free: .* is exported with it/),
    );
    const body = { metadata: { annotations: { Export_Id: '9' } } };
    await client.patch(persistentVolumes, { name: refused }, { type: 'merge', body });
    await mkdir(path.join(root, 'pvc-gone'));
    await eventually(() => assert.equal(lost.count, 1));
    assert.deepEqual((await ids()).sort(), [0, 5, 6, 9]);
    await client.delete(persistentVolumes, { name: 'pvc-link' });
    await eventually(() => assert.equal(lost.count, 0));
  });

  test('come back once the server takes them', async () => {
    server.refusal = new Error('no more memory');
    await createVolume('pvc-a', { id: 1 });
    const { lost } = await start();
    assert.equal(lost.count, 1);
    await eventually(() => assert.match(eventsOn('pvc-a').join(), /The volume is not exported: no more memory/));
    server.refusal = undefined;
    await eventually(() => assert.equal(lost.count, 0));
    assert.equal(server.served.get(1), path.join(root, 'pvc-a'));
    assert.deepEqual(await ids(), [0, 1]);
  });

  test('are restored once the file is writable, and get an event until then', async () => {
    await mkdir(path.join(root, '.vfs.conf.new')); // where the new file is written
    await createVolume('pvc-a', { id: 1 });
    const { lost, exports } = await start();
    assert.equal(lost.count, 1);
    await eventually(() => assert.match(eventsOn('pvc-a').join(), /The volume is not exported: .*EISDIR/));
    await rm(path.join(root, '.vfs.conf.new'), { recursive: true });
    await eventually(() => assert.ok(exports.isServed(path.join(root, 'pvc-a'))));
    await eventually(() => assert.equal(lost.count, 0)); // shortly after it is served
  });

  test('are restored once the disk answers', async () => {
    let hangs = true;
    const checkDisk = (): void => assert.equal(hangs, false, 'it does not answer');
    await createVolume('pvc-a', { id: 1 });
    const { exports } = await start(() => true, checkDisk);
    assert.equal(exports.isServed(path.join(root, 'pvc-a')), false);
    hangs = false;
    await eventually(() => assert.ok(exports.isServed(path.join(root, 'pvc-a'))));
  });

  test('stay away while their volume is being removed', async () => {
    const { lost, exports } = await start();
    const directory = path.join(root, 'pvc-a');
    lost.leaving(directory);
    await createVolume('pvc-a', { id: 1 });
    await createVolume('pvc-b', { id: 2 });
    await eventually(() => assert.ok(exports.isServed(path.join(root, 'pvc-b'))));
    assert.deepEqual(await ids(), [0, 2]);
    lost.coming(directory);
    lost.lookAtAll();
    await eventually(() => assert.ok(exports.isServed(directory)));
  });
});

interface VolumeOptions {
  id: number;
  identity?: string;
  /** Further annotations. */
  more?: Record<string, string>;
  squash?: 'no_root_squash' | 'root_id_squash';
  /** Whether the directory is there. */
  directory?: boolean;
}

interface EventObject {
  involvedObject: { name: string };
  message: string;
}

const eventKind = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };
