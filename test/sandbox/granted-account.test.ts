/** What a sandbox lets the account of a manifest do. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import type { AccessRequest } from '../../sandbox/api/authorization.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { connect, KubeClient, persistentVolumeClaims, persistentVolumes, storageClasses } from '../../src/index.ts';

const role = (kind: 'ClusterRole' | 'Role', name: string, namespace?: string): string => `
apiVersion: rbac.authorization.k8s.io/v1
kind: ${kind}
metadata: {name: ${name}${namespace === undefined ? '' : `, namespace: ${namespace}`}}
rules:
  - {apiGroups: [''], resources: [persistentvolumes, persistentvolumeclaims], verbs: [list]}
`;
const binding = (kind: 'ClusterRole' | 'Role', name: string, subject: string): string => `
apiVersion: rbac.authorization.k8s.io/v1
kind: ${kind}Binding
metadata: {name: ${name}-of-${subject.replace(/\W+/g, '-').toLowerCase()}end}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ${kind}, name: ${name}}
subjects: [{${subject}}]
`;
const account = (namespace: string, name: string): string =>
  `kind: ServiceAccount, name: ${name}, namespace: ${namespace}`;
const deployment = 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 1}\n';

async function written(t: TestContext, ...documents: string[]): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'manifest-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const file = path.join(folder, 'rbac.yaml');
  await writeFile(file, documents.join('\n---\n'));
  return file;
}

/** A sandbox with the manifest, and a client with its rights. */
async function opened(t: TestContext, ...documents: string[]) {
  const refused: AccessRequest[] = [];
  const rbacManifest = await written(t, ...documents);
  const sandbox = await Sandbox.start({ nodes: 0, rbacManifest, onForbidden: (request) => void refused.push(request) });
  t.after(() => sandbox.close());
  const transport = connect({ kubeconfig: sandbox.accountKubeconfig });
  t.after(() => transport[Symbol.asyncDispose]());
  return { sandbox, client: new KubeClient({ transport, fieldManager: 'test' }), refused };
}

describe('the account of a manifest', () => {
  test('has the rights of its roles and no other, and what it is refused is reported', async (t) => {
    const bound = [role('ClusterRole', 'a'), binding('ClusterRole', 'a', account('storage', 'mine'))];
    const { client, refused, sandbox } = await opened(t, deployment, ...bound, '# nothing', role('Role', 'unbound'));
    assert.deepEqual(await client.list(persistentVolumes), []);
    assert.equal(refused.length, 0);
    await assert.rejects(client.list(storageClasses), /User "system:serviceaccount:storage:mine" cannot list/);
    await assert.rejects(client.create(persistentVolumes, { metadata: { name: 'a' }, spec: {} } as object as never));
    const [first, second] = refused;
    assert.deepEqual([first?.verb, first?.group, first?.resource], ['list', 'storage.k8s.io', 'storageclasses']);
    assert.deepEqual([second?.verb, second?.group, second?.resource], ['create', '', 'persistentvolumes']);
    const deployments = { group: 'apps', version: 'v1', plural: 'deployments' };
    assert.deepEqual(sandbox.api.client('system:admin').list(deployments), []);
  });

  test('is one of its own where there are roles alone', async (t) => {
    const { client } = await opened(t, role('ClusterRole', 'a'), role('Role', 'b'));
    assert.deepEqual(await client.list(persistentVolumes), []);
    await assert.rejects(client.list(storageClasses), /User "system:serviceaccount:default:provisioner" cannot list/);
  });

  test('has the rights of a Role in its namespace alone', async (t) => {
    const roles = [role('Role', 'a', 'storage'), 'apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: mine}'];
    const { client } = await opened(t, ...roles);
    assert.deepEqual(await client.list(persistentVolumeClaims, { namespace: 'storage' }), []);
    await assert.rejects(client.list(persistentVolumeClaims, { namespace: 'default' }), /default:mine" cannot list/);
    await assert.rejects(client.list(persistentVolumeClaims), /cannot list/);
  });

  test('loses a right that the manifest no longer has, also where objects are kept', async (t) => {
    const bound = binding('ClusterRole', 'a', account('default', 'mine'));
    const rbacManifest = await written(t, role('ClusterRole', 'a'), bound);
    const api = { persistence: { path: path.join(path.dirname(rbacManifest), 'data') } };
    await (await Sandbox.start({ nodes: 0, rbacManifest, api })).close();
    await writeFile(rbacManifest, `${role('ClusterRole', 'a').replace(', persistentvolumeclaims', '')}---${bound}`);
    await using sandbox = await Sandbox.start({ nodes: 0, rbacManifest, api });
    await using transport = connect({ kubeconfig: sandbox.accountKubeconfig });
    const client = new KubeClient({ transport, fieldManager: 'test' });
    assert.deepEqual(await client.list(persistentVolumes), []);
    await assert.rejects(client.list(persistentVolumeClaims), /cannot list/);
  });

  for (const { what, documents, says } of [
    { what: 'grants nothing', documents: [deployment], says: /rbac\.yaml: it has no Role, ClusterRole or binding/ },
    {
      what: 'has several accounts',
      documents: [
        role('ClusterRole', 'a'),
        binding('ClusterRole', 'a', account('x', 'a')),
        binding('ClusterRole', 'a', account('x', 'b')),
      ],
      says: /rbac\.yaml: its bindings are for several service accounts: x\/a, x\/b/,
    },
    {
      what: 'binds users alone',
      documents: [role('ClusterRole', 'a'), binding('ClusterRole', 'a', 'kind: User, name: a')],
      says: /rbac\.yaml: none of its bindings is for a service account/,
    },
    {
      what: 'does not say where the account is',
      documents: [role('ClusterRole', 'a'), binding('ClusterRole', 'a', 'kind: ServiceAccount, name: a')],
      says: /rbac\.yaml: a binding names the service account a without its namespace/,
    },
    { what: 'is no YAML', documents: ['{{ .Values.name }}: ['], says: /rbac\.yaml: / },
  ]) {
    test(`a manifest that ${what} is an error that names the file`, async (t) => {
      const rbacManifest = await written(t, ...documents);
      await assert.rejects(Sandbox.start({ nodes: 0, rbacManifest }), says);
    });
  }
});
