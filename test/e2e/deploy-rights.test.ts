/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** Whose rights an install of deploy/ touches, as the real API server sees it. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { ApiException, AuthorizationV1Api } from '@kubernetes/client-node';
import { connectAdmin, loadKubeconfig, type Admin } from '../support/admin.ts';
import type { Cluster } from '../support/cluster.ts';
import { startCluster } from '../support/start-cluster.ts';
import { eventually } from '../support/eventually.ts';
import { findKubectl, runKubectl } from '../support/kubectl.ts';
import { deployFolder, ownInstall } from './kustomization.ts';

const kubectl = await findKubectl();
const isReal = process.env['E2E_TARGET'] === 'kubernetes' && kubectl !== undefined;

/** Components of kinds that every cluster has. */
const components = (await readdir(join(deployFolder, 'components'))).filter((name) => name !== 'monitoring');

interface Right {
  verb: string;
  group?: string;
  resource: string;
  /** Only in the account's own namespace; cluster-wide if absent. */
  own?: true;
}

/** What an install with all components needs, one right of each role. */
const ownRights: readonly Right[] = [
  { verb: 'create', resource: 'persistentvolumes' },
  { verb: 'get', resource: 'secrets' },
  { verb: 'list', resource: 'nodes' },
  { verb: 'watch', group: 'storage.k8s.io', resource: 'csinodes' },
  { verb: 'watch', group: 'storage.k8s.io', resource: 'volumeattachments' },
  { verb: 'get', group: 'storage.k8s.io', resource: 'volumeattributesclasses' },
  { verb: 'update', group: 'snapshot.storage.k8s.io', resource: 'volumesnapshots' },
  { verb: 'list', group: 'gateway.networking.k8s.io', resource: 'referencegrants' },
  { verb: 'update', group: 'coordination.k8s.io', resource: 'leases', own: true },
  { verb: 'create', group: 'storage.k8s.io', resource: 'csistoragecapacities', own: true },
];

/** What the Go sidecar's manifest grants, in short. */
const publishedRights: readonly Right[] = [
  { verb: 'create', resource: 'persistentvolumes' },
  { verb: 'get', resource: 'nodes' },
  { verb: 'list', resource: 'events' },
  { verb: 'list', group: 'snapshot.storage.k8s.io', resource: 'volumesnapshotcontents' },
  { verb: 'delete', group: 'coordination.k8s.io', resource: 'leases', own: true },
];

const publishedNames = {
  clusterRole: 'external-provisioner-runner',
  clusterBinding: 'csi-provisioner-role',
  role: 'external-provisioner-cfg',
  binding: 'csi-provisioner-role-cfg',
} as const;

/** The tests delete some objects themselves, and a namespace may be gone by now. */
function ignoreMissing(error: unknown): void {
  if (!(error instanceof ApiException) || error.code !== 404) throw error;
}

