import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { goRelease, isProvisionerImage } from '../../../../src/cli/preflight/find-sidecars.ts';
import { access, type Json, reportOf, workload } from './driver-manifests.ts';

describe('an image', () => {
  for (const image of [
    'registry.k8s.io/sig-storage/csi-provisioner:v6.3.0',
    'csi-provisioner',
    'localhost:5000/csi-provisioner@sha256:0123',
    'longhornio/csi-provisioner:v5.3.0-20251022',
    'rancher/mirrored-sig-storage-csi-provisioner:v4.0.0',
    'public.ecr.aws/eks-distro/kubernetes-csi/external-provisioner:v4.0.0-eks-1-29-7',
    'registry.redhat.io/openshift4/ose-csi-external-provisioner-rhel9:v4.16',
  ]) {
    test(`${image} is the Go sidecar`, () => {
      assert.equal(isProvisionerImage(image), true);
    });
  }

  for (const image of [
    'registry.k8s.io/sig-storage/nfs-subdir-external-provisioner:v4.0.2',
    'registry.k8s.io/sig-storage/csi-attacher:v4',
    'csi-provisioner-hostpath-driver:v0.1.0',
    'example.com/csi-provisioner/driver:v1',
    'rancher/local-path-provisioner:v0.0.30',
    '',
  ]) {
    test(`${image === '' ? 'without a name' : image} is not`, () => {
      assert.equal(isProvisionerImage(image), false);
    });
  }

  for (const [image, want] of [
    ['x/csi-provisioner:v5.2.0', { major: 5, minor: 2 }],
    ['x/external-provisioner:v4.0.0-eks-1-29-7', { major: 4, minor: 0 }],
    ['x/csi-provisioner:canary', undefined],
    ['x/csi-provisioner@sha256:0', undefined],
    ['x/ose-csi-external-provisioner:v4.16', undefined],
    ['csi-provisioner:v0.1.0', undefined],
  ] as const) {
    test(`${image} is ${want === undefined ? 'of an unknown release' : `v${want.major}.${want.minor}`}`, () => {
      assert.deepEqual(goRelease(image), want);
    });
  }
});

async function containersIn(objects: readonly Json[], container?: string): Promise<string[]> {
  const { sidecars } = await reportOf(objects, container === undefined ? {} : { container });
  return sidecars.map((each) => `${each.workload.kind}/${each.container}`);
}

describe('the sidecar is found', () => {
  test('in each kind that runs Pods, also in one of an operator', async () => {
    for (const kind of ['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'Job']) {
      assert.deepEqual(await containersIn([workload({ kind })]), [`${kind}/csi-provisioner`]);
    }
    const foreign = { ...workload({ kind: 'CloneSet' }), apiVersion: 'apps.kruise.io/v1' };
    assert.deepEqual(await containersIn([foreign]), ['CloneSet/csi-provisioner']);
    const { spec } = workload() as { spec: { template: { spec: Json } } };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: spec.template.spec };
    assert.deepEqual(await containersIn([pod]), ['Pod/csi-provisioner']);
  });

  test('among init containers that keep running', async () => {
    const init = { name: 'sidecar', image: 'x/csi-provisioner:v6.3.0', restartPolicy: 'Always' };
    const driver = workload({ image: 'driver', container: { name: 'driver' }, pod: { initContainers: [init] } });
    assert.deepEqual(await containersIn([driver]), ['Deployment/sidecar']);
  });

  test('by name and arguments where a patch leaves out the image', async () => {
    assert.deepEqual(await containersIn([workload({ image: '' })]), ['Deployment/csi-provisioner']);
  });

  test('by the name that is given', async () => {
    const driver = workload({ image: 'our/fork:1', container: { name: 'fork' } });
    assert.deepEqual(await containersIn([driver], 'fork'), ['Deployment/fork']);
  });

  test('once where a cluster holds the Deployment and what it has made', async () => {
    const made = {
      ...workload({ kind: 'ReplicaSet' }),
      metadata: {
        name: 'driver-controller-5f',
        namespace: 'storage',
        ownerReferences: [{ kind: 'Deployment', name: 'driver-controller', controller: true }],
      },
    };
    assert.deepEqual(await containersIn([workload(), made]), ['Deployment/csi-provisioner']);
    assert.deepEqual(await containersIn([made]), ['ReplicaSet/csi-provisioner']);
  });
});

describe('where it is not found, the error', () => {
  test('names the containers that there are, and the flag', async () => {
    const driver = workload({ image: 'our/fork:1', container: { name: 'fork' } });
    await assert.rejects(
      reportOf([driver]),
      /Choose one with --container.* There are: fork of Deployment driver-controller$/,
    );
    await assert.rejects(reportOf([driver], { container: 'x' }), /no container is called x/);
  });

  test('says that nothing runs Pods', async () => {
    await assert.rejects(reportOf(access()), /none of the 4 objects runs Pods/);
  });

  test('names what an operator makes the Deployment from', async () => {
    const deployer = workload({
      image: 'x/manager:1',
      args: [],
      container: { name: 'm', env: [{ name: 'CSI_PROVISIONER_IMAGE', value: 'longhornio/csi-provisioner:v5.3.0' }] },
    });
    await assert.rejects(
      reportOf([deployer]),
      /Deployment driver-controller names its image: an operator in the cluster seems to create/,
    );
  });

  test('takes no Secret and no role for such an object', async () => {
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 's' },
      stringData: { image: 'x/csi-provisioner:v1' },
    };
    const role = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'csi-provisioner:default' },
    };
    await assert.rejects(reportOf([secret, role]), /none of the 2 objects runs Pods/);
  });
});

test('objects without a namespace are in the one that is given', async () => {
  const { metadata: _, ...rest } = workload();
  const bare = { ...rest, metadata: { name: 'driver-controller' } };
  const { sidecars } = await reportOf([bare, ...access()], { namespace: 'elsewhere' });
  assert.equal(sidecars[0]?.workload.namespace, 'elsewhere');
  assert.deepEqual(
    sidecars[0].findings.map(({ finding }) => finding),
    ['rights-unknown'],
  );
});
