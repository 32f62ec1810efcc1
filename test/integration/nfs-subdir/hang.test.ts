/** nfs-subdir-external-provisioner on an export that hangs: a file system that is frozen. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { Sandbox } from '../../../sandbox/sandbox.ts';
import { freePort } from '../../support/free-ports.ts';
import { eventMessage } from '../../support/event-message.ts';
import { eventually } from '../../support/eventually.ts';
import { FreezableFolder } from '../../support/frozen-folder.ts';
import { startNfsSubdir } from '../../support/nfs-subdir-process.ts';

const provisioner = 'k8s-sigs.io/nfs-subdir-external-provisioner';
const claims = { group: '', version: 'v1', plural: 'persistentvolumeclaims' };
const classes = { group: 'storage.k8s.io', version: 'v1', plural: 'storageclasses' };
const silent = /^the export at .* does not respond$/;
const export_ = FreezableFolder.mount();
const skip = export_ === undefined && 'needs root and loop devices';

test('an export that hangs', { skip }, async (context) => {
  const sandbox = await Sandbox.start({ nodes: 0 });
  const api = sandbox.api.client('test');
  using folder = export_!;
  await using _sandbox = { [Symbol.asyncDispose]: () => sandbox.close() };
  const port = await freePort();
  const program = await startNfsSubdir({
    NFS_SERVER: 'srv',
    NFS_PATH: '/exp',
    PROVISIONER_NAME: provisioner,
    MOUNT_POINT: folder.path,
    KUBECONFIG: sandbox.kubeconfig,
    HTTP_ENDPOINT: `127.0.0.1:${port}`,
  });
  await using _program = { [Symbol.asyncDispose]: () => program.stop('SIGKILL') };
  const hopeless = () => (program.running() ? undefined : program.log());
  const get = async (page: string) => await fetch(`http://127.0.0.1:${port}${page}`);
  const isReady = async (status: number): Promise<void> =>
    eventually(async () => assert.equal((await get('/readyz')).status, status), { hopeless });
  const createClaim = (name: string): string =>
    api.create(claims, {
      metadata: { name, namespace: 'default' },
      spec: { storageClassName: 'nfs', accessModes: ['ReadWriteMany'], resources: { requests: { storage: '1Gi' } } },
    }).metadata.uid ?? '';
  const isBound = (name: string): Promise<void> =>
    eventually(
      () => {
        const { status } = api.get(claims, { namespace: 'default', name }) as { status?: { phase?: string } };
        assert.equal(status?.phase, 'Bound');
      },
      { hopeless },
    );
  api.create(classes, { metadata: { name: 'nfs' }, provisioner, parameters: { onDelete: 'delete' } });
  createClaim('before');
  await isBound('before');
  await isReady(200);

  await context.test('tells the claims that wait, and is neither ready nor usable', async () => {
    folder.freeze();
    const uids = Array.from({ length: 8 }, (_, index) => createClaim(`hung-${index}`));
    for (const uid of uids) {
      const text = await eventually(() => eventMessage(api, uid, 'ProvisioningFailed'), { hopeless });
      assert.match(text, silent);
    }
    await isReady(500);
    assert.equal((await get('/healthz')).status, 200, 'it still leads, and need not be restarted');
    assert.match(await (await get('/metrics')).text(), /nfs_subdir_share_usable 0/);
  });

  await context.test('is used again as soon as it answers', async () => {
    folder.thaw();
    for (let index = 0; index < 8; index++) await isBound(`hung-${index}`);
    await isReady(200);
    assert.equal(readdirSync(folder.path).length, 10, 'nine volumes and the identity');
  });

  await context.test('does not hold up the end', async () => {
    folder.freeze();
    api.delete(claims, { namespace: 'default', name: 'before' });
    createClaim('last');
    await eventually(() => assert.match(program.log(), /claim=default\/last.*does not respond/), { hopeless });
    process.kill(program.pid, 'SIGTERM');
    await eventually(() => assert.match(program.log(), /Calls of the file system hang.* SIGKILL/), { hopeless });
    assert.match(program.log(), /Lease released/);
    folder.thaw(); // unlike one of NFS, a call that waits for a frozen disk cannot be killed
    assert.equal(await program.ending(), 'signal SIGKILL');
  });
});