describe('an install of deploy/', { skip: isReal ? false : 'needs the real control plane' }, () => {
  const id = `e2e-${randomBytes(4).toString('hex')}`;
  const [first, second, other] = [`${id}-first`, `${id}-second`, `${id}-other`] as const;
  const closers: (() => Promise<unknown>)[] = [];
  let cluster: Cluster;
  let admin: Admin;

  before(async () => {
    cluster = await startCluster();
    closers.push(() => cluster.stop());
    admin = connectAdmin(cluster.adminKubeconfig);
    for (const name of [first, second, other]) {
      await admin.core.createNamespace({ body: { metadata: { name } } });
      closers.push(() => admin.core.deleteNamespace({ name }));
    }
    await grantAsPublished(other);
  });
  after(async () => {
    for (const closer of closers.toReversed()) await closer().catch(ignoreMissing);
  });

  const run = (...args: string[]): Promise<string> =>
    runKubectl(kubectl ?? '', [`--kubeconfig=${cluster.adminKubeconfig}`, ...args]);

  /** Another driver's sidecar, with the names of the Go sidecar's manifest. */
  const grantAsPublished = async (namespace: string): Promise<void> => {
    const rules = (own: boolean) =>
      publishedRights
        .filter((right) => (right.own ?? false) === own)
        .map(({ verb, group = '', resource }) => ({ apiGroups: [group], resources: [resource], verbs: [verb] }));
    const subjects = [{ kind: 'ServiceAccount', name: 'csi-provisioner', namespace }];
    const [roles, apiGroup] = ['rbac.authorization.k8s.io/v1', 'rbac.authorization.k8s.io'] as const;
    const { clusterRole, clusterBinding, role, binding } = publishedNames;
    const bind = (kind: string, name: string) => ({ subjects, roleRef: { apiGroup, kind, name } });
    for (const object of [
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'csi-provisioner', namespace } },
      { apiVersion: roles, kind: 'ClusterRole', metadata: { name: clusterRole }, rules: rules(false) },
      { apiVersion: roles, kind: 'Role', metadata: { name: role, namespace }, rules: rules(true) },
      {
        apiVersion: roles,
        kind: 'ClusterRoleBinding',
        metadata: { name: clusterBinding },
        ...bind('ClusterRole', clusterRole),
      },
      { apiVersion: roles, kind: 'RoleBinding', metadata: { name: binding, namespace }, ...bind('Role', role) },
    ]) {
      await admin.objects.create(object);
      closers.push(() => admin.objects.delete(object));
    }
  };

  /** Has kubectl do something with a copy of deploy/overlays/production, as a user would. */
  const runOnCopy = async (args: readonly string[], namespace: string, ownNames = true): Promise<void> => {
    await using install = await ownInstall({ namespace, components, ownNames });
    await run(...args, '-k', install.folder);
  };
  const applyInto = (namespace: string): Promise<void> => runOnCopy(['apply'], namespace);
  const deleteFrom = (namespace: string): Promise<void> =>
    runOnCopy(['delete', '--wait=false', '--ignore-not-found'], namespace);

  /** Whether the sidecar's account of a namespace has a right; those of one namespace are asked for `where`. */
  const mayIn = async (
    account: string,
    { verb, group = '', resource, own }: Right,
    where = account,
  ): Promise<boolean> => {
    const api = loadKubeconfig(cluster.adminKubeconfig).makeApiClient(AuthorizationV1Api);
    const { status } = await api.createSubjectAccessReview({
      body: {
        spec: {
          user: `system:serviceaccount:${account}:csi-provisioner`,
          groups: ['system:serviceaccounts', `system:serviceaccounts:${account}`, 'system:authenticated'],
          resourceAttributes: { verb, group, resource, ...(own === true && { namespace: where }) },
        },
      },
    });
    return status?.allowed ?? false;
  };

  /** The API server's view of roles is a moment behind. */
  const keeps = async (account: string, rights: readonly Right[]): Promise<void> => {
    for (const right of rights) {
      await eventually(async () => {
        assert.ok(await mayIn(account, right), `${account}: ${right.verb} ${right.resource}`);
      });
    }
  };

  const allKeep = async (): Promise<void> => {
    await keeps(first, ownRights);
    await keeps(second, ownRights);
    await keeps(other, publishedRights);
  };

  test('beside another one, and beside the Go sidecar of another driver, leaves each its rights', async () => {
    await keeps(other, publishedRights);
    for (const namespace of [first, second]) {
      closers.push(() => deleteFrom(namespace));
      await applyInto(namespace);
    }
    await allKeep();
    for (const right of ownRights.filter(({ own }) => own)) {
      assert.equal(await mayIn(first, right, second), false, `${right.resource} of the other namespace`);
    }
    assert.equal(await mayIn(other, { verb: 'get', resource: 'secrets' }), false, 'nothing is granted to others');
  });

  test('without names of its own is refused, and takes nobody’s rights', async () => {
    const forgetful = `${id}-forgetful`;
    await admin.core.createNamespace({ body: { metadata: { name: forgetful } } });
    closers.push(() => admin.core.deleteNamespace({ name: forgetful }));
    await assert.rejects(runOnCopy(['apply'], forgetful, false), /csi-provisioner:%NAMESPACE.*may not contain '%'/);
    await allKeep();
    assert.equal(await mayIn(forgetful, { verb: 'create', resource: 'persistentvolumes' }), false);
  });

  test('for a change-over adds to the published roles, and takes nothing from who uses them', async () => {
    const added: Right = { verb: 'get', group: 'storage.k8s.io', resource: 'volumeattributesclasses' };
    assert.equal(await mayIn(other, added), false);
    await run('apply', '-k', join(deployFolder, 'overlays/change-over'));
    closers.push(() => run('delete', '--ignore-not-found', '-n', 'default', 'role', publishedNames.role));
    await keeps(other, [added]);
    await allKeep();
  });

  test('that is deleted leaves the others theirs', async () => {
    await deleteFrom(second);
    await eventually(async () => {
      assert.equal(await mayIn(second, { verb: 'create', resource: 'persistentvolumes' }), false);
    });
    await keeps(first, ownRights);
    await keeps(other, publishedRights);
  });
});
