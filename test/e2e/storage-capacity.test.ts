/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { V1CSIStorageCapacity } from '@kubernetes/client-node';
import { type Admin, ifFound } from '../support/admin.ts';
import { eventually } from '../support/eventually.ts';
import { openScene, type Scene } from '../support/scene.ts';
import { createNode, createPod, deletePod, scheduledNode } from '../support/scheduled-pod.ts';

const zone = 'topology.e2e.example.com/zone';

/** A Pod below a ReplicaSet below something else, as a Deployment would make them; nothing runs in it. */
async function createOwners({ core, apps }: Admin, namespace: string, name: string): Promise<string> {
  const labels = { e2e: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'none' }] } };
  const top = await core.createNamespacedConfigMap({ namespace, body: { metadata: { name } } });
  await core.createNamespacedPod({ namespace, body: { ...template, metadata: { name, labels } } });
  const owned = { apiVersion: 'v1', kind: 'ConfigMap', name, uid: top.metadata?.uid ?? '', controller: true };
  const replicaSet = await apps.createNamespacedReplicaSet({
    namespace,
    body: {
      metadata: { name, ownerReferences: [owned] },
      spec: { replicas: 1, selector: { matchLabels: labels }, template },
    },
  });
  // A real control plane adopts the Pod by itself, and it may do so at this very moment.
  const { uid = '' } = replicaSet.metadata ?? {};
  await eventually(async () => {
    const pod = await core.readNamespacedPod({ namespace, name });
    if (pod.metadata?.ownerReferences?.some((each) => each.uid === uid) === true) return;
    pod.metadata!.ownerReferences = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name, uid, controller: true }];
    await core.replaceNamespacedPod({ namespace, name, body: pod });
  });
  return name;
}

describe('a driver that tells how much room it has', () => {
  let scene: Scene;
  let className: string;
  const removers: (() => Promise<unknown>)[] = [];

  before(async () => {
    scene = await openScene({
      driverFlags: [`--topology=${zone}=a`, '--capacity=5Gi'],
      sidecarFlags: ['--enable-capacity', '--capacity-ownerref-level=2'],
      rbac: ['components/capacity/rbac.yaml'],
      beforeSidecar: async ({ admin, cluster, id }) => {
        const name = await createOwners(admin, cluster.sidecarNamespace, id);
        const where = { namespace: cluster.sidecarNamespace, name };
        // The garbage collector may be faster: each of them goes with its owner.
        removers.push(() => ifFound(admin.core.deleteNamespacedPod({ ...where, gracePeriodSeconds: 0 })));
        removers.push(() => ifFound(admin.apps.deleteNamespacedReplicaSet(where)));
        removers.push(() => admin.core.deleteNamespacedConfigMap(where));
        return { POD_NAME: name };
      },
    });
    const { storage } = scene.admin;
    const { driverName } = scene.driver;
    await storage.createCSIDriver({
      body: { metadata: { name: driverName }, spec: { attachRequired: false, storageCapacity: true } },
    });
    removers.push(() => storage.deleteCSIDriver({ name: driverName }));
    for (const each of ['a', 'b']) {
      removers.push(await createNode(scene, { name: `${scene.namespace}-${each}`, labels: { [zone]: each } }));
    }
    className = `${scene.namespace}-late`;
    await storage.createStorageClass({
      body: { metadata: { name: className }, provisioner: driverName, volumeBindingMode: 'WaitForFirstConsumer' },
    });
  });
  afterEach((context) => scene.report(context));
  after(async () => {
    try {
      for (const remove of removers.reverse()) await remove();
    } finally {
      await scene.close();
    }
  });

  const published = async (): Promise<V1CSIStorageCapacity[]> => {
    const { items } = await scene.admin.storage.listNamespacedCSIStorageCapacity({
      namespace: scene.cluster.sidecarNamespace,
      labelSelector: `csi.storage.k8s.io/drivername=${scene.driver.driverName}`,
    });
    return items;
  };
  const zones = (items: V1CSIStorageCapacity[]): string[] =>
    items.map(({ nodeTopology, capacity }) => `${nodeTopology?.matchLabels?.[zone] ?? ''}: ${capacity ?? ''}`).sort();

  test('has an object for each class in each zone, below the owner of its Pod', async () => {
    const items = await scene.eventually(async () => {
      const found = await published();
      assert.deepEqual(zones(found), ['a: 5Gi', 'b: 0']);
      return found;
    });
    const where = { namespace: scene.cluster.sidecarNamespace, name: scene.namespace };
    const uid = (await scene.admin.core.readNamespacedConfigMap(where)).metadata?.uid;
    for (const { metadata, storageClassName } of items) {
      assert.equal(storageClassName, className);
      assert.deepEqual(
        metadata?.ownerReferences?.map((each) => [each.kind, each.uid, each.controller]),
        [['ConfigMap', uid, true]],
      );
    }
  });

  test('gets Pods with new claims only where there is room', async () => {
    const { metadata } = await scene.createClaim({ className, size: '1Gi' });
    const name = metadata?.name ?? '';
    const pod = await createPod(scene, name);
    assert.equal(await scheduledNode(scene, pod), `${scene.namespace}-a`);
    await scene.bound(name);
    await scene.eventually(async () => assert.deepEqual(zones(await published()), ['a: 4Gi', 'b: 0']));
    await deletePod(scene, pod);
  });

  test('gets none when there is not enough room anywhere', async () => {
    const { metadata } = await scene.createClaim({ className, size: '100Gi' });
    const name = metadata?.name ?? '';
    const pod = await createPod(scene, name);
    await scene.eventually(async () => {
      const { status } = await scene.admin.core.readNamespacedPod({ name: pod, namespace: scene.namespace });
      const condition = status?.conditions?.find(({ type }) => type === 'PodScheduled');
      assert.equal(condition?.status, 'False');
      assert.match(condition.message ?? '', /did not have enough free storage/);
    });
    assert.equal(
      (await scene.readClaim(name)).metadata?.annotations?.['volume.kubernetes.io/selected-node'],
      undefined,
    );
    await deletePod(scene, pod);
    await scene.deleteClaim(name);
  });

  test('loses the objects of a class that goes', async () => {
    await scene.admin.storage.deleteStorageClass({ name: className });
    await scene.eventually(async () => assert.deepEqual(zones(await published()), []));
  });
});
