/** The NFS server of the kernel: a fake `exportfs` on the path writes down what it is told, and can fail. */
import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { silentLogger } from '../../../src/index.ts';
import { AtomicFile } from '../../../provisioners/nfs-server/atomic-file.ts';
import { Exports } from '../../../provisioners/nfs-server/exports.ts';
import { kernelFormat, kernelServer } from '../../../provisioners/nfs-server/kernel-exports.ts';

const { signal } = new AbortController();

describe('exports of the NFS server of the kernel', () => {
  let folder: string;
  const oldPath = process.env['PATH'];
  const file = (): string => path.join(folder, 'exports');
  const calls = async (): Promise<string> => readFile(path.join(folder, 'calls'), 'utf8').catch(() => '');

  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'kernel-'));
    const script = `#!/bin/sh\necho "$@" >> ${folder}/calls\n[ -e ${folder}/broken ] && { echo no nfsd >&2; exit 1; }\nexit 0\n`;
    await writeFile(path.join(folder, 'exportfs'), script);
    await chmod(path.join(folder, 'exportfs'), 0o755);
    process.env['PATH'] = `${folder}:${oldPath ?? ''}`;
    await writeFile(file(), '/home 10.0.0.0/8(ro,fsid=7)\n');
  });
  after(async () => {
    process.env['PATH'] = oldPath;
    await rm(folder, { recursive: true });
  });
  const open = (): Promise<Exports> => {
    const format = kernelFormat('*');
    return Exports.open({ file: new AtomicFile(file(), 0o644), format, server: kernelServer, logger: silentLogger });
  };

  test('are lines as the original writes them, and are read again at each change', async () => {
    const exports = await open();
    const { text, id } = await exports.add({ directory: '/export/pvc-1', squash: 'no_root_squash' }, signal);
    assert.equal(text, '\n/export/pvc-1 *(rw,insecure,no_root_squash,fsid=1)\n');
    assert.equal(id, 1);
    const two = await exports.add({ directory: '/export/pvc-2', squash: 'root_id_squash' }, signal);
    assert.equal(two.text, '\n/export/pvc-2 *(rw,insecure,root_squash,fsid=2)\n');
    assert.equal(await calls(), '-r\n-r\n');
    assert.equal((await open()).count, 3, 'one of an administrator counts');
    await exports.remove('/export/pvc-1', signal);
    await exports.remove('/export/pvc-2', signal);
    assert.equal(await readFile(file(), 'utf8'), '/home 10.0.0.0/8(ro,fsid=7)\n');
    assert.equal(await calls(), '-r\n-r\n-r\n-r\n');
  });

  test('are restored from what volumes name, and read once for all of them', async () => {
    const exports = await open();
    const before = await calls();
    const lost = [1, 2, 7].map((id) => ({ id, path: `/export/pvc-${id}`, squash: 'no_root_squash' as const }));
    const failures = await exports.restore(lost, () => true, signal);
    assert.deepEqual([...failures.keys()], ['/export/pvc-7']);
    assert.match(String(failures.get('/export/pvc-7')), /the export id 7 is not free: \/home is exported with it/);
    assert.equal(await calls(), `${before}-r\n`);
    assert.match(await readFile(file(), 'utf8'), /\n\/export\/pvc-2 \*\(rw,insecure,no_root_squash,fsid=2\)\n/);
    for (const id of [1, 2]) await exports.remove(`/export/pvc-${id}`, signal);
  });

  test('keep lines that an administrator adds meanwhile', async () => {
    const exports = await open();
    const before = await readFile(file(), 'utf8');
    const { text } = await exports.add({ directory: '/export/pvc-1', squash: 'no_root_squash' }, signal);
    const theirs = '/srv 10.0.0.0/8(ro)\n';
    await writeFile(file(), before + text + theirs);
    await exports.remove('/export/pvc-1', signal);
    assert.equal(await readFile(file(), 'utf8'), before + theirs);
    await writeFile(file(), before);
  });

  test('do not stay in the file when exportfs fails', async () => {
    const exports = await open();
    const before = await readFile(file(), 'utf8');
    await writeFile(path.join(folder, 'broken'), '');
    const adding = exports.add({ directory: '/export/pvc-1', squash: 'no_root_squash' }, signal);
    await assert.rejects(adding, /exportfs -r failed: no nfsd/);
    assert.equal(await readFile(file(), 'utf8'), before);
    assert.equal(exports.find('/export/pvc-1'), undefined);
  });
});
