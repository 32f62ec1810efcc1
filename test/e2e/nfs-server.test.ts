/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** The NFS provisioner with the real ganesha, and clients that go through NFS. */
import assert from 'node:assert/strict';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { findNfsPrograms } from '../support/nfs/nfs-programs.ts';
import { isThere, NfsScene } from '../support/nfs/nfs-scene.ts';

const programs = await findNfsPrograms();

describe('nfs-provisioner with a real ganesha', { skip: programs.missing ?? false }, () => {
  let scene: NfsScene;

  before(async () => {
    scene = await NfsScene.make(programs);
    await scene.start();
  });
  afterEach(async (context) => {
    if ('passed' in context && !context.passed) console.error(await scene.rig.log());
  });
  after(() => scene[Symbol.asyncDispose]());

  test('makes an exported directory for a claim, and removes both with it', async () => {
    const { rig } = scene;
    const claim = await scene.createClaim(await scene.createClass({}, { mountOptions: ['vers=4.1', 'nolock'] }));
    const volume = await scene.bound(claim);
    const directory = scene.directory(claim);
    assert.partialDeepStrictEqual(volume.spec, {
      nfs: { server: '127.0.0.1', path: directory },
      mountOptions: ['vers=4.1', 'nolock'],
      capacity: { storage: '1Mi' },
      accessModes: ['ReadWriteMany'],
      persistentVolumeReclaimPolicy: 'Delete',
    });
    assert.ok(volume.spec?.nfs?.readOnly !== true);
    assert.equal((await stat(directory)).mode & 0o7777, 0o2777);
    const { annotations = {} } = volume.metadata ?? {};
    assert.ok((await scene.config()).includes(annotations['EXPORT_block'] ?? 'none'));
    assert.equal(annotations['Export_Id'], '1');
    assert.equal(annotations['Provisioner_Id'], await readFile(join(rig.exports, 'nfs-provisioner.identity'), 'utf8'));
    assert.deepEqual([annotations['Project_block'], annotations['Project_Id']], ['', '0']);
    assert.equal(annotations['kubernetes.io/createdby'], 'nfs-dynamic-provisioner');

    await rig.write(join(directory, 'letter'), 'through NFS');
    assert.equal(await readFile(join(directory, 'letter'), 'utf8'), 'through NFS');
    await writeFile(join(directory, 'answer'), 'from the disk');
    assert.equal(await rig.read(join(directory, 'answer')), 'from the disk');

    await scene.deleteClaim(claim);
    await scene.gone(volume);
    assert.equal(await isThere(directory), false);
    await assert.rejects(rig.list(directory));
    assert.ok(!(await scene.config()).includes(directory));
  });

  test('gives a volume to a group alone, which pods get as a supplemental group', async () => {
    const claim = await scene.createClaim(await scene.createClass({ gid: '1001' }));
    const volume = await scene.bound(claim);
    const directory = scene.directory(claim);
    const { mode, gid } = await stat(directory);
    assert.deepEqual([mode & 0o7777, gid], [0o2071, 1001]);
    assert.equal(volume.metadata?.annotations?.['pv.beta.kubernetes.io/gid'], '1001');
    const file = join(directory, 'minutes');
    await assert.rejects(scene.rig.write(file, 'from outside', { uid: 1000, gid: 1000 }));
    await scene.rig.write(file, 'of a member', { uid: 1000, gid: 1001 });
    assert.equal((await stat(file)).gid, 1001);
  });

  test('gives each volume of a class with a range a group of its own', async () => {
    const storageClass = await scene.createClass({ gidMin: '3000', gidMax: '3001' });
    const claims = [await scene.createClaim(storageClass), await scene.createClaim(storageClass)];
    for (const claim of claims) await scene.bound(claim);
    const gids = await Promise.all(claims.map(async (claim) => (await stat(scene.directory(claim))).gid));
    assert.deepEqual(gids.sort(), [3000, 3001]);
    const third = await scene.createClaim(storageClass);
    await scene.event(third, /all 2 group ids from 3000 to 3001 are taken/);
    assert.equal(await isThere(scene.directory(third)), false);
    await scene.deleteClaim(third);
  });

  test('treats root of a client as nobody where the class says so', async () => {
    const claim = await scene.createClaim(await scene.createClass({ rootSquash: 'true' }));
    const volume = await scene.bound(claim);
    assert.match(volume.metadata?.annotations?.['EXPORT_block'] ?? '', /\tSquash = root_id_squash;\n/);
    const file = join(scene.directory(claim), 'of-root');
    await scene.rig.write(file, 'root', { uid: 0, gid: 0 });
    assert.equal((await stat(file)).uid, 4_294_967_294);
  });

  test('takes over the directory of an attempt that was cut short', async () => {
    const storageClass = await scene.createClass({}, { volumeBindingMode: 'WaitForFirstConsumer' });
    const { name, uid } = await scene.createClaim(storageClass);
    await mkdir(scene.directory({ name, uid }), { mode: 0o700 });
    await scene.admin.core.patchNamespacedPersistentVolumeClaim({
      name,
      namespace: scene.namespace,
      body: [{ op: 'add', path: '/metadata/annotations', value: { 'volume.kubernetes.io/selected-node': 'any' } }],
    });
    const volume = await scene.bound({ name, uid });
    assert.equal(volume.spec?.nfs?.path, scene.directory({ name, uid }));
    assert.equal((await stat(scene.directory({ name, uid }))).mode & 0o7777, 0o2777);
    await scene.rig.write(join(scene.directory({ name, uid }), 'file'), 'works');
  });

  test('leaves a directory alone that somebody else put there', async () => {
    const storageClass = await scene.createClass({}, { volumeBindingMode: 'WaitForFirstConsumer' });
    const claim = await scene.createClaim(storageClass);
    await mkdir(scene.directory(claim));
    await writeFile(join(scene.directory(claim), 'precious'), 'data');
    await scene.admin.core.patchNamespacedPersistentVolumeClaim({
      name: claim.name,
      namespace: scene.namespace,
      body: [{ op: 'add', path: '/metadata/annotations', value: { 'volume.kubernetes.io/selected-node': 'any' } }],
    });
    await scene.event(claim, /error creating directory for volume: the path already exists/);
    await scene.deleteClaim(claim);
    assert.equal(await readFile(join(scene.directory(claim), 'precious'), 'utf8'), 'data');
    assert.ok(!(await scene.config()).includes(scene.directory(claim)));
  });

  test('leaves volumes alone that another provisioner of the same name has', async () => {
    const claim = await scene.createClaim(await scene.createClass());
    const { metadata } = await scene.bound(claim);
    const name = metadata?.name ?? '';
    const own = metadata?.annotations?.['Provisioner_Id'] ?? '';
    await annotate(name, { Provisioner_Id: 'another' });
    await scene.deleteClaim(claim);
    await scene.waitFor(() =>
      assert.match(scene.program.log(), /Deletion ignored .*didn't provision volume .* and so can't delete it/),
    );
    assert.ok(await isThere(scene.directory(claim)));
    await annotate(name, { Provisioner_Id: null });
    const uid = metadata?.uid ?? '';
    await scene.event({ uid }, /PV doesn't have an annotation Provisioner_Id/, 'default');
    assert.ok(await isThere(scene.directory(claim)));
    await annotate(name, { Provisioner_Id: own });
    await scene.gone({ metadata: { name } });
    assert.equal(await isThere(scene.directory(claim)), false);
  });

  test('keeps a directory of which another PersistentVolume has a part, and says so, until that one is gone', async () => {
    const claim = await scene.createClaim(await scene.createClass());
    const volume = await scene.bound(claim);
    const directory = scene.directory(claim);
    await mkdir(join(directory, 'part'));
    await writeFile(join(directory, 'part/file'), 'of somebody');
    const name = `static-${claim.uid}`;
    await scene.admin.core.createPersistentVolume({
      body: {
        metadata: { name },
        spec: {
          nfs: { server: 'nfs.example.com', path: `${directory}/part/` },
          capacity: { storage: '1Mi' },
          accessModes: ['ReadWriteMany'],
          persistentVolumeReclaimPolicy: 'Retain',
        },
      },
    });
    await scene.deleteClaim(claim);
    await scene.event(
      { uid: volume.metadata?.uid ?? '' },
      new RegExp(`${name}, which is not to be deleted`),
      'default',
    );
    assert.equal(await scene.rig.read(join(directory, 'part/file')), 'of somebody');
    await scene.admin.core.deletePersistentVolume({ name });
    await scene.gone(volume);
    assert.equal(await isThere(directory), false);
  });

  test('has an audit that finds what a retained volume leaves, and removes first its export and then its data', async () => {
    const claim = await scene.createClaim(await scene.createClass({}, { reclaimPolicy: 'Retain' }));
    const volume = await scene.bound(claim);
    const directory = scene.directory(claim);
    await scene.deleteClaim(claim);
    await scene.admin.core.deletePersistentVolume({ name: volume.metadata?.name ?? '' });
    await scene.gone(volume);
    await scene.bound(await scene.createClaim(await scene.createClass())); // so that the cluster is known to be the right one
    const stray = join(scene.rig.exports, 'pvc-stray');
    await mkdir(stray);
    const retained = await scene.audit('--delete', basename(directory), '--yes');
    const states = retained.findings.filter(({ detail, id }) => `${id} ${detail}`.includes(basename(directory)));
    assert.deepEqual(states.map(({ state }) => state).sort(), ['export', 'unclaimed']);
    assert.equal(retained.deletions[0]?.result, 'refused');
    const [, exportId = ''] = /--delete (export-\d+)$/.exec(retained.deletions[0].detail) ?? [];
    assert.ok(await isThere(directory));
    assert.deepEqual(retained.incomplete, []);
    const unexported = await scene.audit('--delete', exportId, '--yes');
    assert.deepEqual(
      unexported.deletions.map(({ result }) => result),
      ['deleted'],
      unexported.deletions[0]?.detail,
    );
    assert.ok(!(await scene.config()).includes(directory));
    await assert.rejects(scene.rig.list(directory));
    assert.ok(await isThere(directory), 'the data stays');
    const removed = await scene.audit('--delete', basename(directory), '--yes');
    assert.deepEqual(
      removed.deletions.map(({ result }) => result),
      ['deleted'],
      removed.deletions[0]?.detail,
    );
    assert.equal(await isThere(directory), false);
    const { deletions } = await scene.audit('--delete', 'pvc-stray', '--yes');
    assert.deepEqual(deletions, [{ volumeId: 'pvc-stray', result: 'deleted', detail: 'the directory is removed' }]);
    assert.equal(await isThere(stray), false);
  });

  test('never touches what is no volume, whatever a PersistentVolume is called', async () => {
    const claim = await scene.createClaim(await scene.createClass());
    const { metadata, spec } = await scene.bound(claim);
    const forged = await scene.admin.core.createPersistentVolume({
      body: {
        metadata: {
          name: 'vfs.conf',
          annotations: { ...metadata?.annotations, 'pv.kubernetes.io/provisioned-by': scene.provisioner },
        },
        spec: {
          nfs: { server: spec!.nfs!.server, path: '/export/vfs.conf' }, // that of another volume would be kept for it
          capacity: spec!.capacity!,
          accessModes: spec!.accessModes!,
          storageClassName: spec!.storageClassName!,
          persistentVolumeReclaimPolicy: 'Delete',
          claimRef: { namespace: scene.namespace, name: 'gone', uid: '0a3b1d5e-0000-4000-8000-000000000000' },
        },
      },
    });
    await scene.event(
      { uid: forged.metadata?.uid ?? '' },
      /"vfs.conf" is not the name of a volume that was provisioned here/,
      'default',
    );
    assert.match(await scene.config(), /NFS_CORE_PARAM/);
    await scene.admin.core.deletePersistentVolume({ name: 'vfs.conf' });
    assert.deepEqual(await scene.rig.list(scene.directory(claim)), []);
  });

  test('leads on the Endpoints of the original with its rights alone, and provisions', async () => {
    const { namespace, provisioner } = scene;
    const kubeconfig = await scene.accountKubeconfig(originalRights(namespace), 'original');
    await scene.program.stop();
    await scene.start(['-leader-elect=true'], { kubeconfig });
    const claim = await scene.createClaim(await scene.createClass());
    const volume = await scene.bound(claim);
    const lock = { name: provisioner.replace('/', '-'), namespace: 'default' };
    const { metadata } = await scene.admin.core.readNamespacedEndpoints(lock);
    assert.match(metadata?.annotations?.['control-plane.alpha.kubernetes.io/leader'] ?? '', /"holderIdentity":"[^"]+"/);
    await scene.deleteClaim(claim);
    await scene.gone(volume);
    await scene.program.stop();
    await scene.admin.core.deleteNamespacedEndpoints(lock);
    await scene.start();
  });

  for (const { title, parameters = {}, claim = {}, message } of [
    {
      title: 'an unknown parameter',
      parameters: { foo: 'bar' },
      message: /error validating options for volume: invalid parameter: "foo"/,
    },
    {
      title: 'a group id of 0',
      parameters: { gid: '0' },
      message: /invalid value for parameter gid: 0. valid values are/,
    },
    { title: 'a squash that is no boolean', parameters: { rootSquash: 'asdf' }, message: /parameter rootSquash: asdf/ },
    { title: 'a claim with a selector', claim: { selector: {} }, message: /claim.Spec.Selector is not supported/ },
    {
      title: 'a claim for more than there is',
      claim: { storage: '1Ei' },
      message: /insufficient available space \d+ bytes to satisfy claim for 1152921504606846976 bytes/,
    },
    {
      title: 'a claim for a block device',
      claim: { volumeMode: 'Block' },
      message: /does not support block volume provisioning/,
    },
    {
      title: 'a claim with a source',
      claim: { dataSource: { kind: 'PersistentVolumeClaim', name: 'another' } },
      message: /claim.Spec.DataSource is not supported/,
    },
  ] as { title: string; parameters?: Record<string, string>; claim?: object; message: RegExp }[]) {
    test(`refuses ${title}, and makes nothing`, async () => {
      const refused = await scene.createClaim(await scene.createClass(parameters), claim);
      await scene.event(refused, message);
      assert.equal(await isThere(scene.directory(refused)), false);
      await scene.deleteClaim(refused);
    });
  }

  async function annotate(name: string, annotations: Record<string, string | null>): Promise<void> {
    const { admin } = scene;
    const { metadata } = await admin.core.readPersistentVolume({ name });
    const wanted = Object.entries({ ...metadata?.annotations, ...annotations }).filter(([, value]) => value !== null);
    const value = Object.fromEntries(wanted);
    await admin.core.patchPersistentVolume({ name, body: [{ op: 'add', path: '/metadata/annotations', value }] });
  }
});

/** What the manifests of the original give its account, in the namespace of the lock. */
const originalRights = (namespace: string): string => `
apiVersion: v1
kind: ServiceAccount
metadata: { name: original, namespace: ${namespace} }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: ${namespace} }
rules:
  - { apiGroups: [''], resources: [persistentvolumes], verbs: [get, list, watch, create, delete] }
  - { apiGroups: [''], resources: [persistentvolumeclaims], verbs: [get, list, watch, update] }
  - { apiGroups: [storage.k8s.io], resources: [storageclasses], verbs: [get, list, watch] }
  - { apiGroups: [''], resources: [events], verbs: [create, update, patch] }
  - { apiGroups: [''], resources: [services, endpoints], verbs: [get] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: ${namespace} }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ${namespace} }
subjects: [{ kind: ServiceAccount, name: original, namespace: ${namespace} }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: ${namespace}, namespace: default }
rules: [{ apiGroups: [''], resources: [endpoints], verbs: [get, list, watch, create, update, patch] }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: ${namespace}, namespace: default }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: ${namespace} }
subjects: [{ kind: ServiceAccount, name: original, namespace: ${namespace} }]
`;
