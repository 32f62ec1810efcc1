/** nfs-subdir-external-provisioner passes the suite that authors of provisioners are given. */
import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type Bench, testProvisioner } from '../../src/testing/kit.ts';
import type { PersistentVolume } from '../../src/index.ts';
import { programFile } from '../support/program-file.ts';

const provisionerName = 'k8s-sigs.io/nfs-subdir-external-provisioner';
const nameOf = ({ spec }: PersistentVolume): string => path.posix.basename(spec.nfs?.path ?? '');
const fileIn = (volume: PersistentVolume, { folder }: Bench): string => path.join(folder, nameOf(volume), 'name');

testProvisioner(
  ({ folder }) => ({
    command: [process.execPath, programFile('nfs-subdir-external-provisioner')],
    env: {
      NFS_SERVER: 'srv',
      NFS_PATH: '/exp',
      PROVISIONER_NAME: provisionerName,
      MOUNT_POINT: folder,
      POD_NAMESPACE: undefined,
    },
  }),
  {
    provisionerName,
    leaderElection: true,
    rbac: path.join(import.meta.dirname, '../../deploy/nfs-subdir/rbac.yaml'),
    storageClass: { parameters: { archiveOnDelete: 'false' } },
    listStorage: async ({ folder }) => (await readdir(folder)).filter((name) => !name.startsWith('.')), // the export's identity
    storageOf: nameOf,
    data: {
      write: (volume, bench) => writeFile(fileIn(volume, bench), volume.metadata.name),
      check: async (volume, bench) => {
        assert.equal(await readFile(fileIn(volume, bench), 'utf8'), volume.metadata.name);
      },
    },
    settleMs: 90_000,
  },
);
