import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { failureMeaning } from '../../../src/explain/causes/causes.ts';
import { walk } from '../../../src/explain/explanation.ts';

const account = 'system:serviceaccount:driver:csi';
const forbidden = (what: string): string => `is forbidden: User "${account}" cannot ${what}`;

describe('a permission that the provisioner lacks', () => {
  test('is named with its rule, and with the command that grants it in the whole cluster', () => {
    const text = `Error creating provisioned PV object for claim ns/a: persistentvolumes ${forbidden('create resource "persistentvolumes" in API group "" at the cluster scope')}. The volume is kept`;
    assert.deepEqual(failureMeaning(text), {
      cause: 'rejected',
      cure: `Add the rule {apiGroups: [""], resources: ["persistentvolumes"], verbs: ["create"]} to a ClusterRole of ${account}, such as by: kubectl create clusterrole csi-create-persistentvolumes --verb=create --resource=persistentvolumes && kubectl create clusterrolebinding csi-create-persistentvolumes --clusterrole=csi-create-persistentvolumes --serviceaccount=driver:csi`,
    });
  });

  test('is named with the command that grants it in one namespace', () => {
    const text = `error getting secret key in namespace ns: secrets "key" ${forbidden('get resource "secrets" in API group "" in the namespace "ns"')}`;
    const { cause, cure } = failureMeaning(text);
    assert.equal(cause, 'secret-missing');
    assert.match(cure, /^Whether the Secret exists is not known\. Add the rule .* to a Role in namespace ns of /);
    assert.match(cure, /kubectl create role csi-get-secrets --verb=get --resource=secrets -n ns && /);
  });

  test('is no missing snapshot', () => {
    const text = `error getting snapshot s from api server: volumesnapshots.snapshot.storage.k8s.io "s" ${forbidden('get resource "volumesnapshots" in API group "snapshot.storage.k8s.io" in the namespace "ns"')}`;
    const { cause, cure } = failureMeaning(text);
    assert.equal(cause, 'rejected');
    assert.match(cure, /--resource=volumesnapshots\.snapshot\.storage\.k8s\.io -n ns/);
  });

  test('is that of a driver where the driver says so', () => {
    const text = `rpc error: code = Internal desc = nodes ${forbidden('list resource "nodes" in API group "" at the cluster scope')}`;
    const { cause, cure } = failureMeaning(text);
    assert.equal(cause, 'driver-error');
    assert.match(cure, /verbs: \["list", "watch"\]/);
  });

  test('is granted to a user, too', () => {
    const text =
      'Error creating provisioned PV object for claim ns/a: persistentvolumes is forbidden: User "jane" cannot create resource "persistentvolumes" in API group "" at the cluster scope';
    assert.match(failureMeaning(text).cure, / --user=jane$/);
  });
});

test('what the reader may not read comes with the rules that allow it', () => {
  const details = [
    'the permission to list pods in namespace ns is missing',
    'whether a Pod is refused: the permission to get replicasets.apps in namespace ns is missing',
    'the permission to list pods in namespace ns is missing',
  ];
  const steps = details.map((detail, index) => ({
    step: `s${index}`,
    checks: [() => ({ state: 'unknown', detail }) as const],
  }));
  assert.equal(
    walk('ns/c', {}, steps).cure,
    'Have these rules added to a role of yours, and run it again; docs/why.md lists all: {apiGroups: [""], resources: ["pods"], verbs: ["list"]}, {apiGroups: ["apps"], resources: ["replicasets"], verbs: ["get"]}',
  );
});
