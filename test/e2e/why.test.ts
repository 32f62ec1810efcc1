/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** `why` on a cluster: each cause is produced there, and named with no more rights than docs/why.md asks for. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { V1MicroTime, type V1PersistentVolumeSpec } from '@kubernetes/client-node';
import { type Cause, causes } from '../../src/explain/causes/cause.ts';
import type { Explanation } from '../../src/explain/explanation.ts';
import { servesAttributesClasses } from '../support/admin.ts';
import { referenceGrantKind } from '../support/custom-kinds.ts';
import { rows } from '../support/claim-rows/rows.ts';
import { openScene, type ClaimOptions, type Scene } from '../support/scene.ts';
import { createNode, createPod, deletePod } from '../support/scheduled-pod.ts';
import { named, namedCauses, readerKubeconfig, why } from '../support/why-command.ts';

const prefix = 'csi.storage.k8s.io/provisioner-secret';
const late = { volumeBindingMode: 'WaitForFirstConsumer' };

/** Each has its claim in one-diagnosis.test.ts, which compares the page, the events and the log as well. */
const inOneDiagnosis: readonly Cause[] = [
  'api-server',
  'class-parameters',
  'feature-disabled',
  'not-ready',
  'rejected',
  'secret-content',
  'unsupported-size',
];

