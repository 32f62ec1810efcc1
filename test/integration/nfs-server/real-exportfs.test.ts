/** The NFS server of the kernel with the real `exportfs`, which needs no running server, on an /etc/exports of its own. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { findExportfs } from '../../support/nfs/nfs-programs.ts';

const exec = promisify(execFile);
const child = path.join(import.meta.dirname, 'exportfs-child.ts');
/** Over /etc and /var/lib lie copies that go with the namespace. */
const namespace = `set -e
mount -t tmpfs none "$1"; mkdir "$1/etc" "$1/etc-work" "$1/lib" "$1/lib-work" "$1/export"
mount -t overlay none -o "lowerdir=/etc,upperdir=$1/etc,workdir=$1/etc-work" /etc
mount -t overlay none -o "lowerdir=/var/lib,upperdir=$1/lib,workdir=$1/lib-work" /var/lib
mkdir -p /var/lib/nfs; : > /var/lib/nfs/etab`;

test('exportfs takes what is added, removed and restored', async (context) => {
  const found = await findExportfs();
  if ('missing' in found) {
    context.skip(found.missing);
    return;
  }
  const folder = await mkdtemp(path.join(tmpdir(), 'exportfs-'));
  context.after(() => rm(folder, { recursive: true }));
  const env = { ...process.env, PATH: found.path };
  const inNamespace = async (command: string): Promise<string> =>
    (await exec('unshare', ['-m', 'sh', '-c', `${namespace}\n${command}`, 'sh', folder], { env })).stdout;
  const refusal = await inNamespace('true').then(
    () => undefined,
    (error: unknown) => `no mounts are permitted here: ${String(error)}`,
  );
  if (refusal !== undefined) {
    context.skip(refusal);
    return;
  }
  const exported = await inNamespace(`${process.execPath} ${child} "$1/export"`);
  const lines = exported.trim().split('\n').sort();
  assert.equal(lines.length, 2, exported);
  assert.match(lines[0] ?? '', /\/export\/pvc-2\s+\*\(.*\bfsid=2\b.*\brw\b.*,root_squash\b/);
  assert.match(lines[1] ?? '', /\/export\/pvc-9\s+\*\(.*\bfsid=9\b.*\brw\b.*,no_root_squash\b/);
});
