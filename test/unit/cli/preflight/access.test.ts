import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Readable } from 'node:stream';
import { Access, isSameNamespace } from '../../../../src/cli/preflight/access.ts';
import { readManifests } from '../../../../src/cli/preflight/read-manifests.ts';
import { binding, type Json, role, rule } from './driver-manifests.ts';

async function accessOf(objects: readonly Json[], namespace: string | undefined = 'storage'): Promise<Access> {
  const text = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
  const { manifests } = await readManifests(['-'], { recursive: false, stdin: Readable.from([Buffer.from(text)]) });
  return new Access(manifests, { name: 'driver', namespace });
}

const volumes = { group: '', plural: 'persistentvolumes', verb: 'list', namespace: undefined };
const leasesIn = (name: string) => ({
  group: 'coordination.k8s.io',
  plural: 'leases',
  verb: 'update',
  namespace: { name },
});
const leases = rule('coordination.k8s.io', 'leases', 'update');
const subject = (more: Json): Json => ({ subjects: [more] });

describe('an account', () => {
  for (const { name, objects, right = leasesIn('storage'), want } of [
    {
      name: 'has what a role of its namespace grants',
      objects: [role('Role', 'r', [leases]), binding('RoleBinding', 'Role/r')],
      want: 'granted',
    },
    {
      name: 'has it there alone',
      objects: [role('Role', 'r', [leases]), binding('RoleBinding', 'Role/r')],
      right: leasesIn('other'),
      want: 'missing',
    },
    {
      name: 'has it everywhere by a binding of the cluster',
      objects: [role('ClusterRole', 'r', [leases]), binding('ClusterRoleBinding', 'ClusterRole/r')],
      right: leasesIn('other'),
      want: 'granted',
    },
    {
      name: 'has a role of the cluster in the namespace of its binding',
      objects: [
        role('ClusterRole', 'r', [rule('', 'persistentvolumes', 'list')]),
        binding('RoleBinding', 'ClusterRole/r'),
      ],
      right: volumes,
      want: 'missing',
    },
    {
      name: 'has what asterisks stand for',
      objects: [role('ClusterRole', 'r', [rule('*', '*', '*')]), binding('ClusterRoleBinding', 'ClusterRole/r')],
      right: volumes,
      want: 'granted',
    },
    {
      name: 'does not have a subresource for the resource',
      objects: [
        role('ClusterRole', 'r', [rule('', 'persistentvolumes/status', 'list')]),
        binding('ClusterRoleBinding', 'ClusterRole/r'),
      ],
      right: volumes,
      want: 'missing',
    },
    {
      name: 'has for some names what is granted for them',
      objects: [role('Role', 'r', [{ ...leases, resourceNames: ['a'] }]), binding('RoleBinding', 'Role/r')],
      want: 'named',
    },
    {
      name: 'has all as cluster-admin, which is in no manifest',
      objects: [binding('ClusterRoleBinding', 'ClusterRole/cluster-admin')],
      right: volumes,
      want: 'granted',
    },
    {
      name: 'may have it by a role that is not there',
      objects: [binding('ClusterRoleBinding', 'ClusterRole/elsewhere')],
      right: volumes,
      want: 'unknown',
    },
    {
      name: 'has what the group of all accounts has',
      objects: [
        role('ClusterRole', 'r', [leases]),
        binding(
          'ClusterRoleBinding',
          'ClusterRole/r',
          subject({ kind: 'Group', name: 'system:serviceaccounts:storage' }),
        ),
      ],
      want: 'granted',
    },
    {
      name: 'has what it has by its name as a user',
      objects: [
        role('ClusterRole', 'r', [leases]),
        binding(
          'ClusterRoleBinding',
          'ClusterRole/r',
          subject({ kind: 'User', name: 'system:serviceaccount:storage:driver' }),
        ),
      ],
      want: 'granted',
    },
    {
      name: 'does not have what one of the same name elsewhere has',
      objects: [
        role('ClusterRole', 'r', [leases]),
        binding(
          'ClusterRoleBinding',
          'ClusterRole/r',
          subject({ kind: 'ServiceAccount', name: 'driver', namespace: 'other' }),
        ),
      ],
      want: 'missing',
    },
    {
      name: 'has the parts of an aggregated role',
      objects: [
        role('ClusterRole', 'r', [], {
          aggregationRule: {
            clusterRoleSelectors: [
              { matchLabels: { a: 'b' } },
              { matchExpressions: [{ key: 'c', operator: 'Exists' }] },
            ],
          },
        }),
        { ...role('ClusterRole', 'part', [leases]), metadata: { name: 'part', labels: { c: '' } } },
        binding('ClusterRoleBinding', 'ClusterRole/r'),
      ],
      want: 'granted',
    },
    {
      name: 'may have it by an aggregated role whose parts are not there',
      objects: [
        role('ClusterRole', 'r', [], { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] } }),
        binding('ClusterRoleBinding', 'ClusterRole/r'),
      ],
      want: 'unknown',
    },
  ]) {
    test(name, async () => {
      assert.equal((await accessOf(objects)).answer(right), want);
    });
  }

  test('of a namespace that no manifest names has the bindings of its name', async () => {
    const access = await accessOf([role('Role', 'r', [leases]), binding('RoleBinding', 'Role/r')], undefined);
    assert.equal(access.answer(leasesIn('storage')), 'granted');
  });

  test('that no binding names is not bound', async () => {
    assert.equal((await accessOf([role('Role', 'r', [leases])])).isBound, false);
  });
});

for (const [one, other, isSame] of [
  ['a', 'a', true],
  ['a', 'b', false],
  ['a', undefined, true],
  [undefined, 'b', true],
] as const) {
  test(`a namespace ${one ?? 'without a name'} and one ${other ?? 'without a name'} are ${isSame ? '' : 'not '}the same`, () => {
    assert.equal(isSameNamespace(one, other), isSame);
  });
}
