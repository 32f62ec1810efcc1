/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import type {
  V1OwnerReference,
  V1PersistentVolume,
  V1PersistentVolumeClaim,
  V1StorageClass,
} from '@kubernetes/client-node';
import { type Admin, boundClaim, eventsOf, assertVolumeGone, ifFound } from '../support/admin.ts';
import type { DriverProcess } from '../support/driver-process.ts';
import { eventually } from '../support/eventually.ts';
import { createNode, createPod, deletePod, type PodScene } from '../support/scheduled-pod.ts';
import { refusedRights } from '../support/refused-rights.ts';
import { Stage } from '../support/stage.ts';
import type { StartedProcess } from '../support/started-process.ts';

const deploy = join(import.meta.dirname, '../../deploy');
const account = { namespace: 'default', name: 'csi-provisioner-node' };
const selectedNode = 'volume.kubernetes.io/selected-node';

/** Those of the overlay, and what docs/node-deployment.md says of capacity: the Role of the component for this account. */
async function rights(): Promise<string> {
  const capacity = (await readFile(join(deploy, 'components/capacity/rbac.yaml'), 'utf8')).split('---\n');
  const roles = capacity.filter((document) => /^kind: Role(Binding)?$/m.test(document));
  const forAccount = roles.map((document) => document.replace(/name: csi-provisioner$/m, `name: ${account.name}`));
  return [await readFile(join(deploy, 'overlays/node-deployment/rbac.yaml'), 'utf8'), ...forAccount].join('---\n');
}

