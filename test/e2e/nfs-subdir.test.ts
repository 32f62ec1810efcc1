/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** nfs-subdir-external-provisioner on a cluster that gives it its rights and no more. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { type Admin, boundClaim, connectAdmin, assertVolumeGone, ifFound } from '../support/admin.ts';
import type { Cluster } from '../support/cluster.ts';
import { startCluster } from '../support/start-cluster.ts';
import { eventually } from '../support/eventually.ts';
import { startNfsSubdir } from '../support/nfs-subdir-process.ts';
import { refusedRights } from '../support/refused-rights.ts';
import type { StartedProcess } from '../support/started-process.ts';
import { deployFolder } from './kustomization.ts';

const provisioner = 'k8s-sigs.io/nfs-subdir-external-provisioner';
const lockName = 'k8s-sigs.io-nfs-subdir-external-provisioner';
const namespace = `e2e-${randomBytes(4).toString('hex')}`;
const account = 'nfs-client-provisioner';

/** What the manifests of the original grant: of locks the Endpoints alone, and no patch of volumes. */
const originalRights = `
apiVersion: v1
kind: ServiceAccount
metadata: { name: ${account}-original, namespace: default }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: ${account}-original }
rules:
  - { apiGroups: [''], resources: [nodes], verbs: [get, list, watch] }
  - { apiGroups: [''], resources: [persistentvolumes], verbs: [get, list, watch, create, delete] }
  - { apiGroups: [''], resources: [persistentvolumeclaims], verbs: [get, list, watch, update] }
  - { apiGroups: [storage.k8s.io], resources: [storageclasses], verbs: [get, list, watch] }
  - { apiGroups: [''], resources: [events], verbs: [create, update, patch] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: ${account}-original }
subjects: [{ kind: ServiceAccount, name: ${account}-original, namespace: default }]
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ${account}-original }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: ${account}-original, namespace: default }
rules:
  - { apiGroups: [''], resources: [endpoints], verbs: [get, list, watch, create, update, patch] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: ${account}-original, namespace: default }
subjects: [{ kind: ServiceAccount, name: ${account}-original, namespace: default }]
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: ${account}-original }
`;

describe('nfs-subdir-external-provisioner', () => {
  let cluster: Cluster;
  let admin: Admin;
  let folder: string;
  let program: StartedProcess;
  let serial = 0;

  before(async () => {
    cluster = await startCluster();
    admin = connectAdmin(cluster.adminKubeconfig);
    folder = await mkdtemp(join(tmpdir(), 'e2e-nfs-subdir-'));
    mkdirSync(join(folder, 'mount'));
    await admin.core.createNamespace({ body: { metadata: { name: namespace } } });
  });
  afterEach(async (context) => {
    await program.stop();
    if ('passed' in context && !context.passed) console.error(program.log(), cluster.log());
  });
  after(async () => {
    await ifFound(admin.core.deleteNamespace({ name: namespace }));
    await cluster.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const mounted = (...names: string[]): string => join(folder, 'mount', ...names);
  const start = async (rights: string, name: string): Promise<void> => {
    const kubeconfig = await cluster.accountKubeconfig(rights, { namespace: 'default', name });
    program = await startNfsSubdir({
      NFS_SERVER: 'srv',
      NFS_PATH: '/exp',
      PROVISIONER_NAME: provisioner,
      MOUNT_POINT: join(folder, 'mount'),
      KUBECONFIG: kubeconfig,
      POD_NAMESPACE: 'default',
    });
  };
  /** A claim becomes a directory with a file in it, and goes with the claim. @returns the name of the directory. */
  const cycle = async (parameters: Record<string, string>): Promise<string> => {
    const name = `c${++serial}`;
    const className = `${namespace}-${serial}`;
    await admin.storage.createStorageClass({
      body: { metadata: { name: className }, provisioner, parameters, mountOptions: ['vers=4.1', 'nolock'] },
    });
    await admin.core.createNamespacedPersistentVolumeClaim({
      namespace,
      body: {
        metadata: { name },
        spec: {
          storageClassName: className,
          accessModes: ['ReadWriteMany'],
          resources: { requests: { storage: '1Gi' } },
        },
      },
    });
    const hopeless = () => (program.running() ? undefined : program.log());
    const { volume } = await eventually(() => boundClaim(admin, namespace, name), { hopeless });
    const directory = volume.spec?.nfs?.path.replace('/exp/', '') ?? '';
    assert.deepEqual(volume.spec?.mountOptions, ['vers=4.1', 'nolock']);
    assert.deepEqual(volume.metadata?.finalizers, ['kubernetes.io/pv-protection'], 'no finalizer that needs a patch');
    writeFileSync(mounted(directory, 'file'), 'data');
    await admin.core.deleteNamespacedPersistentVolumeClaim({ name, namespace });
    await eventually(() => assertVolumeGone(admin, volume.metadata?.name ?? ''), { hopeless });
    await admin.storage.deleteStorageClass({ name: className });
    assert.ok(!existsSync(mounted(directory)));
    return directory;
  };

  test('works with exactly the rights of deploy/nfs-subdir', async () => {
    await start(await readFile(join(deployFolder, 'nfs-subdir/rbac.yaml'), 'utf8'), account);
    const archived = await cycle({});
    assert.equal(readFileSync(mounted(`archived-${archived}`, 'file'), 'utf8'), 'data');
    await cycle({ archiveOnDelete: 'false' });
    const lease = await admin.coordination.readNamespacedLease({ name: lockName, namespace: 'default' });
    assert.ok(lease.spec?.holderIdentity);
    await program.stop();
    assert.equal(await program.ending(), 'exit code 0');
    assert.deepEqual(refusedRights(program.log()), [], 'the rights suffice');
    assert.doesNotMatch(program.log(), /Not permitted/);
  });

  test('works with exactly the rights that the manifests of the original grant', async () => {
    await ifFound(admin.coordination.deleteNamespacedLease({ name: lockName, namespace: 'default' }));
    await start(originalRights, `${account}-original`);
    await cycle({ onDelete: 'delete', pathPattern: '${.PVC.namespace}/${.PVC.name}' });
    const endpoints = await admin.core.readNamespacedEndpoints({ name: lockName, namespace: 'default' });
    assert.ok(endpoints.metadata?.annotations?.['control-plane.alpha.kubernetes.io/leader']);
    assert.equal(
      await ifFound(admin.coordination.readNamespacedLease({ name: lockName, namespace: 'default' })),
      undefined,
    );
    assert.deepEqual(refusedRights(program.log()), [], 'nothing is refused');
    assert.equal(program.log().match(/Not permitted to use Leases/g)?.length, 1, 'it is said once');
    await program.stop();
    assert.equal(await program.ending(), 'exit code 0');
  });
});
