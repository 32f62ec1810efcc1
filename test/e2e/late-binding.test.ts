import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { plainJson } from './plain-json.ts';
import { openScene, type Scene } from './scene.ts';
import { createNode, createPod, deletePod, scheduledNode } from './scheduled-pod.ts';

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

/** The program does not send the selected node's topology yet. */
const missing = { todo: 'topology' };

describe('a driver with zones', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene({
      driverFlags: [`--topology=${zone}=a`, `--topology=${zone}=b`],
      sidecarFlags: ['--strict-topology'],
    });
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  test("makes the volume in the zone of the pod's node", missing, async (t) => {
    for (const each of ['a', 'b']) {
      t.after(await createNode(scene, { name: `${scene.namespace}-${each}`, labels: { [zone]: each } }));
    }
    const className = await scene.createClass({ volumeBindingMode: 'WaitForFirstConsumer' });
    const { metadata } = await scene.createClaim({ className });
    const name = metadata?.name ?? '';
    const pod = await createPod(scene, name, `${scene.namespace}-b`);
    const { volume } = await scene.bound(name);
    assert.ok(volume.spec?.nodeAffinity);
    assert.deepEqual(plainJson(volume.spec.nodeAffinity), {
      required: { nodeSelectorTerms: [{ matchExpressions: [{ key: zone, operator: 'In', values: ['b'] }] }] },
    });
    assert.equal(await scheduledNode(scene, pod), `${scene.namespace}-b`);
    await deletePod(scene, pod);
  });
});