describe('a sidecar on each of two nodes', () => {
  const id = `e2e-${randomBytes(4).toString('hex')}`;
  const driverName = `${id}.example.com`;
  const key = `topology.${driverName}/node`;
  const nodes = [`${id}-a`, `${id}-b`] as const;
  const drivers = new Map<string, DriverProcess>();
  const sidecars: StartedProcess[] = [];
  let stage: Stage;
  /** Of the first node the Pod owns the capacity objects, of the second the DaemonSet. */
  const ownerLevels = [0, 1];
  let admin: Admin;
  let scene: PodScene;
  const { namespace } = account;
  const labels = { e2e: id };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'none' }] } };

  /** As that of the overlay; the test plays its controller. */
  const createDaemonSet = async (): Promise<V1OwnerReference> => {
    const body = { metadata: { name: id }, spec: { selector: { matchLabels: labels }, template } };
    const { metadata } = await admin.apps.createNamespacedDaemonSet({ namespace, body });
    stage.defer(() => ifFound(admin.apps.deleteNamespacedDaemonSet({ namespace, name: id })));
    return { apiVersion: 'apps/v1', kind: 'DaemonSet', name: id, uid: metadata?.uid ?? '', controller: true };
  };
  const createPodOf = async (owner: V1OwnerReference, node: string): Promise<void> => {
    const metadata = { name: node, labels, ownerReferences: [owner] };
    await admin.core.createNamespacedPod({
      namespace,
      body: { metadata, spec: { ...template.spec, nodeName: node } },
    });
    stage.defer(() => deletePodOf(node));
  };
  const deletePodOf = (node: string): Promise<unknown> =>
    ifFound(admin.core.deleteNamespacedPod({ namespace, name: node, gracePeriodSeconds: 0 }));

  before(async () => {
    stage = await Stage.open({ name: id });
    ({ admin } = stage);
    await admin.core.createNamespace({ body: { metadata: { name: id } } });
    stage.defer(() => admin.core.deleteNamespace({ name: id }));
    scene = { admin, namespace: id, driver: { driverName }, eventually };
    const kubeconfig = await stage.cluster.accountKubeconfig(await rights(), account);
    await admin.storage.createCSIDriver({
      body: { metadata: { name: driverName }, spec: { attachRequired: false, storageCapacity: true } },
    });
    stage.defer(() => admin.storage.deleteCSIDriver({ name: driverName }));
    const owner = await createDaemonSet();
    for (const [index, node] of nodes.entries()) {
      await createPodOf(owner, node);
      stage.defer(await createNode(scene, { name: node, labels: { [key]: node } }));
      const flags = [`--topology=${key}=${node}`, `--node-id=${node}`, '--capacity=10Gi'];
      const driver = await stage.startDriver(driverName, flags);
      drivers.set(node, driver);
      const sidecar = await stage.startSidecar({
        csiAddress: driver.address,
        kubeconfig,
        environment: { NODE_NAME: node, POD_NAME: node },
        flags: [
          '--node-deployment',
          '--node-deployment-base-delay=400ms',
          '--node-deployment-max-delay=800ms',
          '--strict-topology',
          '--enable-capacity',
          `--capacity-ownerref-level=${ownerLevels[index]}`,
          '--retry-interval-start=250ms',
          '--timeout=5s',
          '-v=5',
        ],
      });
      sidecars.push(sidecar);
    }
  });
  afterEach((context) => {
    if (!('passed' in context) || context.passed) return;
    for (const each of [...sidecars, ...drivers.values()]) console.error(`--- log\n${each.log()}`);
    console.error(stage.cluster.log());
  });
  after(async () => {
    await stage[Symbol.asyncDispose]();
    const refusals = sidecars.flatMap((sidecar) => refusedRights(sidecar.log()));
    assert.deepEqual(refusals, [], 'the rights of deploy/overlays/node-deployment suffice');
  });

  let serial = 0;
  const createClass = async (fields: Partial<V1StorageClass>): Promise<string> => {
    const name = `${id}-${++serial}`;
    await admin.storage.createStorageClass({ body: { metadata: { name }, provisioner: driverName, ...fields } });
    stage.defer(() => admin.storage.deleteStorageClass({ name }));
    return name;
  };
  const createClaim = async (storageClassName: string, storage = '1Gi'): Promise<string> => {
    const name = `claim-${++serial}`;
    await admin.core.createNamespacedPersistentVolumeClaim({
      namespace: id,
      body: {
        metadata: { name },
        spec: { storageClassName, accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
      },
    });
    return name;
  };
  const readClaim = (name: string): Promise<V1PersistentVolumeClaim> =>
    admin.core.readNamespacedPersistentVolumeClaim({ name, namespace: id });
  const bound = async (name: string): Promise<V1PersistentVolume> =>
    (await eventually(() => boundClaim(admin, id, name))).volume;
  const holders = async (volume: V1PersistentVolume): Promise<string[]> => {
    const handle = volume.spec?.csi?.volumeHandle ?? '';
    const held = await Promise.all(
      nodes.map(async (node) => ((await drivers.get(node)!.volumeIds()).includes(handle) ? [node] : [])),
    );
    return held.flat();
  };
  const placeOf = (volume: V1PersistentVolume): string[] | undefined =>
    volume.spec?.nodeAffinity?.required?.nodeSelectorTerms[0]?.matchExpressions?.[0]?.values;
  const deleteAndWait = async (claim: string, volume: V1PersistentVolume): Promise<void> => {
    await admin.core.deleteNamespacedPersistentVolumeClaim({ name: claim, namespace: id });
    await eventually(() => assertVolumeGone(admin, volume.metadata?.name ?? ''));
  };

  for (const node of nodes) {
    test(`makes and deletes the volume on the node of the pod, ${node.slice(-1)}`, async () => {
      const claim = await createClaim(await createClass({ volumeBindingMode: 'WaitForFirstConsumer' }));
      const pod = await createPod(scene, claim, node);
      const volume = await bound(claim);
      assert.deepEqual(placeOf(volume), [node]);
      assert.deepEqual(await holders(volume), [node]);
      const identity = volume.spec?.csi?.volumeAttributes?.['storage.kubernetes.io/csiProvisionerIdentity'] ?? '';
      assert.ok(identity.endsWith(`-${driverName}-${node}`), identity);
      await deletePod(scene, pod);
      await deleteAndWait(claim, volume);
      assert.deepEqual(await holders(volume), []);
      for (const [name, driver] of drivers) {
        const deletions = (await driver.calls('DeleteVolume')).filter(
          ({ request }) => request.volume_id === volume.spec?.csi?.volumeHandle,
        );
        assert.equal(deletions.length, name === node ? 1 : 0, name);
      }
    });
  }

  test('makes each of ten volumes with immediate binding once, where its claim says', async () => {
    const className = await createClass({ volumeBindingMode: 'Immediate' });
    const claims = await Promise.all(Array.from({ length: 10 }, () => createClaim(className)));
    for (const name of claims) {
      const volume = await bound(name);
      const { metadata } = await readClaim(name);
      const node = metadata?.annotations?.[selectedNode] ?? 'none';
      assert.deepEqual([placeOf(volume), await holders(volume)], [[node], [node]]);
      const successes = (await eventsOf(admin, id, metadata?.uid ?? '')).filter(
        ({ reason }) => reason === 'ProvisioningSucceeded',
      );
      assert.ok(successes.length <= 1);
      const made = await Promise.all(nodes.map(async (each) => await drivers.get(each)!.calls('CreateVolume')));
      const requests = made.flat().filter(({ request }) => request.name === volume.metadata?.name);
      assert.equal(requests.length, 1);
      await deleteAndWait(name, volume);
      assert.deepEqual(await holders(volume), []);
    }
  });

  test('leaves a claim that no node has room for alone', async () => {
    const className = await createClass({ volumeBindingMode: 'Immediate' });
    const name = await createClaim(className, '50Gi');
    const refusals = new RegExp(`Not enough capacity for the claim.*${id}/${name}`, 'g');
    const steppedBack = (): number[] => sidecars.map((sidecar) => sidecar.log().match(refusals)?.length ?? 0);
    await eventually(() => {
      assert.deepEqual(steppedBack(), [1, 1]);
    });
    const { metadata, status } = await readClaim(name);
    assert.equal(status?.phase, 'Pending');
    assert.equal(metadata?.annotations?.[selectedNode], undefined);
    await admin.core.deleteNamespacedPersistentVolumeClaim({ name, namespace: id });
  });

  test('a node reports the volume that it may have left when its claim moved to another node during CreateVolume', async () => {
    const [slow, other] = nodes;
    const claim = await createClaim(await createClass({ volumeBindingMode: 'WaitForFirstConsumer' }));
    const select = async (node: string): Promise<void> => {
      const body = await readClaim(claim);
      body.metadata!.annotations = { ...body.metadata?.annotations, [selectedNode]: node };
      await admin.core.replaceNamespacedPersistentVolumeClaim({ name: claim, namespace: id, body });
    };
    const [driver, otherDriver] = [drivers.get(slow)!, drivers.get(other)!];
    const before = await driver.volumeIds();
    await driver.setFaults([{ method: 'CreateVolume', hang: true, after: true, times: 1 }]);
    await eventually(() => select(slow));
    await eventually(async () => {
      assert.equal((await driver.volumeIds()).length, before.length + 1);
    });
    await eventually(() => select(other));
    const volume = await bound(claim);
    assert.deepEqual(await holders(volume), [other]);
    const { uid = '' } = (await readClaim(claim)).metadata ?? {};
    await eventually(async () => {
      const texts = (await eventsOf(admin, id, uid)).map(({ message = '' }) => message);
      assert.ok(
        texts.some((text) => text.startsWith('An earlier attempt may have left a volume')),
        texts.join('\n'),
      );
    });
    assert.equal((await driver.volumeIds()).length, before.length + 1, 'an operator decides');
    await deleteAndWait(claim, volume);
    assert.ok((await otherDriver.calls('DeleteVolume')).length > 0);
  });

  test('the capacity objects of a node that is gone go with its Pod, and stay where the DaemonSet owns them', async () => {
    const className = await createClass({ volumeBindingMode: 'WaitForFirstConsumer' });
    const published = async (): Promise<string[]> => {
      const { items } = await admin.storage.listNamespacedCSIStorageCapacity({ namespace });
      const ofClass = items.filter(({ storageClassName }) => storageClassName === className);
      return ofClass
        .map(({ metadata, nodeTopology }) => {
          const [owner] = metadata?.ownerReferences ?? [];
          return `${nodeTopology?.matchLabels?.[key] ?? ''} below ${owner?.kind ?? ''} ${owner?.name ?? ''}`;
        })
        .sort();
    };
    const [first, second] = nodes;
    const [ofPod, ofDaemonSet] = [`${first} below Pod ${first}`, `${second} below DaemonSet ${id}`];
    await eventually(async () => assert.deepEqual(await published(), [ofPod, ofDaemonSet]));
    for (const node of [second, first]) {
      await sidecars[nodes.indexOf(node)]?.stop();
      await ifFound(admin.core.deleteNode({ name: node }));
      await deletePodOf(node);
    }
    // the garbage collector has dealt with the Pod that went later
    await eventually(async () => assert.deepEqual(await published(), [ofDaemonSet]));
    await admin.apps.deleteNamespacedDaemonSet({ namespace, name: id });
    await eventually(async () => assert.deepEqual(await published(), []));
  });
});
