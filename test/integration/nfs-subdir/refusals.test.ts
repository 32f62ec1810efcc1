/** What is never made or removed, and what the error says where the file server refuses something. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { SubdirAudit } from '../../../provisioners/nfs-subdir/audit.ts';
import { identityFile } from '../../../provisioners/nfs-subdir/share-identity.ts';
import { Share } from '../../../provisioners/nfs-subdir/share.ts';
import { ShareError } from '../../../provisioners/nfs-subdir/share-guard.ts';
import { DeadMount } from '../../support/dead-mount.ts';
import { provisionerName, SubdirRig } from './rig.ts';

const signal = new AbortController().signal;
const serverNames = ['lost+found', '.snapshot', '.snapshots', '~snapshot', '.zfs', '#recycle', '#Recycle', '@eaDir'];
const ownNames = ['.archived', '.archived.records', '.archived-x', identityFile, `${identityFile}.x`];

/** Whether this machine has files that cannot be changed even by root. */
const isImmutable = ((): boolean => {
  const folder = mkdtempSync(path.join(tmpdir(), 'immutable-'));
  try {
    for (const flag of ['+i', '-i']) execFileSync('chattr', [flag, folder], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true });
  }
})();

describe('nfs-subdir', () => {
  let rig: SubdirRig;
  beforeEach(async () => {
    rig = await SubdirRig.start();
  });
  afterEach(() => rig[Symbol.asyncDispose]());

  for (const name of [...ownNames, ...serverNames, 'team/.snapshot', 'team/#recycle/x']) {
    test(`gives no claim the directory ${name}, and removes it for no volume that was made by hand`, async () => {
      await assert.rejects(rig.provision(rig.storageClass({ pathPattern: name })), {
        state: 'finished',
        message: /is reserved for/,
      });
      if (name !== identityFile) rig.write(`${name}/archived-a/file`);
      const { metadata } = rig.storageClass({ onDelete: 'delete' });
      for (const below of ['', '/', '/archived-a']) {
        await assert.rejects(
          rig.delete(rig.volume(`/exp/${name}${below}`, metadata.name)),
          /^Error: volume pvc-1 lies at .*reserved for.*: nothing is touched\. Set its policy to Retain, and delete it$/,
        );
      }
      if (name !== identityFile) assert.equal(rig.read(`${name}/archived-a/file`), 'data');
    });
  }

  test('leaves to the file server what is its own, also in the folders between, and the audit does not mention it', async () => {
    const storageClass = rig.storageClass({ pathPattern: 'ns/a' });
    rig.save(await rig.make(rig.options(storageClass, rig.claim())), storageClass.metadata.name);
    rig.api.own.create(
      { group: '', version: 'v1', plural: 'persistentvolumes' },
      {
        metadata: { name: 'pvc-1', annotations: { 'pv.kubernetes.io/provisioned-by': provisionerName } },
        spec: {
          nfs: { server: 'srv', path: '/exp/ns/a' },
          capacity: { storage: '1Gi' },
          accessModes: ['ReadWriteMany'],
        },
      },
    );
    for (const name of serverNames) for (const folder of ['.', 'ns']) mkdirSync(rig.path(folder, name));
    const settings = { server: 'srv', sharePath: '/exp', provisionerName, mountPoint: rig.mount };
    const audit = new SubdirAudit({
      settings: { ...settings, httpEndpoint: undefined, namespace: undefined },
      lock: undefined,
      client: rig.api.client,
      share: rig.share,
    });
    assert.deepEqual((await audit.look(signal)).findings, []);
    for (const id of [...serverNames, 'ns/.snapshot', '.archived.records']) {
      const finding = { state: 'unclaimed', id, detail: '', isDeletable: true, isTrouble: true };
      await assert.rejects(audit.delete(finding, signal), /belongs to the file server, or to the provisioner itself/);
    }
  });

  describe(
    'where the file server refuses something',
    { skip: !isImmutable && 'needs root and immutable files' },
    () => {
      const frozen = (name: string): void => {
        mkdirSync(rig.path(name), { recursive: true });
        execFileSync('chattr', ['+i', rig.path(name)]);
      };
      afterEach(() => {
        execFileSync('chattr', ['-R', '-f', '-i', rig.mount], { stdio: 'ignore' });
      });

      test('names the directory under the mount point and a cure, also of a call that knows no path', async () => {
        frozen('ns/a');
        await assert.rejects(rig.provision(rig.storageClass({ pathPattern: 'ns/a' })), {
          message: `unable to create directory to provision new pv: EPERM: operation not permitted, fchmod '${rig.path('ns/a')}' (the file server refuses it: export with no_root_squash, or remove what protects it, such as an immutable flag)`,
        });
      });

      test('removes the rest of a volume, and says what is left', async () => {
        const volume = await rig.provision(rig.storageClass({ onDelete: 'delete' }));
        for (let file = 0; file < 50; file++) rig.write(`ns-c-pvc-1/${file % 2 === 0 ? 'a' : 'z'}/${file}`);
        rig.write('ns-c-pvc-1/m/.snapshot/file');
        frozen('ns-c-pvc-1/m/.snapshot');
        await assert.rejects(rig.delete(volume), {
          message: `EPERM: operation not permitted, unlink '${rig.path('ns-c-pvc-1/m/.snapshot/file')}'; 4 entries are left (the file server refuses it: export with no_root_squash, or remove what protects it, such as an immutable flag)`,
        });
        assert.ok(!rig.exists('ns-c-pvc-1/a') && !rig.exists('ns-c-pvc-1/z'));
      });
    },
  );
});

const dead = DeadMount.mount();

test(
  'a mount whose server is gone is no missing directory: it is tried again, and the cure is named',
  { skip: dead === undefined && 'needs root and FUSE' },
  async () => {
    using mounted = dead!;
    const share = new Share(mounted.path, { check: () => Promise.resolve() });
    for (const attempt of [
      () => share.has(['a'], signal),
      () => share.make(['a'], signal),
      () => share.remove(['a'], signal),
    ]) {
      await assert.rejects(attempt, (error) => {
        assert.ok(error instanceof ShareError, 'a claim that waits for it is not refused for good');
        assert.match(error.message, /ENOTCONN.*This is retried\. If it persists, delete the Pod of the provisioner/);
        return true;
      });
    }
  },
);
