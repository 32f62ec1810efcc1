/** The file of exports and the server that reads it; the server is one in memory that can refuse, hang or forget. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { silentLogger } from '../../../src/index.ts';
import { AtomicFile } from '../../../provisioners/nfs-server/atomic-file.ts';
import { Exports } from '../../../provisioners/nfs-server/exports.ts';
import { defaultConfig, exportBlock, exportsIn, isWhole } from '../../../provisioners/nfs-server/ganesha-config.ts';
import { ServerInMemory } from './server-in-memory.ts';

const { signal } = new AbortController();
const base = defaultConfig({ recoveryRoot: '/export', nfsV3: true });

describe('the exports of a ganesha', () => {
  let folder: string;
  let file: string;
  let server: ServerInMemory;

  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'exports-'));
    file = path.join(folder, 'vfs.conf');
    server = new ServerInMemory(file);
    await writeFile(file, base, { mode: 0o644 });
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const open = (onEdited: () => void = () => undefined): Promise<Exports> =>
    Exports.open({
      file: new AtomicFile(file),
      format: { write: exportBlock, read: exportsIn, isWhole },
      server,
      onEdited,
      logger: silentLogger,
    });
  const text = (): Promise<string> => readFile(file, 'utf8');
  const add = (exports: Exports, directory: string) => exports.add({ directory, squash: 'no_root_squash' }, signal);

  test('come to the end of the file and go from it, and the rest stays byte for byte', async () => {
    const exports = await open();
    const entry = await add(exports, '/export/pvc-1');
    assert.equal(await text(), base + entry.text);
    assert.equal((await stat(file)).mode & 0o777, 0o600, 'for root alone');
    assert.equal(exports.count, 1, 'the pseudo root is not counted');
    assert.deepEqual(
      [...server.served],
      [
        [0, '/'],
        [1, '/export/pvc-1'],
      ],
    );
    await exports.remove('/export/pvc-1', signal);
    await exports.remove('/export/pvc-1', signal);
    assert.equal(await text(), base);
    assert.deepEqual([...server.served.keys()], [0]);
  });

  test('leave nothing behind when the server refuses, and work at the next attempt', async () => {
    const exports = await open();
    server.refusal = new Error('Error while parsing');
    await assert.rejects(add(exports, '/export/pvc-1'), /Error while parsing/);
    assert.equal(await text(), base);
    assert.equal(exports.find('/export/pvc-1'), undefined);
    server.refusal = undefined;
    await add(exports, '/export/pvc-1');
    assert.equal(exports.count, 1);
  });

  test('of an earlier process are known, and taken over', async () => {
    const entry = await add(await open(), '/export/pvc-1');
    server.served.clear();
    const exports = await open();
    assert.deepEqual(await add(exports, '/export/pvc-1'), entry);
    assert.equal(await text(), base + entry.text);
    assert.equal((await add(exports, '/export/pvc-2')).id, 2);
  });

  test('are one for a directory, also where the file has it twice', async () => {
    const stale = [7, 8].map((id) => exportBlock({ id, path: '/export/pvc-1', squash: 'root_id_squash' }));
    await writeFile(file, base + stale.join(''));
    server.served.set(7, '/export/pvc-1');
    const exports = await open();
    const entry = await add(exports, '/export/pvc-1');
    assert.equal(await text(), base + entry.text);
    assert.deepEqual([...server.served.values()], ['/', '/export/pvc-1']);
  });

  test('are made and removed at once without losing one', async () => {
    const exports = await open();
    const directories = Array.from({ length: 30 }, (_, index) => `/export/pvc-${index}`);
    for (const directory of directories.slice(0, 10)) await add(exports, directory);
    await Promise.all([
      ...directories.slice(10).map((directory) => add(exports, directory)),
      ...directories.slice(0, 10).map((directory) => exports.remove(directory, signal)),
    ]);
    const entries = exportsIn(await text()).filter(({ id }) => id !== 0);
    assert.deepEqual(entries.map((entry) => entry.path).sort(), directories.slice(10).sort());
    assert.equal(new Set(entries.map(({ id }) => id)).size, 20);
    assert.equal(server.served.size, 21);
  });

  test('are made equal to the file after a start of the server', async () => {
    const exports = await open();
    for (const name of ['1', '2', '3']) await add(exports, `/export/pvc-${name}`);
    server.served.clear();
    server.served.set(9, '/export/pvc-9').set(1, '/export/pvc-1');
    server.calls = 0;
    await exports.reconcile(
      { exists: (directory) => Promise.resolve(directory !== '/export/pvc-3'), isVolume: () => true },
      signal,
    );
    assert.deepEqual([...server.served].sort(), [
      [1, '/export/pvc-1'],
      [2, '/export/pvc-2'],
    ]);
    assert.equal(server.calls, 1, 'what was served already is left alone');
  });

  test('keep what an administrator changes in the file meanwhile', async () => {
    const exports = await open();
    const one = await add(exports, '/export/pvc-1');
    const theirs = exportBlock({ id: 2, path: '/srv/data', squash: 'root_id_squash' });
    const edited = base.replace('MNT_Port = 20048;', 'MNT_Port = 20049;');
    await writeFile(file, edited + one.text + theirs);
    const two = await add(exports, '/export/pvc-2');
    assert.equal(two.id, 3, 'the id of theirs is not given away');
    assert.equal(await text(), edited + one.text + theirs + two.text);
    await exports.remove('/export/pvc-1', signal);
    assert.equal(await text(), edited + theirs + two.text);
  });

  test('are restored when an administrator has removed the block of a volume', async () => {
    let edits = 0;
    const exports = await open(() => (edits += 1));
    const one = await add(exports, '/export/pvc-1');
    await writeFile(file, base);
    const two = await add(exports, '/export/pvc-2');
    assert.equal(edits, 1, 'the volumes are looked at again');
    assert.equal(exports.isServed('/export/pvc-1'), false);
    assert.equal((await exports.restore([one], () => true, signal)).size, 0);
    assert.equal(await text(), base + two.text + one.text);
    assert.ok(exports.isServed('/export/pvc-1'));
  });

  for (const { title, content } of [
    { title: 'is emptied', content: () => '' },
    { title: 'is cut off, as while an editor writes it', content: (whole: string) => whole.slice(0, -20) },
  ]) {
    test(`are kept when the file ${title}`, async () => {
      const exports = await open();
      const one = await add(exports, '/export/pvc-1');
      const damaged = content(await text());
      await writeFile(file, damaged);
      const two = await add(exports, '/export/pvc-2');
      assert.equal(await text(), base + one.text + two.text);
      assert.equal(await readFile(`${file}.damaged`, 'utf8').catch(() => ''), damaged, 'a copy is kept');
    });
  }

  test('go from a file whose blocks have no blank line between them, and no other block goes with them', async () => {
    const blocks = [1, 2, 3].map((id) =>
      exportBlock({ id, path: `/export/pvc-${id}`, squash: 'no_root_squash' }).trim(),
    );
    await writeFile(file, `${base}${blocks.join('\n')}\n`);
    const exports = await open();
    await exports.remove('/export/pvc-2', signal);
    assert.equal(await text(), `${base}${blocks[0]}\n${blocks[2]}\n`);
    await exports.remove('/export/pvc-1', signal);
    await exports.remove('/export/pvc-3', signal);
    assert.equal(await text(), base);
  });

  test('have no id of an export that came in by another file, which is left alone', async () => {
    server.served.set(1, '/srv/data').set(2, '/srv/more');
    const exports = await open();
    await exports.reconcile({ exists: () => Promise.resolve(true), isVolume: (path) => path.includes('pvc-') }, signal);
    assert.equal((await add(exports, '/export/pvc-1')).id, 3);
    assert.deepEqual([...server.served.values()], ['/', '/srv/data', '/srv/more', '/export/pvc-1']);
  });

  for (const { title, damage } of [
    { title: 'emptied', damage: () => writeFile(file, '') },
    { title: 'cut off', damage: async () => writeFile(file, (await text()).slice(0, -20)) },
    { title: 'removed', damage: () => rm(file) },
  ]) {
    test(`are all in the file before the server is started, also when it was ${title}`, async () => {
      const exports = await open();
      const one = await add(exports, '/export/pvc-1');
      await damage();
      assert.equal(await exports.prepare(signal), file);
      assert.equal(await text(), base + one.text);
    });
  }

  test('stay as they were when the file cannot be written', async () => {
    const exports = await open();
    await add(exports, '/export/pvc-1');
    const before = await text();
    await rm(folder, { recursive: true });
    await assert.rejects(add(exports, '/export/pvc-2'), /ENOENT/);
    assert.equal(exports.count, 1);
    assert.deepEqual([...server.served.values()], ['/', '/export/pvc-1']);
    assert.ok(before.includes('/export/pvc-1'));
  });
});
