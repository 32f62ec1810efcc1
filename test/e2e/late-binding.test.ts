/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test, type TestContext } from 'node:test';
import { plainJson } from './plain-json.ts';
import { openScene, type Scene } from '../support/scene.ts';
import { readerKubeconfig, why } from '../support/why-command.ts';
import { createNode, createPod, deletePod, scheduledNode } from '../support/scheduled-pod.ts';

const zone = 'topology.e2e.example.com/zone';

describe('a claim whose class waits for its first consumer', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene();
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  test('gets its volume once a pod uses it', async (t) => {
    const nodeName = `${scene.namespace}-node`;
    t.after(await createNode(scene, { name: nodeName }));
    const className = await scene.createClass({ volumeBindingMode: 'WaitForFirstConsumer' });
    const waiting = await scene.createClaim({ className });
    const name = waiting.metadata?.name ?? '';
    const other = await scene.createClaim({ className: await scene.createClass() });
    await scene.bound(other.metadata?.name ?? ''); // the waiting claim came first, so it has been looked at as well
    assert.equal((await scene.readClaim(name)).status?.phase, 'Pending');
    assert.equal((await scene.driver.calls('CreateVolume')).length, 1);

    const pod = await createPod(scene, name, nodeName);
    const { claim } = await scene.bound(name);
    assert.equal(claim.metadata?.annotations?.['volume.kubernetes.io/selected-node'], nodeName);
    assert.equal(await scheduledNode(scene, pod), nodeName);
    await deletePod(scene, pod);
  });
});

/** The rights that topology needs besides those of the base. */
const rbac = ['components/topology/rbac.yaml'];

describe('a driver with zones', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene({ driverFlags: [`--topology=${zone}=a`, `--topology=${zone}=b`], rbac });
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  /** A node in each zone, named after it. */
  async function createNodes(t: TestContext): Promise<void> {
    for (const each of ['a', 'b']) {
      t.after(await createNode(scene, { name: `${scene.namespace}-${each}`, labels: { [zone]: each } }));
    }
  }

  const inZone = (...zones: string[]) => ({
    required: {
      nodeSelectorTerms: zones.map((each) => ({ matchExpressions: [{ key: zone, operator: 'In', values: [each] }] })),
    },
  });

  test("makes the volume in the zone of the pod's node", async (t) => {
    await createNodes(t);
    const className = await scene.createClass({ volumeBindingMode: 'WaitForFirstConsumer' });
    const { metadata } = await scene.createClaim({ className });
    const name = metadata?.name ?? '';
    const pod = await createPod(scene, name, `${scene.namespace}-b`);
    const { volume } = await scene.bound(name);
    assert.ok(volume.spec?.nodeAffinity);
    assert.deepEqual(plainJson(volume.spec.nodeAffinity), inZone('b'));
    assert.equal(await scheduledNode(scene, pod), `${scene.namespace}-b`);
    const call = (await scene.driver.calls('CreateVolume')).at(-1);
    assert.deepEqual(call?.request.accessibility_requirements, {
      requisite: [{ segments: { [zone]: 'a' } }, { segments: { [zone]: 'b' } }],
      preferred: [{ segments: { [zone]: 'b' } }, { segments: { [zone]: 'a' } }],
    });
    await deletePod(scene, pod);
  });

  test('makes the volumes of a StatefulSet in one zone after the other, and their pods follow', async (t) => {
    await createNodes(t);
    const className = await scene.createClass();
    const zones: unknown[] = [];
    for (const name of ['data-web-0', 'data-web-1']) {
      await scene.createClaim({ className, name });
      const { volume } = await scene.bound(name);
      zones.push(plainJson(volume.spec?.nodeAffinity ?? {}));
    }
    assert.deepEqual(zones, [inZone('b'), inZone('a')]); // 1181096325 and the ordinal, modulo 2
    const pod = await createPod(scene, 'data-web-1');
    assert.equal(await scheduledNode(scene, pod), `${scene.namespace}-a`);
    await deletePod(scene, pod);
  });

  test('lets the scheduler choose again where a zone is full', async (t) => {
    await createNodes(t);
    const className = await scene.createClass({ volumeBindingMode: 'WaitForFirstConsumer' });
    const claim = await scene.createClaim({ className });
    const name = claim.metadata?.name ?? '';
    const full = { method: 'CreateVolume', code: 'RESOURCE_EXHAUSTED', message: 'the zone is full', times: 1 };
    await scene.driver.setFaults([full]);
    const pod = await createPod(scene, name);
    const { claim: bound, volume } = await scene.bound(name);
    assert.match(
      (await scene.event(claim, 'ProvisioningFailed')).message ?? '',
      /ResourceExhausted desc = the zone is full/,
    );
    const node = bound.metadata?.annotations?.['volume.kubernetes.io/selected-node'] ?? '';
    assert.equal(await scheduledNode(scene, pod), node);
    assert.deepEqual(plainJson(volume.spec?.nodeAffinity ?? {}), inZone(node.slice(-1)));
    await deletePod(scene, pod);
  });
});