describe('why on a cluster', () => {
  let scene: Scene;
  let kubeconfig: string;
  before(async () => {
    scene = await openScene({
      sidecarFlags: ['--leader-election', '--leader-election-namespace=default'],
      rbac: ['components/leader-election/rbac.yaml', 'components/attributes-classes/rbac.yaml'],
    });
    kubeconfig = await readerKubeconfig(scene.cluster, scene.namespace);
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  const claimOf = async (options: Omit<ClaimOptions, 'className'> & { className?: string }): Promise<string> => {
    const className = options.className ?? (await scene.createClass());
    return (await scene.createClaim({ ...options, className })).metadata?.name ?? '';
  };
  const explain = (claim: string, cause: Cause): Promise<Explanation> =>
    named(scene, kubeconfig, `${scene.namespace}/${claim}`, cause);

  test('names what the volume of a claim is to be made of', async () => {
    const parameters = { [`${prefix}-name`]: 'no-such', [`${prefix}-namespace`]: scene.namespace };
    const ofSecret = await claimOf({ className: await scene.createClass({ parameters }) });
    const { steps } = await explain(ofSecret, 'secret-missing');
    assert.deepEqual(
      steps.filter(({ state }) => state === 'unknown').map(({ step }) => step),
      ['secret'],
      'without the right to read Secrets the event of the provisioner says it',
    );
    const from = (name: string) => ({ dataSource: { kind: 'PersistentVolumeClaim', name } });
    const missing = await claimOf({ spec: from('no-such') });
    await explain(missing, 'source-missing');
    const { message } = await explain(await claimOf({ spec: from(missing) }), 'source-missing');
    assert.match(message, new RegExp(`^It waits for its data source, claim ${missing}: `));
  });

  test('names an attributes class that does not exist', async (t) => {
    if (!(await servesAttributesClasses(scene.admin))) {
      t.skip('attributes classes are not served');
      return;
    }
    await explain(await claimOf({ spec: { volumeAttributesClassName: 'no-such' } }), 'attributes-class');
  });

  test('names the node that was chosen for a claim and is gone', async () => {
    const node = `${scene.namespace}-gone`;
    const removeNode = await createNode(scene, { name: node });
    // while no provisioner is there to take the node from the claim
    const className = await scene.createClass({ ...late, provisioner: `${scene.namespace}.none.example.com` });
    const name = await claimOf({ className });
    const pod = await createPod(scene, name, node);
    await scene.eventually(async () => {
      const { metadata } = await scene.readClaim(name);
      assert.equal(metadata?.annotations?.['volume.kubernetes.io/selected-node'], node);
    });
    await removeNode();
    assert.match((await explain(name, 'selected-node-gone')).message, new RegExp(`^Node ${node}, `));
    await deletePod(scene, pod);
  });

  test('names a provisioner that nobody has installed, and one that is away', async () => {
    const provisioner = `${scene.namespace}.away.example.com`;
    const className = await scene.createClass({ provisioner });
    const name = await claimOf({ className });
    assert.match((await explain(name, 'no-provisioner')).message, /no sign of a provisioner for/);
    const long = new V1MicroTime(Date.now() - 630_000);
    await scene.admin.coordination.createNamespacedLease({
      namespace: scene.namespace,
      body: {
        metadata: { name: provisioner.replaceAll('.', '-') },
        spec: {
          holderIdentity: 'pod-1',
          leaseDurationSeconds: 15,
          renewTime: long,
          acquireTime: long,
        },
      },
    });
    assert.match((await explain(name, 'no-leader')).message, /pod-1 has not renewed Lease .* for 10 min/);
  });

  test('names the provisioner of a selected node that is away, as other nodes have reported it', async () => {
    const className = await scene.createClass({ provisioner: `${scene.namespace}.nodes.example.com` });
    const name = await claimOf({ className });
    const { uid = '' } = (await scene.readClaim(name)).metadata ?? {};
    const now = new Date();
    await scene.admin.core.createNamespacedEvent({
      namespace: scene.namespace,
      body: {
        metadata: { name: `${name}-waits` },
        involvedObject: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: scene.namespace, name, uid },
        type: 'Normal',
        reason: 'ProvisioningWaiting',
        message: 'Waiting for node "n1", which was selected',
        source: { component: `${scene.namespace}.nodes.example.com_n2_0` },
        firstTimestamp: now,
        lastTimestamp: now,
        count: 1,
      },
    });
    assert.match((await explain(name, 'provisioner-away')).message, /Waiting for node "n1"/);
  });

  test('names what became of a plugin that was part of Kubernetes', async (t) => {
    const ofPlugin = async (plugin: string): Promise<string> =>
      await claimOf({ className: await scene.createClass({ provisioner: `kubernetes.io/${plugin}` }) });
    const migrated = await explain(await ofPlugin('aws-ebs'), 'no-provisioner');
    assert.match(migrated.message, /no sign of a provisioner for ebs\.csi\.aws\.com:/);
    if (scene.cluster.name === 'sandbox') {
      t.diagnostic('the sandbox says nothing of plugins that are gone');
      return;
    }
    const removed = await explain(await ofPlugin('glusterfs'), 'no-provisioner');
    assert.match(removed.message, /no volume plugin matched name: kubernetes\.io\/glusterfs$/);
    const disabled = await explain(await ofPlugin('host-path'), 'driver-error');
    assert.match(disabled.message, /provisioning in volume plugin "kubernetes\.io\/host-path" is disabled$/);
  });

  test('names what the driver says, and that it is at work', async () => {
    await scene.driver.setFaults([{ method: 'CreateVolume', code: 'INTERNAL', message: 'on fire' }]);
    const failing = await claimOf({});
    assert.match((await explain(failing, 'driver-error')).message, /code = Internal desc = on fire$/);
    await scene.driver.setFaults([{ method: 'CreateVolume', code: 'RESOURCE_EXHAUSTED', message: 'full' }]);
    await explain(failing, 'no-capacity');
    await scene.driver.setFaults([{ method: 'CreateVolume', hang: true }]);
    await explain(await claimOf({}), 'in-progress');
    await scene.driver.setFaults([]);
    await scene.bound(failing);
    assert.equal((await explain(failing, 'bound')).verdict, 'bound');
  });

  test('names a volume whose name is taken', async (t) => {
    const claim = await scene.createClaim({ className: await scene.createClass(late) });
    const name = `pvc-${claim.metadata?.uid ?? ''}`;
    t.after(await createVolume(name, { claimRef: { namespace: scene.namespace, name: 'somebody' } }));
    await explain(claim.metadata?.name ?? '', 'name-taken');
  });

  const volumeCause = (name: string, cause: Cause): Promise<Explanation> =>
    named(scene, kubeconfig, `pv/${name}`, cause);

  /** A volume that somebody made by hand. @returns a function that removes it. */
  async function createVolume(
    name: string,
    spec: Partial<V1PersistentVolumeSpec>,
    provisioner = 'nobody.example.com',
  ): Promise<() => Promise<void>> {
    await scene.admin.core.createPersistentVolume({
      body: {
        // Without the annotation the controller manager of older versions sets a released volume to Failed.
        metadata: { name, annotations: { 'pv.kubernetes.io/provisioned-by': provisioner } },
        spec: {
          accessModes: ['ReadWriteOnce'],
          capacity: { storage: '1Gi' },
          persistentVolumeReclaimPolicy: 'Retain',
          storageClassName: 'by-hand',
          csi: { driver: 'nobody.example.com', volumeHandle: name },
          ...spec,
        },
      },
    });
    return async () => {
      await scene.admin.core.deletePersistentVolume({ name });
      await scene.volumeGone(name);
    };
  }

  test('names what holds a volume', async (t) => {
    const claimRef = { namespace: scene.namespace, name: 'long-gone', uid: 'b5d7b0a8-0000-4000-8000-000000000000' };
    const kept = `${scene.namespace}-kept`;
    t.after(await createVolume(kept, { claimRef }));
    await scene.eventually(async () => {
      assert.match((await volumeCause(kept, 'retained')).message, /its reclaim policy is Retain/);
    });
    await volumeCause('no-such', 'not-found');

    const orphan = `${scene.namespace}-orphan`;
    t.after(await createVolume(orphan, { claimRef, persistentVolumeReclaimPolicy: 'Delete' }));
    assert.match(
      (await volumeCause(orphan, 'no-deleter')).message,
      /no sign of a provisioner for nobody\.example\.com/,
    );
    const attachment = `${scene.namespace}-attached`;
    await scene.admin.storage.createVolumeAttachment({
      body: {
        metadata: { name: attachment },
        spec: { attacher: 'nobody.example.com', nodeName: 'n1', source: { persistentVolumeName: orphan } },
      },
    });
    assert.match((await volumeCause(orphan, 'attached')).message, /still attached to node n1/);
    await scene.admin.storage.deleteVolumeAttachment({ name: attachment });

    const name = await claimOf({});
    const volumeName = (await scene.bound(name)).volume.metadata?.name ?? '';
    await volumeCause(volumeName, 'in-use');
    await scene.driver.setFaults([{ method: 'DeleteVolume', code: 'INTERNAL', message: 'disk on fire' }]);
    await scene.deleteClaim(name);
    assert.match((await volumeCause(volumeName, 'delete-error')).message, /desc = disk on fire$/);
    await scene.driver.setFaults([]);
    await scene.volumeGone(volumeName);

    const shared = await claimOf({});
    const { metadata, spec } = (await scene.bound(shared)).volume;
    const sharedName = metadata?.name ?? '';
    const removeImported = await createVolume(`${scene.namespace}-imported`, { claimRef, csi: spec!.csi! });
    await scene.deleteClaim(shared);
    await volumeCause(sharedName, 'shared-storage');
    await removeImported();
    await scene.volumeGone(sharedName);

    const moved = `${scene.namespace}-moved`;
    const ofOthers = { claimRef, persistentVolumeReclaimPolicy: 'Delete' };
    t.after(await createVolume(moved, ofOthers, scene.driver.driverName));
    assert.match(
      (await volumeCause(moved, 'other-source')).message,
      /its storage is of CSI driver nobody\.example\.com\.$/,
    );
  });
});

describe('why of a claim whose driver has topology', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene({
      driverFlags: ['--topology=e2e.example.com/zone=a'],
      rbac: ['components/topology/rbac.yaml'],
    });
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  test('names that no node has it', async () => {
    const kubeconfig = await readerKubeconfig(scene.cluster, scene.namespace);
    const { metadata } = await scene.createClaim({ className: await scene.createClass() });
    const object = `${scene.namespace}/${metadata?.name ?? ''}`;
    assert.match((await named(scene, kubeconfig, object, 'no-topology')).message, /no available topology found/);
  });

  test('names what the driver said of the chosen node, also while the scheduler chooses again', async (t) => {
    const kubeconfig = await readerKubeconfig(scene.cluster, scene.namespace);
    const node = `${scene.namespace}-node`;
    t.after(await createNode(scene, { name: node, labels: { 'e2e.example.com/zone': 'a' } }));
    await scene.driver.setFaults([{ method: 'CreateVolume', code: 'RESOURCE_EXHAUSTED', message: 'pool is full' }]);
    const { metadata } = await scene.createClaim({ className: await scene.createClass(late) });
    const name = metadata?.name ?? '';
    const pod = await createPod(scene, name);
    const object = `${scene.namespace}/${name}`;
    await named(scene, kubeconfig, object, 'no-capacity');
    const looks: Explanation[] = [];
    await scene.eventually(async () => {
      looks.push(await why(kubeconfig, object));
      const endings = looks.map(({ steps }) => steps.at(-1)?.step);
      assert.ok(endings.includes('consumer'), `it has a node whenever somebody looks: ${endings.join(', ')}`);
    });
    for (const { cause, message } of looks) {
      assert.equal(cause, 'no-capacity', message);
      assert.match(message, /desc = pool is full$/);
    }
    await scene.driver.setFaults([]);
    await named(scene, kubeconfig, object, 'bound');
    await deletePod(scene, pod);
  });
});

