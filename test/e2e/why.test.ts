/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** `why` on a cluster: each cause is produced there, and named with no more rights than docs/why.md asks for. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { PatchStrategy, setHeaderOptions, V1MicroTime, type V1PersistentVolumeSpec } from '@kubernetes/client-node';
import type { Explanation } from '../../src/explain/explanation.ts';
import { serves } from '../support/admin.ts';
import { openScene, type ClaimOptions, type Scene } from '../support/scene.ts';
import { createNode, createPod, deletePod, scheduledNode } from './scheduled-pod.ts';

const root = join(import.meta.dirname, '../..');
const exitCodes: Readonly<Record<string, number>> = { bound: 0, waiting: 1, stuck: 2, unknown: 3 };

/** The role on the page, and an account that has it alone. */
async function reader({ cluster, namespace }: Scene): Promise<string> {
  const page = await readFile(join(root, 'docs/why.md'), 'utf8');
  const role = /```yaml\n([^`]*kind: ClusterRole\n[^`]*)```/.exec(page)?.[1] ?? '';
  const name = `${namespace}-why`;
  const account = { namespace: cluster.sidecarNamespace, name };
  const manifests = [
    role.replace('name: csi-provisioner-why', `name: ${name}`),
    JSON.stringify({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: account }),
    JSON.stringify({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name },
      subjects: [{ kind: 'ServiceAccount', ...account }],
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    }),
  ].join('\n---\n');
  return await cluster.accountKubeconfig(manifests, account);
}

/** Runs the program, or the one that `E2E_SIDECAR` names. */
async function why(kubeconfig: string, object: string): Promise<Explanation> {
  const words = process.env['E2E_SIDECAR']?.split(' ') ?? [process.execPath, join(root, 'src/main.ts')];
  const [program, ...args] = [...words, 'why', object, '-o', 'json', `--kubeconfig=${kubeconfig}`];
  const { code, stdout, stderr } = await new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
    execFile(program, args, (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }));
  });
  assert.notEqual(stdout, '', stderr);
  const explanation = JSON.parse(stdout) as Explanation;
  assert.equal(code, exitCodes[explanation.verdict], stderr);
  assert.equal(stderr, '');
  return explanation;
}

/** Waits until the program names the cause, as the cluster takes its time to come to a state. */
async function named(scene: Scene, kubeconfig: string, object: string, cause: string): Promise<Explanation> {
  return await scene.eventually(async () => {
    const explanation = await why(kubeconfig, object);
    assert.equal(explanation.cause, cause, JSON.stringify(explanation));
    return explanation;
  });
}

const prefix = 'csi.storage.k8s.io/provisioner-secret';
const late = { volumeBindingMode: 'WaitForFirstConsumer' };

describe('why on a cluster', () => {
  let scene: Scene;
  let kubeconfig: string;
  before(async () => {
    scene = await openScene({
      sidecarFlags: ['--leader-election', '--leader-election-namespace=default'],
      rbac: ['components/leader-election/rbac.yaml', 'components/attributes-classes/rbac.yaml'],
    });
    kubeconfig = await reader(scene);
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  const claimOf = async (options: Omit<ClaimOptions, 'className'> & { className?: string }): Promise<string> => {
    const className = options.className ?? (await scene.createClass());
    return (await scene.createClaim({ ...options, className })).metadata?.name ?? '';
  };
  const explain = (claim: string, cause: string): Promise<Explanation> =>
    named(scene, kubeconfig, `${scene.namespace}/${claim}`, cause);

  test('names what a claim itself lacks', async () => {
    await explain('nothing', 'not-found');
    await explain(await claimOf({ className: `${scene.namespace}-none` }), 'class-not-found');
    await explain(await claimOf({ className: '' }), 'static-class');
    await explain(await claimOf({ className: '', spec: { volumeName: `${scene.namespace}-v` } }), 'waits-for-volume');
    const name = 'without-class';
    await scene.admin.core.createNamespacedPersistentVolumeClaim({
      namespace: scene.namespace,
      body: {
        metadata: { name },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
    });
    await explain(name, 'no-class');
    await explain(await claimOf({ spec: { selector: { matchLabels: { a: 'b' } } } }), 'selector');
  });

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
    await explain(await claimOf({ spec: from(missing) }), 'source-not-ready');
  });

  test('names an attributes class that does not exist', async (t) => {
    const kind = { group: 'storage.k8s.io', version: 'v1', plural: 'volumeattributesclasses' };
    if (!(await serves(scene.admin, kind))) {
      t.skip('attributes classes are not served');
      return;
    }
    await explain(await claimOf({ spec: { volumeAttributesClassName: 'no-such' } }), 'attributes-class');
  });

  test('names the consumer that a claim waits for, and what the scheduler says of it', async () => {
    const name = await claimOf({ className: await scene.createClass(late) });
    await explain(name, 'waits-for-consumer');
    const pod = await createPod(scene, name, 'no-such-node');
    const { message } = await explain(name, 'pod-unschedulable');
    assert.match(message, /The scheduler: .*nodes? /);
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
    assert.match((await explain(name, 'provisioner-away')).message, /pod-1 has not renewed Lease .* for 10 min/);
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

  test('names the Pod that holds a claim which is being deleted, and the claim that is lost', async (t) => {
    const node = `${scene.namespace}-node`;
    t.after(await createNode(scene, { name: node }));
    const name = await claimOf({});
    const { volume } = await scene.bound(name);
    const pod = await createPod(scene, name, node);
    await scheduledNode(scene, pod);
    await scene.deleteClaim(name);
    assert.match((await explain(name, 'deleting')).message, new RegExp(`because it is used by Pod ${pod}\\.`));
    const { metadata } = volume;
    await scene.admin.core.deletePersistentVolume({ name: metadata?.name ?? '' });
    assert.match((await volumeCause(metadata?.name ?? '', 'in-use')).message, /is still bound to it/);
    await deletePod(scene, pod);
    await scene.volumeGone(metadata?.name ?? '');

    const lost = await claimOf({ className: await scene.createClass({ reclaimPolicy: 'Retain' }) });
    const bound = await scene.bound(lost);
    await scene.admin.core.deletePersistentVolume({ name: bound.volume.metadata?.name ?? '' });
    await removeFinalizers(bound.volume.metadata?.name ?? '');
    await explain(lost, 'lost');
  });

  const volumeCause = (name: string, cause: string): Promise<Explanation> =>
    named(scene, kubeconfig, `pv/${name}`, cause);

  async function removeFinalizers(name: string): Promise<void> {
    const body = { metadata: { finalizers: null } };
    const options = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);
    await scene.admin.core.patchPersistentVolume({ name, body }, options);
  }

  /** A volume that somebody made by hand. @returns a function that removes it. */
  async function createVolume(name: string, spec: Partial<V1PersistentVolumeSpec>): Promise<() => Promise<void>> {
    await scene.admin.core.createPersistentVolume({
      body: {
        metadata: { name },
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
      assert.match((await volumeCause(kept, 'retained')).message, /its policy is Retain/);
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
    const kubeconfig = await reader(scene);
    const { metadata } = await scene.createClaim({ className: await scene.createClass() });
    const object = `${scene.namespace}/${metadata?.name ?? ''}`;
    assert.match((await named(scene, kubeconfig, object, 'no-topology')).message, /no available topology found/);
  });
});
