/** Exports that an audit has removed: real files, and PersistentVolumes of the sandbox; the server is one in memory. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { connect, KubeClient, persistentVolumes, silentLogger } from '../../../src/index.ts';
import { AtomicFile } from '../../../provisioners/nfs-server/atomic-file.ts';
import { Exports } from '../../../provisioners/nfs-server/exports.ts';
import { exportBlock, exportsIn } from '../../../provisioners/nfs-server/ganesha-config.ts';
import { OwnVolumes } from '../../../provisioners/nfs-server/own-volumes.ts';
import { requestUnexport, UnexportRequests } from '../../../provisioners/nfs-server/unexport-requests.ts';
import { VolumeDirectories } from '../../../provisioners/nfs-server/volume-directory.ts';
import { Sandbox } from '../../../sandbox/sandbox.ts';
import { eventually } from '../../support/eventually.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { ServerInMemory } from './server-in-memory.ts';

const never = new AbortController().signal;

describe('an audit that asks the provisioner to remove an export', () => {
  let stack: AsyncDisposableStack;
  let root: string;
  let server: ServerInMemory;
  let sandbox: Sandbox;
  let log: LogLine[];
  let freed: number;

  beforeEach(async () => {
    stack = new AsyncDisposableStack();
    root = await mkdtemp(path.join(tmpdir(), 'unexport-'));
    stack.defer(() => rm(root, { recursive: true }));
    const blocks = ['pvc-a', 'pvc-b'].map((name, index) => block(name, index + 1));
    await writeFile(path.join(root, 'vfs.conf'), blocks.join(''));
    server = new ServerInMemory(path.join(root, 'vfs.conf'));
    await server.reread();
    sandbox = await Sandbox.start({ nodes: 0 });
    stack.defer(() => sandbox.close());
    log = [];
    freed = 0;
  });
  afterEach(() => stack.disposeAsync());

  const directory = (name: string): string => path.join(root, name);
  const block = (name: string, id: number): string =>
    exportBlock({ id, path: directory(name), squash: 'no_root_squash' });
  const left = async (): Promise<number[]> =>
    exportsIn(await readFile(path.join(root, 'vfs.conf'), 'utf8')).map(({ id }) => id);
  const file = (): string => path.join(root, '.nfs-provisioner.unexport');

  const reasons = (): string => log.map(({ fields }) => String((fields as { err?: unknown }).err)).join();

  const start = async (): Promise<void> => {
    const transport = stack.use(connect({ kubeconfig: sandbox.kubeconfig }));
    const volumes = new OwnVolumes({
      transport,
      identity: 'me',
      directories: new VolumeDirectories(root),
      onChange: () => undefined,
      logger: silentLogger,
    });
    const exports = await Exports.open({
      file: new AtomicFile(path.join(root, 'vfs.conf')),
      format: { write: exportBlock, read: exportsIn },
      server,
      logger: silentLogger,
    });
    const requests = new UnexportRequests({
      directories: new VolumeDirectories(root),
      exports,
      volumes,
      isDiskUp: () => true,
      onRemoved: () => (freed += 1),
      logger: recordedLogger(log),
    });
    const stop = new AbortController();
    const running = Promise.all([volumes.run(stop.signal), requests.run(stop.signal)]);
    stack.defer(async () => {
      stop.abort();
      await running;
    });
  };
  const createVolume = async (name: string): Promise<void> => {
    await using transport = connect({ kubeconfig: sandbox.kubeconfig });
    await new KubeClient({ transport, fieldManager: 'test' }).create(persistentVolumes, {
      metadata: { name: 'static', annotations: { Provisioner_Id: 'me' } },
      spec: {
        nfs: { server: 'any', path: directory(name) },
        capacity: { storage: '1Mi' },
        accessModes: ['ReadWriteMany'],
      },
    } as never);
  };

  test('has it removed from the file and from the server, and no other', async () => {
    await start();
    await requestUnexport(root, { id: 1, path: directory('pvc-a') }, never);
    assert.deepEqual(await left(), [2]);
    assert.deepEqual([...server.served.keys()], [0, 2]);
    assert.equal(freed, 1, 'claims that wait for a free export are woken');
  });

  test('is carried out by a provisioner that starts meanwhile', async () => {
    const asked = requestUnexport(root, { id: 1, path: directory('pvc-a') }, never);
    await eventually(() => assert.ok(existsSync(file())));
    await assert.rejects(requestUnexport(root, { id: 2, path: directory('pvc-b') }, never), /another audit is running/);
    await start();
    await asked;
    assert.deepEqual(await left(), [2]);
  });

  test('withdraws the request where no provisioner runs', async () => {
    const ending = new AbortController();
    const asked = requestUnexport(root, { id: 1, path: directory('pvc-a') }, ending.signal);
    await eventually(() => assert.ok(existsSync(file())));
    ending.abort();
    await assert.rejects(asked, /no running provisioner has removed the export/);
    assert.ok(!existsSync(file()));
  });

  for (const { title, request, message } of [
    { title: 'of a PersistentVolume', request: { id: 1, path: 'pvc-a' }, message: /PersistentVolume static has/ },
    { title: 'that has another id by now', request: { id: 7, path: 'pvc-b' }, message: /with the id 2, not 7/ },
    { title: 'of the root', request: { id: 0, path: '' }, message: /is not the directory of a volume/ },
  ]) {
    test(`is refused where the export is one ${title}`, async () => {
      await createVolume('pvc-a');
      await start();
      await requestUnexport(root, { ...request, path: directory(request.path) }, never);
      assert.deepEqual(await left(), [1, 2]);
      assert.match(reasons(), message);
    });
  }

  for (const { title, text, age, message } of [
    {
      title: 'whose audit no longer waits',
      text: '{"id":1,"path":"ROOT/pvc-a"}',
      age: 3600,
      message: /the request is 36\d\d s old/,
    },
    { title: 'that is damaged', text: '{"id":1', age: 0, message: /JSON/ },
    { title: 'without an export', text: '{"id":"1"}', age: 0, message: /the request does not name an export/ },
  ]) {
    test(`leaves no request ${title}`, async () => {
      await writeFile(file(), text.replace('ROOT', root));
      const then = Date.now() / 1000 - age;
      await utimes(file(), then, then);
      await start();
      await eventually(() => assert.ok(!existsSync(file())));
      await eventually(() => assert.match(reasons(), message));
      assert.deepEqual(await left(), [1, 2]);
    });
  }
});
