/** nfs-subdir-external-provisioner on an export that is mounted read-only for a while. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { Sandbox } from '../../../sandbox/sandbox.ts';
import { freePort } from '../../support/free-ports.ts';
import { eventMessage } from '../../support/event-message.ts';
import { eventually } from '../../support/eventually.ts';
import { FreezableFolder } from '../../support/frozen-folder.ts';
import { startNfsSubdir } from '../../support/nfs-subdir-process.ts';

const provisioner = 'k8s-sigs.io/nfs-subdir-external-provisioner';
const claims = { group: '', version: 'v1', plural: 'persistentvolumeclaims' };
const volumes = { group: '', version: 'v1', plural: 'persistentvolumes' };
const classes = { group: 'storage.k8s.io', version: 'v1', plural: 'storageclasses' };
const export_ = FreezableFolder.mount();
const skip = export_ === undefined && 'needs root and loop devices';

test(
  'an export that is mounted read-only keeps all volumes, and is used again once it can be written',
  { skip },
  async () => {
    const sandbox = await Sandbox.start({ nodes: 0 });
    const api = sandbox.api.client('test');
    using folder = export_!;
    await using _sandbox = { [Symbol.asyncDispose]: () => sandbox.close() };
    const port = await freePort();
    const start = () =>
      startNfsSubdir({
        NFS_SERVER: 'srv',
        NFS_PATH: '/exp',
        PROVISIONER_NAME: provisioner,
        MOUNT_POINT: folder.path,
        KUBECONFIG: sandbox.kubeconfig,
        HTTP_ENDPOINT: `127.0.0.1:${port}`,
      });
    let program = await start();
    await using _program = { [Symbol.asyncDispose]: () => program.stop('SIGKILL') };
    const watched = <T>(check: () => T | Promise<T>): Promise<T> =>
      eventually(check, { hopeless: () => (program.running() ? undefined : program.log()) });
    const get = async (page: string) => await fetch(`http://127.0.0.1:${port}${page}`);
    const createClaim = (name: string): string =>
      api.create(claims, {
        metadata: { name, namespace: 'default' },
        spec: { storageClassName: 'nfs', accessModes: ['ReadWriteMany'], resources: { requests: { storage: '1Gi' } } },
      }).metadata.uid ?? '';
    const bound = (name: string): Promise<string> =>
      watched(() => {
        const claim = api.get(claims, { namespace: 'default', name });
        const { status, spec } = claim as unknown as { status?: { phase?: string }; spec: { volumeName: string } };
        assert.equal(status?.phase, 'Bound');
        return spec.volumeName;
      });
    const message = (uid: string, reason: string): Promise<string> => watched(() => eventMessage(api, uid, reason));
    const directories = (): string[] => readdirSync(folder.path).filter((name) => name.startsWith('default-'));
    const file = (claim: string, volume: string): string =>
      path.join(folder.path, `default-${claim}-${volume}`, 'file');
    const deleteClaim = (name: string): void => {
      api.delete(claims, { namespace: 'default', name });
    };
    api.create(classes, { metadata: { name: 'nfs' }, provisioner, parameters: { onDelete: 'delete' } });
    for (const name of ['doomed', 'kept']) {
      createClaim(name);
      writeFileSync(file(name, await bound(name)), 'data');
    }
    const [doomed, kept] = [await bound('doomed'), await bound('kept')];

    await folder.remount('ro');
    const waiting = createClaim('waiting');
    assert.match(await message(waiting, 'ProvisioningFailed'), /read-only file system|is mounted read-only/);
    deleteClaim('doomed');
    const { uid = '' } = api.get(volumes, { name: doomed })?.metadata ?? {};
    assert.match(await message(uid, 'VolumeFailedDelete'), /read-only file system|is mounted read-only/);
    await watched(async () => assert.match(await (await get('/readyz')).text(), /is mounted read-only/));
    assert.equal((await get('/healthz')).status, 200);
    assert.match(await (await get('/metrics')).text(), /nfs_subdir_share_usable 0/);
    assert.equal(directories().length, 2);
    assert.equal(readFileSync(file('doomed', doomed), 'utf8'), 'data');

    await program.stop('SIGTERM');
    assert.equal(await program.ending(), 'exit code 0');
    program = await start();
    await watched(() => assert.match(program.log(), /The export cannot be used.* is mounted read-only/));
    assert.ok(api.get(volumes, { name: doomed }), 'a process that starts concludes nothing either');

    await folder.remount('rw');
    await bound('waiting');
    await watched(() => assert.equal(api.get(volumes, { name: doomed }), undefined));
    assert.equal(readFileSync(file('kept', kept), 'utf8'), 'data');
    assert.equal(directories().length, 2);
    await watched(async () => assert.equal((await get('/readyz')).status, 200));
  },
);