const crossNamespace = 'CrossNamespaceVolumeDataSource';

describe('why on a cluster of its own', () => {
  let scene: Scene;
  let kubeconfig: string;
  before(async () => {
    scene = await openScene({
      cluster: { featureGates: [crossNamespace] },
      rbac: ['components/cross-namespace-sources/rbac.yaml'],
      kinds: [referenceGrantKind],
      sidecarFlags: [`--feature-gates=${crossNamespace}=true`],
    });
    kubeconfig = await readerKubeconfig(scene.cluster, scene.namespace);
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  test('names the grant without which a claim gets nothing of another namespace', async () => {
    const elsewhere = `${scene.namespace}-guest`;
    await scene.admin.core.createNamespace({ body: { metadata: { name: elsewhere } } });
    const storageClassName = await scene.createClass();
    await scene.createClaim({ name: 'source', className: storageClassName });
    await scene.bound('source');
    await scene.admin.core.createNamespacedPersistentVolumeClaim({
      namespace: elsewhere,
      body: {
        metadata: { name: 'guest' },
        spec: {
          storageClassName,
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '1Gi' } },
          dataSourceRef: { kind: 'PersistentVolumeClaim', name: 'source', namespace: scene.namespace },
        },
      },
    });
    const { message } = await named(scene, kubeconfig, `${elsewhere}/guest`, 'grant-missing');
    assert.match(
      message,
      new RegExp(`^No ReferenceGrant in namespace ${scene.namespace} allows claims of ${elsewhere}`),
    );
    const { group, version, plural, kind } = referenceGrantKind;
    await scene.admin.custom.createNamespacedCustomObject({
      ...{ group, version, plural, namespace: scene.namespace },
      body: {
        apiVersion: `${group}/${version}`,
        kind,
        metadata: { name: 'claims' },
        spec: {
          from: [{ group: '', kind: 'PersistentVolumeClaim', namespace: elsewhere }],
          to: [{ group: '', kind: 'PersistentVolumeClaim' }],
        },
      },
    });
    await named(scene, kubeconfig, `${elsewhere}/guest`, 'bound');
  });

  test('names what kube-controller-manager has left undone', async (t) => {
    const { controllerManager } = scene.cluster;
    if (controllerManager === undefined) {
      t.skip('the sandbox has no controller manager that could be stopped');
      return;
    }
    const className = await scene.createClass();
    await scene.driver.setFaults([{ method: 'CreateVolume', code: 'UNAVAILABLE', message: 'not yet' }]);
    await scene.createClaim({ name: 'made', className });
    const object = (name: string): string => `${scene.namespace}/${name}`;
    await named(scene, kubeconfig, object('made'), 'driver-error');
    await controllerManager.stop();
    await scene.driver.setFaults([]);
    await named(scene, kubeconfig, object('made'), 'volume-made');
    await scene.createClaim({ name: 'new', className });
    const { message } = await named(scene, kubeconfig, object('new'), 'not-handed-over');
    assert.match(message, /^kube-controller-manager has not handed the claim to its provisioner /);
    await controllerManager.start();
    await named(scene, kubeconfig, object('made'), 'bound');
    await named(scene, kubeconfig, object('new'), 'bound');
  });

  test('names each of its causes, here, in one-diagnosis.test.ts or in a row of situations.test.ts', async (t) => {
    if (scene.cluster.controllerManager === undefined) {
      t.skip('the sandbox cannot produce them all');
      return;
    }
    const unserved: readonly Cause[] = (await servesAttributesClasses(scene.admin)) ? [] : ['attributes-class'];
    const inRows = rows.flatMap((row) => ('healthy' in row || typeof row.cluster === 'object' ? [] : [row.cause]));
    const produced = new Set<Cause | null>([...namedCauses, ...unserved, ...inOneDiagnosis, ...inRows]);
    assert.deepEqual(
      causes.filter((cause) => !produced.has(cause)),
      [],
    );
  });
});