describe('a driver with two topology keys', () => {
  const rack = 'topology.e2e.example.com/rack';
  let scene: Scene;
  before(async () => {
    scene = await openScene({
      driverFlags: [`--topology=${zone}=a`, `--topology=${rack}=1`, `--topology=${rack}=2`],
      rbac,
    });
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  test('a class that allows by one of them: it is said that the selected node cannot use the volume', async (t) => {
    const nodeName = `${scene.namespace}-2`;
    t.after(await createNode(scene, { name: nodeName, labels: { [zone]: 'a', [rack]: '2' } }));
    const allowedTopologies = [{ matchLabelExpressions: [{ key: zone, values: ['a'] }] }];
    const className = await scene.createClass({ volumeBindingMode: 'WaitForFirstConsumer', allowedTopologies });
    const claim = await scene.createClaim({ className });
    const name = claim.metadata?.name ?? '';
    const pod = await createPod(scene, name);
    const { volume } = await scene.bound(name);
    const [term] = volume.spec?.nodeAffinity?.required?.nodeSelectorTerms ?? [];
    assert.deepEqual(term?.matchExpressions?.find(({ key }) => key === rack)?.values, ['1'], 'the volume is saved');
    const { message = '', type } = await scene.event(claim, 'VolumeMisplaced');
    assert.equal(type, 'Warning');
    assert.match(
      message,
      new RegExp(`selected node ${nodeName} cannot use it.*${rack}:1.*this node has map.*${rack}:2`),
    );
    assert.match(scene.sidecar.log(), /The selected node cannot use the volume that the driver created/);
    const kubeconfig = await readerKubeconfig(scene.cluster, scene.namespace);
    const said = [
      `${nodeName}, is not in the node affinity of the volume`,
      `node affinity doesn't match node "${nodeName}"`,
      `the volume can only be used on nodes with .*${rack}=1, and there is none`,
    ]; // before, at and after the scheduler has refused the Pod
    // between the binding and the refusal nothing is said: no node is selected any more, and the Pod has no condition yet
    await scene.eventually(async () => {
      const { verdict, cause, message: text } = await why(kubeconfig, `${scene.namespace}/${name}`);
      assert.deepEqual([verdict, cause], ['bound', 'bound']);
      assert.match(text, new RegExp(said.join('|')));
    });
    await deletePod(scene, pod);
  });
});

describe('a driver with zones, strictly', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene({
      driverFlags: [`--topology=${zone}=a`, `--topology=${zone}=b`],
      sidecarFlags: ['--strict-topology'],
      rbac,
    });
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  test('is offered the zone of the selected node alone', async (t) => {
    for (const each of ['a', 'b']) {
      t.after(await createNode(scene, { name: `${scene.namespace}-${each}`, labels: { [zone]: each } }));
    }
    const allowedTopologies = [{ matchLabelExpressions: [{ key: zone, values: ['b'] }] }];
    const className = await scene.createClass({ volumeBindingMode: 'WaitForFirstConsumer', allowedTopologies });
    const { metadata } = await scene.createClaim({ className });
    const name = metadata?.name ?? '';
    const pod = await createPod(scene, name); // the class leaves one node to choose
    await scene.bound(name);
    assert.equal(await scheduledNode(scene, pod), `${scene.namespace}-b`);
    const [call] = await scene.driver.calls('CreateVolume');
    const term = { segments: { [zone]: 'b' } };
    assert.deepEqual(call?.request.accessibility_requirements, { requisite: [term], preferred: [term] });
    await deletePod(scene, pod);
  });
});
