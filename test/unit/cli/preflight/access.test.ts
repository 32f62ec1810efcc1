import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, test } from 'node:test';
import { printable } from '../../../../src/base/printable.ts';
import { Access, isSameNamespace } from '../../../../src/cli/preflight/access.ts';
import { ManifestError } from '../../../../src/cli/preflight/manifest.ts';
import { preflightText } from '../../../../src/cli/preflight/preflight-report.ts';
import { parseDocuments, readManifests } from '../../../../src/cli/preflight/read-manifests.ts';
import { access, binding, type Json, named, reportOf, role, rule, workload } from './driver-manifests.ts';

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

test('what is printed to be applied grants all that was missing', async () => {
  const few = access([rule('', 'persistentvolumeclaims', 'get list watch update')], []);
  const poor = workload({ args: ['--leader-election', '--strict-topology'] });
  const { sidecars } = await reportOf([poor, ...few]);
  const [before] = sidecars;
  assert.ok(before !== undefined);
  assert.ok(before.findings.some(({ level }) => level === 'must'));
  const granted = parseDocuments(before.grant, 'grant') as Json[];
  const [after] = (await reportOf([poor, ...few, ...granted])).sidecars;
  assert.deepEqual(after && named(after), ['note conditional-rights']);
  assert.equal(after?.grant, '');
});

/** An account of this name that has no rights, in a namespace of this name. */
function poorWorkload(name: string, namespace: string): Json {
  const { metadata, ...poor } = workload({ args: ['--leader-election'], pod: { serviceAccountName: name } });
  return { ...poor, metadata: { ...(metadata as Json), namespace } };
}

/** What the objects to be applied say of their account, and of the namespaces that they are in. */
async function grantedTo(name: string, namespace: string): Promise<Json[]> {
  const few = access([rule('', 'events', 'create')], []);
  const bound = few.map((each) => ({ ...each, subjects: [{ kind: 'ServiceAccount', name, namespace }] }));
  const { sidecars } = await reportOf([poorWorkload(name, namespace), ...bound]);
  return parseDocuments(sidecars[0]?.grant ?? '', 'grant') as Json[];
}

describe('a name of an account or namespace', () => {
  for (const name of ['123', '0x1f', '0o17', '1e3', 'true', 'null', 'yes', 'off', 'y', '2026-11-28']) {
    test(`stays a text where YAML has another meaning for it: ${name}`, async () => {
      const objects = await grantedTo(name, name);
      assert.ok(objects.length >= 4);
      for (const { kind, metadata, subjects } of objects) {
        if (String(kind).endsWith('Binding')) {
          assert.deepEqual(subjects, [{ kind: 'ServiceAccount', name, namespace: name }]);
        }
        if (String(kind).startsWith('Role')) assert.equal((metadata as Json)['namespace'], name);
      }
    });
  }

  const attack = 'driver\n  - kind: Group\n    name: system:authenticated\n    apiGroup: rbac.authorization.k8s.io';
  const noNames = [
    attack,
    'a\r\nb',
    'a\u2028b',
    'a\u0085b',
    '~',
    "it's",
    '"a"',
    '$reboot',
    '`reboot`',
    'a; reboot',
    'a b',
    '\u001b[2J',
    '\u202e',
    '<script>',
    '-a',
    'a: b',
    'a #b',
    '&a',
    '*a',
    '!!binary',
    '{a}',
    'a\0',
    'A',
  ];
  const says = (field: string, name: string) => (error: unknown) =>
    error instanceof ManifestError &&
    error.message.includes(`${field} must be the name of an object, not ${JSON.stringify(name)}`);

  for (const name of [...noNames, '$(reboot)']) {
    test(`is refused, with field and value, if no object can have it: ${printable(name)}`, async () => {
      await assert.rejects(grantedTo(name, 'storage'), says('spec.template.spec.serviceAccountName', name));
      await assert.rejects(grantedTo('driver', name), says('metadata.namespace', name));
    });
  }

  for (const name of noNames) {
    test(`is refused as the namespace of the Lease, if no namespace can have it: ${printable(name)}`, async () => {
      const args = ['--leader-election', `--leader-election-namespace=${name}`];
      const ofFlag = says('containers[0].args with --leader-election-namespace', name);
      await assert.rejects(reportOf([workload({ args })]), ofFlag);
      const env = [{ name: 'POD_NAMESPACE', value: name }];
      const ofVariable = says('containers[0].env with the name POD_NAMESPACE', name);
      await assert.rejects(reportOf([workload({ args: [], container: { env } })]), ofVariable);
    });
  }
});

test('names that are only shown neither break lines nor move the cursor', async () => {
  const shown = workload({ container: { name: 'a\u001b[2J\nb' }, image: 'x/csi-provisioner:v6.4.0\u009b' });
  shown['metadata'] = { name: 'x\n\u001b]0;y\u0007', namespace: 'storage' };
  const text = preflightText(await reportOf([shown, ...access()]), { colour: false });
  assert.doesNotMatch(text, /[^\P{Cc}\n]/u);
  assert.match(text, /container a\\u001b\[2J b/);
});
