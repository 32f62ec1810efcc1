import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { printable } from '../../../../src/base/printable.ts';
import { ManifestError } from '../../../../src/cli/preflight/manifest.ts';
import { parseDocuments } from '../../../../src/cli/preflight/parse-documents.ts';
import { preflightText } from '../../../../src/cli/preflight/preflight-text.ts';
import { access, type Json, named, reportOf, rule, workload } from './driver-manifests.ts';

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
