/** `nfs-subdir-external-provisioner audit` as a process, on the sandbox and a real directory. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { recordsFolder } from '../../../provisioners/nfs-subdir/archives.ts';
import { shareKey } from '../../../provisioners/nfs-subdir/share-guard.ts';
import { identityFile } from '../../../provisioners/nfs-subdir/share-identity.ts';
import type { StorageFinding } from '../../../provisioners/shared-audit/storage-audit.ts';
import { Sandbox } from '../../../sandbox/sandbox.ts';
import { programFile } from '../../support/program-file.ts';

const provisioner = 'k8s-sigs.io/nfs-subdir-external-provisioner';
const volumes = { group: '', version: 'v1', plural: 'persistentvolumes' };
const leases = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };
const main = programFile('nfs-subdir-external-provisioner');
const identity = '6b0f8a52-7a0c-4a36-9a53-0d1c6c1f3a57';
const lock = { namespace: 'default', name: provisioner.replace('/', '-') };

interface Report {
  looks: number;
  findings: StorageFinding[];
  deletions: { volumeId: string; result: string; detail: string }[];
}

describe('the audit of nfs-subdir', () => {
  let sandbox: Sandbox;
  let mount: string;
  const api = () => sandbox.api.client('test');
  beforeEach(async () => {
    sandbox = await Sandbox.start({ nodes: 0 });
    mount = await mkdtemp(path.join(tmpdir(), 'nfs-subdir-audit-'));
    write(identityFile, identity);
  });
  afterEach(async () => {
    await sandbox.close();
    await rm(mount, { recursive: true, force: true });
  });

  const write = (file: string, text = 'data'): void => {
    mkdirSync(path.join(mount, path.dirname(file)), { recursive: true });
    writeFileSync(path.join(mount, file), text);
  };
  const createVolume = (name: string, nfsPath: string, madeBy = provisioner): void => {
    api().create(volumes, {
      metadata: { name, annotations: { 'pv.kubernetes.io/provisioned-by': madeBy } },
      spec: { nfs: { server: 'srv', path: nfsPath }, capacity: { storage: '1Gi' }, accessModes: ['ReadWriteMany'] },
    });
  };
  const audit = async (...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> => {
    const env = {
      ...process.env,
      NFS_SERVER: 'srv',
      NFS_PATH: '/exp',
      PROVISIONER_NAME: provisioner,
      MOUNT_POINT: mount,
      KUBECONFIG: sandbox.kubeconfig,
    };
    const { promise, resolve } = Promise.withResolvers<{ code: number; stdout: string; stderr: string }>();
    execFile(process.execPath, [main, 'audit', '--second-look=1ms', ...args], { env }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    );
    return await promise;
  };
  const report = async (...args: string[]): Promise<Report & { code: number }> => {
    const { code, stdout, stderr } = await audit('-o', 'json', ...args);
    assert.notEqual(stdout, '', stderr);
    return { ...(JSON.parse(stdout) as Report), code };
  };
  const found = (findings: readonly StorageFinding[]) => findings.map(({ state, id }) => `${state} ${id}`).sort();

  test('finds directories without a volume, volumes without a directory, and archives with age and size', async () => {
    for (const file of ['ns-a-pvc-1/f', 'ns/b/f', 'orphan/deep/f', 'ns/orphan/f', 'of-others/f']) write(file);
    write('archived-old/f', 'x'.repeat(100_000));
    write('.archived/archived-x/f');
    const record = {
      volume: 'pvc-9',
      className: 'c',
      archive: ['gone'],
      inode: '1',
      archivedAt: '2020-01-01T00:00:00Z',
    };
    write(`${recordsFolder}/pvc-9.json`, JSON.stringify(record));
    write('file-in-the-root');
    symlinkSync('/etc', path.join(mount, 'link'));
    createVolume('pvc-1', '/exp/ns-a-pvc-1');
    createVolume('pvc-2', '/exp/ns/b');
    createVolume('pvc-3', '/exp/ns/lost');
    createVolume('static', '/exp/of-others', 'administrator');
    const { findings, looks, code } = await report();
    assert.deepEqual(found(findings), [
      'archive .archived/archived-x',
      'archive archived-old',
      'lost ns/lost',
      'unclaimed ns/orphan',
      'unclaimed orphan',
    ]);
    assert.equal(looks, 2);
    assert.equal(code, 2);
    const old = findings.find(({ id }) => id === 'archived-old');
    assert.ok((old?.bytes ?? 0) >= 100_000 && !Number.isNaN(Date.parse(old?.since ?? '')));
    assert.equal(findings.find(({ state }) => state === 'lost')?.persistentVolume, 'pvc-3');
    const { stdout } = await audit();
    assert.match(stdout, /^archive +archived-old +- +20\d\d-.*\n/m);
    assert.match(stdout, /on srv:\/exp: findings that need attention: 3 \(.*two looks\)\.\n$/);
  });

  test('of a share on which all is well ends with 0', async () => {
    write('ns-a-pvc-1/f');
    write('archived-kept/f');
    createVolume('pvc-1', '/exp/ns-a-pvc-1');
    assert.equal((await report()).code, 0);
  });

  test('deletes one directory that is named, and its record', async () => {
    for (const file of ['orphan/f', 'other/f', 'archived-x/f']) write(file);
    const first = await report('--yes', '--delete', 'orphan');
    assert.deepEqual(first.deletions, [{ volumeId: 'orphan', result: 'deleted', detail: 'the directory is removed' }]);
    assert.equal((await report('--yes', '--delete', 'archived-x')).deletions[0]?.detail, 'the archive is removed');
    assert.deepEqual(readdirSync(mount).sort(), [identityFile, 'other']);
  });

  test('ends with 2 while something needs attention that was not deleted, and with 0 once all of it is', async () => {
    for (const file of ['orphan/f', 'other/f']) write(file);
    assert.equal((await report('--yes', '--delete', 'orphan')).code, 2);
    assert.equal((await report('--yes', '--delete', 'other')).code, 0);
  });

  for (const id of ['ns-a-pvc-1', 'ns', '..', '', 'ns-a-pvc-1/f', identityFile, '.archived']) {
    test(`refuses to delete what it has not found: ${JSON.stringify(id)}`, async () => {
      write('ns-a-pvc-1/f');
      write('ns/b/f');
      createVolume('pvc-1', '/exp/ns-a-pvc-1');
      createVolume('pvc-2', '/exp/ns/b');
      const { code, deletions } = await report('--yes', `--delete=${id}`);
      assert.equal(deletions[0]?.result, 'refused');
      assert.equal(code, 1);
      assert.ok(existsSync(path.join(mount, 'ns-a-pvc-1/f')) && existsSync(path.join(mount, 'ns/b/f')));
    });
  }

  test('deletes nothing without a question or --yes', async () => {
    write('orphan/f');
    const { code, stderr } = await audit('--delete', 'orphan');
    assert.equal(code, 1);
    assert.match(stderr, /--delete cannot ask for confirmation without a terminal: add --yes/);
    assert.ok(existsSync(path.join(mount, 'orphan/f')));
  });

  test('concludes nothing from another export than the provisioner has seen', async () => {
    api().create(leases, { metadata: { ...lock, annotations: { [shareKey]: 'another' } }, spec: {} });
    createVolume('pvc-1', '/exp/ns-a-pvc-1');
    const { code, stdout, stderr } = await audit();
    assert.equal(stdout, '');
    assert.equal(code, 3);
    assert.match(stderr, /is not the share of the volumes: its \.share-identity is 6b0f.*has seen another\n$/);
  });
});
