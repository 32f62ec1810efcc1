/**
 * nfs-provisioner passes the suite that authors of provisioners are given: with the real `exportfs` of the kernel's NFS server, which
 * needs no running server. No process is frozen: it keeps the lock on the export directory, so that none takes over.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { type Bench, testProvisioner } from '../../src/testing/kit.ts';
import type { PersistentVolume } from '../../src/index.ts';
import { findExportfs } from '../support/nfs/nfs-programs.ts';
import { programFile } from '../support/program-file.ts';

/** Over /etc and /var/lib lie copies that go with the process; /etc/exports is the file of the bench. */
const namespace = `set -e
mount -t tmpfs none "$1"; mkdir "$1/etc" "$1/etc-work" "$1/lib" "$1/lib-work"
mount -t overlay none -o "lowerdir=/etc,upperdir=$1/etc,workdir=$1/etc-work" /etc
mount -t overlay none -o "lowerdir=/var/lib,upperdir=$1/lib,workdir=$1/lib-work" /var/lib
mkdir -p /var/lib/nfs; : > /var/lib/nfs/etab; ln -sf "$2" /etc/exports
shift 2; exec "$@"`;

const provisionerName = 'example.com/nfs';
const exportsFile = ({ folder }: Bench): string => path.join(folder, '../exports');
const mounts = ({ folder }: Bench): string => path.join(folder, '../mounts');
const isVolume = (name: string): boolean => name.startsWith('pvc-');
const nameOf = ({ spec }: PersistentVolume): string => path.posix.basename(spec.nfs?.path ?? '');
const fileIn = (volume: PersistentVolume, { folder }: Bench): string => path.join(folder, nameOf(volume), 'name');

async function directories({ folder }: Bench): Promise<string[]> {
  return (await readdir(folder)).filter(isVolume);
}

async function exported(bench: Bench): Promise<string[]> {
  const text = await readFile(exportsFile(bench), 'utf8');
  return [...text.matchAll(/^(\/\S+) /gm)].map(([, directory = '']) => path.basename(directory));
}

const found = await findExportfs();
const missing = 'missing' in found ? found.missing : mountsRefused();
if (missing !== undefined) test('nfs-provisioner', { skip: missing });
else {
  testProvisioner(
    async (bench) => {
      await writeFile(exportsFile(bench), '');
      mkdirSync(mounts(bench));
      const { kubeconfig, folder } = bench;
      const args = [`-provisioner=${provisionerName}`, `-kubeconfig=${kubeconfig}`, `-export-dir=${folder}`];
      const server = ['-run-server=false', '-use-ganesha=false', `-exports-file=${exportsFile(bench)}`];
      const program = [
        process.execPath,
        programFile('nfs-provisioner'),
        ...args,
        ...server,
        '-server-hostname=127.0.0.1',
      ];
      const command = ['unshare', '-m', 'sh', '-c', namespace, 'sh', mounts(bench), exportsFile(bench), ...program];
      return { command, env: { PATH: 'path' in found ? found.path : '' } };
    },
    {
      provisionerName,
      listStorage: async (bench) => [...new Set([...(await directories(bench)), ...(await exported(bench))])],
      storageOf: nameOf,
      data: {
        write: (volume, bench) => writeFile(fileIn(volume, bench), volume.metadata.name),
        check: async (volume, bench) => {
          assert.equal(await readFile(fileIn(volume, bench), 'utf8'), volume.metadata.name);
          assert.ok((await exported(bench)).includes(nameOf(volume)), 'it is not exported');
        },
      },
      moments: [
        {
          title: 'when there is a directory, and no export yet',
          during: 'fulfil',
          isReached: async (bench) => (await directories(bench)).length > (await exported(bench)).length,
        },
        {
          title: 'when the export is gone, and the directory is not',
          during: 'delete',
          isReached: async (bench) => (await exported(bench)).length < (await directories(bench)).length,
        },
      ],
      rbac: path.join(import.meta.dirname, '../../deploy/nfs-server/rbac.yaml'),
      settleMs: 90_000,
    },
  );
}

function mountsRefused(): string | undefined {
  try {
    execFileSync('unshare', ['-m', 'true'], { stdio: 'ignore' });
    return undefined;
  } catch (error) {
    return `no mounts are permitted here: ${String(error)}`;
  }
}
