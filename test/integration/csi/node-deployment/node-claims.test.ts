/** Which claims an instance takes in node deployment. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { startProcess } from '../../../support/started-process.ts';
import { DriverFailure, type RecordingDriver } from '../../../support/fakes/recording-driver.ts';
import { driverName } from '../../../support/api-scene.ts';
import { gi1, identityKey, nodeKey, NodeScene, topologyKey } from './node-scene.ts';
import { programFile } from '../../../support/program-file.ts';

const main = programFile('csi-provisioner');
/** The waits in these scenes: half of the base delay of 2 s is taken off 2, 4 and 5 s. */
const [firstWaitMs, secondWaitMs, thirdWaitMs] = [1000, 3000, 4000];
/** Base and longest delay together. */
const everybodysTurnMs = 7000;
const own = (node: string) => ({ segments: { [topologyKey]: node } });
const allowed = (...values: string[]) => [{ matchLabelExpressions: [{ key: topologyKey, values }] }];
/** What the first event says, which must be that the claim waits. */
const told = (scene: NodeScene): Promise<string> =>
  scene.until('an event', () => {
    const [event] = scene.events();
    return event && `${event.reason}: ${event.message}`;
  });
/** The claim is checked again, waits for its turn and gets its volume. */
const boundAfterSecondWait = async (scene: NodeScene): Promise<void> => {
  await scene.waits(2);
  await scene.clock.advance(secondWaitMs);
  await scene.volume();
};
const full = (driver: RecordingDriver): void => driver.always('GetCapacity', { available_capacity: 100 });

describe('node deployment, start', () => {
  for (const { name, flags } of [
    { name: 'without NODE_NAME the program ends before any connection', flags: [] },
    { name: 'without NODE_NAME the program ends even when only the version is asked for', flags: ['--version'] },
  ]) {
    test(name, async () => {
      const started = await startProcess({
        program: process.execPath,
        args: [main, '--node-deployment', '--csi-address=/nowhere/csi.sock', '--master=http://127.0.0.1:1', ...flags],
        env: { NODE_NAME: undefined, KUBECONFIG: undefined },
      });
      assert.equal(await started.ending(), 'exit code 255');
      assert.match(
        started.log(),
        /The NODE_NAME environment variable must be set when using --enable-node-deployment\./,
      );
      assert.doesNotMatch(started.log(), /Connecting|Probing|csi-provisioner v/);
    });
  }

  test('a driver that cannot say where it runs ends the program', async () => {
    const failing = NodeScene.start({
      script: (driver) => driver.always('NodeGetInfo', new DriverFailure(status.UNIMPLEMENTED, 'no node')),
      until: 'ended',
    });
    await using scene = await failing;
    assert.deepEqual(await scene.program().ended, { code: 255 });
    assert.equal(scene.calls('NodeGetInfo'), 1);
    await scene
      .program()
      .logged('Failed to get node info from CSI driver: rpc error: code = Unimplemented desc = no node');
  });

  test('nodes and CSINodes are not asked for', async () => {
    await using scene = await NodeScene.start();
    await scene.looked();
    assert.ok(scene.requestsFor('persistentvolumeclaims').length > 0);
    assert.deepEqual([...scene.requestsFor('nodes'), ...scene.requestsFor('csinodes')], []);
  });

  test('a driver that was restarted is asked where it runs now', async () => {
    await using scene = await NodeScene.start({ ownTime: true });
    await scene.restartDriver((driver) =>
      driver.always('NodeGetInfo', { node_id: 'n', accessible_topology: own('elsewhere') }),
    );
    const affinity = { matchExpressions: [{ key: topologyKey, operator: 'In', values: ['elsewhere'] }] };
    scene.addVolume('moved', 'Released', { affinity });
    await scene.until('the deletion', () => scene.isDeleted('moved'));
  });
});

describe('node deployment, late binding', () => {
  test('a claim for this node is provisioned at once, with the topology of the node', async () => {
    await using scene = await NodeScene.start({ flags: ['--strict-topology'] });
    scene.addClaim('x', { class: 'late', node: 'n1' });
    await scene.volume();
    assert.deepEqual(scene.creates()[0]?.accessibility_requirements, {
      requisite: [own('n1')],
      preferred: [own('n1')],
    });
    assert.equal(scene.calls('GetCapacity'), 0);
    assert.deepEqual(scene.writesOf(), []);
  });

  for (const { name, node } of [
    { name: 'a claim for another node is left alone', node: 'n2' },
    { name: 'a claim without a node is left alone', node: undefined },
  ]) {
    test(name, async () => {
      await using scene = await NodeScene.start();
      scene.addClaim('x', { class: 'late', ...(node !== undefined && { node }) });
      await scene.looked();
      await scene.clock.advance(60_000);
      await scene.looked();
      assert.deepEqual(
        [scene.creates(), scene.writesOf(), scene.events(), scene.calls('GetCapacity')],
        [[], [], [], 0],
      );
    });
  }

  test('a class that does not allow the selected node fails the claim, which keeps its node', async () => {
    await using scene = await NodeScene.start({ flags: ['--strict-topology'] });
    scene.addClass('n2-only', { volumeBindingMode: 'WaitForFirstConsumer', allowedTopologies: allowed('n2') });
    scene.addClaim('x', { class: 'n2-only', node: 'n1' });
    const { message } = await scene.event('ProvisioningFailed');
    assert.equal(
      message,
      "error generating accessibility requirements: selected node '\"n1\"' topology '[{t/node n1}]' is not in allowed " +
        'topologies: [[{t/node n2}]]',
    );
    await scene.clock.advance(1000);
    await scene.until(
      'a repeat',
      () => (scene.events().find(({ reason }) => reason === 'ProvisioningFailed')?.count ?? 0) > 1,
    );
    assert.equal(scene.owner(), 'n1');
    assert.deepEqual(scene.creates(), []);
  });

  test('a claim whose class is missing is tried again until it appears', async () => {
    await using scene = await NodeScene.start();
    scene.addClaim('x', { class: 'soon' });
    await scene.program().logged('storageClass \\"soon\\" not found');
    assert.deepEqual(scene.events(), []);
    scene.addClass('soon', { volumeBindingMode: 'Immediate' });
    await scene.clock.advance(1000);
    await scene.waits();
    await scene.clock.advance(firstWaitMs);
    await scene.volume();
  });

  test('a node without room gives the claim back', async () => {
    await using scene = await NodeScene.start({ flags: ['--strict-topology'] });
    scene.driver().next('CreateVolume', new DriverFailure(status.RESOURCE_EXHAUSTED, 'full'));
    scene.addClaim('x', { class: 'late', node: 'n1' });
    await scene.until('the claim without node', () => scene.owner() === undefined);
    assert.match((await scene.event('ProvisioningFailed')).message, /full/);
    assert.deepEqual(scene.writesOf(), ['PUT -']);
    await scene.looked();
    await scene.clock.advance(60_000);
    await scene.looked();
    assert.equal(scene.creates().length, 1);
  });

  test('a claim that could not be given back is tried here again', async () => {
    await using scene = await NodeScene.start({ flags: ['--strict-topology'] });
    scene.driver().next('CreateVolume', new DriverFailure(status.RESOURCE_EXHAUSTED, 'full'));
    scene.refuseClaimWrites(409, 'Conflict', 1);
    scene.addClaim('x', { class: 'late', node: 'n1' });
    await scene.program().logged('The selected node could not be removed from the claim');
    assert.equal(scene.owner(), 'n1');
    await scene.looked();
    assert.equal(scene.creates().length, 1);
    await scene.clock.advance(1000);
    await scene.volume();
    assert.equal(scene.creates().length, 2);
  });

  test('a creation that was aborted goes on here', async () => {
    await using scene = await NodeScene.start({ flags: ['--strict-topology'] });
    scene.driver().next('CreateVolume', new DriverFailure(status.ABORTED, 'busy'));
    scene.addClaim('x', { class: 'late', node: 'n1' });
    await scene.event('ProvisioningFailed');
    await scene.looked();
    await scene.clock.advance(1000);
    await scene.volume();
    assert.equal(scene.creates().length, 2);
    assert.equal(scene.owner(), 'n1');
    assert.deepEqual(scene.writesOf(), []);
  });

  test('the volume says which node made it', async () => {
    await using scene = await NodeScene.start();
    scene.addClaim('x', { class: 'late', node: 'n1' });
    const { spec } = await scene.volume();
    assert.match(spec.csi.volumeAttributes[identityKey] ?? '', new RegExp(`^\\d+-\\d+-${driverName}-n1$`));
  });
});

describe('node deployment, immediate binding', () => {
  test('after a wait and a check of the capacity the node takes the claim', async () => {
    await using scene = await NodeScene.start();
    scene.addClaim();
    await scene.waits();
    await scene.clock.advance(firstWaitMs - 1);
    await scene.looked();
    assert.equal(scene.calls('GetCapacity'), 0);
    await scene.clock.advance(1);
    await scene.volume();
    assert.deepEqual(scene.writesOf(), ['PUT n1']);
    const { request } = await scene.called('GetCapacity');
    assert.deepEqual(request['accessible_topology'], own('n1'));
    assert.equal((request['volume_capabilities'] as object[]).length, 1);
    const order = scene.driver().calls.map(({ method }) => method);
    assert.ok(order.indexOf('GetCapacity') < order.lastIndexOf('CreateVolume'));
    assert.deepEqual(scene.creates()[0]?.accessibility_requirements?.requisite, [own('n1')]);
  });

  test('a claim that names the node already is provisioned at once', async () => {
    await using scene = await NodeScene.start();
    scene.addClaim('x', { node: 'n1' });
    await scene.volume();
    assert.equal(scene.calls('GetCapacity'), 0);
    assert.deepEqual(scene.writesOf(), []);
  });

  test('a claim that another node takes during the wait is left to it', async () => {
    await using scene = await NodeScene.start();
    scene.addClaim();
    await scene.waits();
    scene.annotate({ 'volume.kubernetes.io/selected-node': 'n2' });
    await scene.looked();
    await scene.clock.advance(60_000);
    await scene.looked();
    assert.equal(scene.calls('GetCapacity'), 0);
    assert.deepEqual([scene.writesOf(), scene.events(), scene.creates()], [[], [], []]);
  });

  test('a claim that was written meanwhile is contested again', async () => {
    await using scene = await NodeScene.start();
    scene.refuseClaimWrites(409, 'Conflict', 1);
    scene.addClaim();
    await scene.waits();
    await scene.clock.advance(firstWaitMs);
    await scene.waits(2);
    await scene.clock.advance(secondWaitMs - 1);
    await scene.looked();
    assert.equal(scene.calls('GetCapacity'), 1);
    await scene.clock.advance(1);
    await scene.volume();
    assert.equal(scene.calls('GetCapacity'), 2);
    assert.deepEqual(scene.writesOf(), ['PUT n1', 'PUT n1']);
    assert.ok(scene.events().every(({ type }) => type === 'Normal'));
  });

  test('each wait is longer than the one before', async () => {
    await using scene = await NodeScene.start();
    scene.refuseClaimWrites(409, 'Conflict', 2);
    scene.addClaim();
    await scene.waits();
    await scene.clock.advance(firstWaitMs);
    await scene.waits(2);
    await scene.clock.advance(secondWaitMs);
    await scene.waits(3);
    await scene.clock.advance(thirdWaitMs - 1);
    await scene.looked();
    assert.equal(scene.writesOf().length, 2);
    await scene.clock.advance(1);
    await scene.volume();
    assert.deepEqual(scene.writesOf(), ['PUT n1', 'PUT n1', 'PUT n1']);
  });

  test('a claim that may not be written has an event that says so, and is tried again', async () => {
    await using scene = await NodeScene.start();
    scene.refuseClaimWrites(403, 'Forbidden', 1);
    scene.addClaim();
    await scene.waits();
    await scene.clock.advance(firstWaitMs);
    const { message } = await scene.event('ProvisioningFailed');
    assert.match(message, /^node check failed: PVC ns\/x: selecting node "n1" for PVC failed: .*refused with 403/);
    assert.deepEqual(
      scene.events().map(({ reason }) => reason),
      ['Provisioning', 'ProvisioningFailed'],
    );
    await scene.looked();
    await scene.clock.advance(1000);
    await boundAfterSecondWait(scene);
    assert.equal(scene.calls('GetCapacity'), 2);
  });

  test('a claim that is deleted during the wait is forgotten without an event', async () => {
    await using scene = await NodeScene.start();
    scene.addClaim();
    await scene.waits();
    scene.removeClaim();
    await scene.looked();
    await scene.clock.advance(60_000);
    await scene.looked();
    assert.equal(scene.calls('GetCapacity'), 0);
    assert.deepEqual([scene.events(), scene.creates()], [[], []]);
  });

  test('a claim of the same name as a deleted one is contested on its own', async () => {
    await using scene = await NodeScene.start();
    scene.addClaim();
    await scene.waits();
    await scene.clock.advance(600);
    scene.removeClaim();
    const { metadata } = scene.addClaim();
    await scene.waits(2);
    await scene.clock.advance(firstWaitMs - 1);
    await scene.looked();
    assert.equal(scene.calls('GetCapacity'), 0);
    await scene.clock.advance(1);
    await scene.volume();
    assert.equal(scene.creates()[0]?.name, `pvc-${metadata.uid ?? ''}`);
    assert.equal(scene.calls('GetCapacity'), 1);
    assert.ok(scene.events().every(({ type }) => type === 'Normal'));
  });

  test('a node without capacity leaves the claim to others without an event', async () => {
    await using scene = await NodeScene.start({ script: full });
    scene.addClaim();
    await scene.waits();
    await scene.clock.advance(firstWaitMs);
    await scene.program().logged('Not enough capacity for the claim');
    await scene.looked();
    assert.deepEqual([scene.writesOf(), scene.events(), scene.creates()], [[], [], []]);
  });

  test('that no node has room is one event, once all of them have checked', async () => {
    await using scene = await NodeScene.start({ nodes: ['n1', 'n2'], script: full });
    scene.addClaim();
    await scene.waits();
    await scene.waits(1, 'n2');
    await scene.clock.advance(firstWaitMs);
    for (const node of ['n1', 'n2']) await scene.program(node).logged('Not enough capacity for the claim');
    await scene.clock.advance(everybodysTurnMs - 1);
    assert.deepEqual(scene.events(), []);
    await scene.clock.advance(1);
    assert.equal(
      await told(scene),
      'ProvisioningWaiting: Waiting for a node with room for 1Gi of StorageClass "imm". Free storage on a node, request less, or use a class with enough capacity',
    );
    await scene.clock.advance(2_000_000); // looked at again, twice
    assert.deepEqual(
      scene.events().map(({ count }) => count),
      [1],
    );
  });

  test('a claim that another node has taken meanwhile gets no event', async () => {
    await using scene = await NodeScene.start({ script: full });
    scene.addClaim();
    await scene.waits();
    await scene.clock.advance(firstWaitMs);
    await scene.program().logged('Not enough capacity for the claim');
    scene.annotate({ [nodeKey]: 'n2' });
    await scene.looked();
    await scene.clock.advance(everybodysTurnMs * 2);
    assert.deepEqual(scene.events(), []);
  });

  test('a selected node that does nothing is an event after five minutes', async () => {
    await using scene = await NodeScene.start();
    scene.addClaim('x', { node: 'gone' });
    await scene.looked();
    await scene.clock.advance(299_999);
    assert.deepEqual(scene.events(), []);
    await scene.clock.advance(1);
    assert.equal(
      await told(scene),
      'ProvisioningWaiting: Waiting for node "gone", which was selected. ' +
        "Check the driver's Pod on that node. If it is running, it may still be creating the volume: wait. If not, get it running, or recreate the claim",
    );
  });

  test('capacity that comes later is not noticed by itself', async () => {
    await using scene = await NodeScene.start({ script: full });
    scene.addClaim();
    await scene.waits();
    await scene.clock.advance(firstWaitMs);
    await scene.program().logged('Not enough capacity for the claim');
    scene.driver().always('GetCapacity', { available_capacity: 100 * gi1 });
    await scene.clock.advance(600_000);
    await scene.looked();
    assert.equal(scene.calls('GetCapacity'), 1);
    await scene.clock.advance(301_000); // all claims are looked at every quarter of an hour
    await boundAfterSecondWait(scene);
  });

  for (const { name, free } of [
    {
      name: 'a released volume',
      free: (scene: NodeScene) => {
        const matchExpressions = [{ key: topologyKey, operator: 'In', values: ['n1'] }];
        for (const each of ['v1', 'v2', 'v3']) scene.addVolume(each, 'Released', { affinity: { matchExpressions } });
        return Promise.all(['v1', 'v2', 'v3'].map((each) => scene.until(each, () => scene.isDeleted(each))));
      },
    },
    {
      name: 'the volume of a claim that was deleted meanwhile',
      free: async (scene: NodeScene) => {
        const created = Promise.withResolvers<object>();
        scene.driver().next('CreateVolume', () => created.promise);
        scene.addClaim('gone', { class: 'late', node: 'n1' });
        await scene.called('CreateVolume');
        scene.removeClaim('gone');
        await scene.looked();
        created.resolve({ volume: { volume_id: 'of-gone', capacity_bytes: gi1, accessible_topology: [own('n1')] } });
        await scene.called('DeleteVolume');
      },
    },
  ]) {
    test(`room that was freed here is noticed, with one check for each claim: ${name}`, async () => {
      await using scene = await NodeScene.start({ script: full, workers: 2 });
      scene.addClaim();
      await scene.waits();
      await scene.clock.advance(firstWaitMs);
      await scene.program().logged('Not enough capacity for the claim');
      scene.driver().always('GetCapacity', { available_capacity: 100 * gi1 });
      await free(scene);
      await scene.looked();
      await scene.clock.advance(1000);
      await boundAfterSecondWait(scene);
      assert.equal(scene.calls('GetCapacity'), 2);
    });
  }

  test('room that is freed while the capacity is checked is noticed', async () => {
    await using scene = await NodeScene.start({ script: full, workers: 2 });
    const answer = Promise.withResolvers<object>();
    scene.driver().next('GetCapacity', () => answer.promise);
    scene.addClaim();
    await scene.waits();
    await scene.clock.advance(firstWaitMs);
    await scene.called('GetCapacity');
    const matchExpressions = [{ key: topologyKey, operator: 'In', values: ['n1'] }];
    scene.addVolume('v1', 'Released', { affinity: { matchExpressions } });
    await scene.until('the deletion', () => scene.isDeleted('v1'));
    await scene.clock.advance(1000);
    scene.driver().always('GetCapacity', { available_capacity: 100 * gi1 });
    answer.resolve({ available_capacity: 100 });
    await scene.program().logged('Not enough capacity for the claim');
    await scene.clock.advance(1000);
    await boundAfterSecondWait(scene);
  });

  test('a deletion on another node is no reason to check again', async () => {
    await using scene = await NodeScene.start({ script: full });
    scene.addClaim();
    await scene.waits();
    await scene.clock.advance(firstWaitMs);
    await scene.program().logged('Not enough capacity for the claim');
    const matchExpressions = [{ key: topologyKey, operator: 'In', values: ['n2'] }];
    scene.addVolume('v1', 'Released', { affinity: { matchExpressions } });
    await scene.looked();
    await scene.clock.advance(600_000);
    await scene.looked();
    assert.equal(scene.calls('GetCapacity'), 1);
  });

  test('capacity that came with a restart of the driver is noticed at once', async () => {
    await using scene = await NodeScene.start({ script: full, ownTime: true });
    scene.addClaim();
    await scene.program().logged('Not enough capacity for the claim');
    await scene.restartDriver(() => undefined);
    await scene.volume();
  });

  test('capacity that came later is noticed when the claim changes, after a longer wait', async () => {
    await using scene = await NodeScene.start({ script: full });
    scene.addClaim();
    await scene.waits();
    await scene.clock.advance(firstWaitMs);
    await scene.program().logged('Not enough capacity for the claim');
    scene.driver().always('GetCapacity', { available_capacity: 100 * gi1 });
    scene.annotate({ please: 'look' });
    await scene.waits(2);
    await scene.clock.advance(secondWaitMs - 1);
    await scene.looked();
    assert.equal(scene.calls('GetCapacity'), 1);
    await scene.clock.advance(1);
    await scene.volume();
    assert.equal(scene.calls('GetCapacity'), 2);
  });

  for (const { name, script } of [
    {
      name: 'a driver that cannot report its capacity is assumed to have enough',
      script: (driver: RecordingDriver) => driver.always('GetCapacity', new DriverFailure(status.UNIMPLEMENTED, 'no')),
    },
    {
      name: 'capacity for exactly the request is enough',
      script: (driver: RecordingDriver) => driver.always('GetCapacity', { available_capacity: gi1 }),
    },
  ]) {
    test(name, async () => {
      await using scene = await NodeScene.start({ script });
      scene.addClaim();
      await scene.waits();
      await scene.clock.advance(firstWaitMs);
      await scene.volume();
      assert.equal(scene.calls('GetCapacity'), 1);
      assert.deepEqual(scene.writesOf(), ['PUT n1']);
    });
  }

  test('without --node-deployment-immediate-binding claims of Immediate classes are left alone', async () => {
    await using scene = await NodeScene.start({ flags: ['--node-deployment-immediate-binding=false'] });
    scene.addClaim();
    await scene.looked();
    await scene.clock.advance(60_000);
    await scene.looked();
    assert.equal(scene.calls('GetCapacity'), 0);
    assert.deepEqual([scene.writesOf(), scene.events(), scene.creates()], [[], [], []]);
  });

  test('without --node-deployment-immediate-binding a claim that somebody gives to the node is provisioned', async () => {
    await using scene = await NodeScene.start({ flags: ['--node-deployment-immediate-binding=false'] });
    scene.addClaim();
    await scene.looked();
    scene.annotate({ 'volume.kubernetes.io/selected-node': 'n1' });
    await scene.volume();
    assert.equal(scene.calls('GetCapacity'), 0);
  });

  test('a claim whose class does not allow the node is left alone', async () => {
    await using scene = await NodeScene.start();
    scene.addClass('n7-only', { volumeBindingMode: 'Immediate', allowedTopologies: allowed('n7') });
    scene.addClaim('x', { class: 'n7-only' });
    await scene.looked();
    await scene.clock.advance(60_000);
    await scene.looked();
    assert.equal(scene.calls('GetCapacity'), 0);
    assert.deepEqual([scene.writesOf(), scene.creates()], [[], []]);
    assert.match(
      await told(scene),
      /^ProvisioningWaiting: Waiting for a node that StorageClass "n7-only" allows\. Check that the driver's node plugin runs/,
    );
  });

  test('a class that allows the topology which the driver has since its restart is served at once', async () => {
    await using scene = await NodeScene.start({ ownTime: true });
    scene.addClass('moved', { volumeBindingMode: 'Immediate', allowedTopologies: allowed('elsewhere') });
    scene.addClaim('x', { class: 'moved' });
    await scene.program().logged('The class does not allow this node');
    await scene.restartDriver((driver) =>
      driver.always('NodeGetInfo', { node_id: 'n', accessible_topology: own('elsewhere') }),
    );
    await scene.volume();
  });

  test('a class that allows it among others is provisioned with the node first', async () => {
    await using scene = await NodeScene.start({ nodes: ['n2'] });
    scene.addClass('both', { volumeBindingMode: 'Immediate', allowedTopologies: allowed('n1', 'n2') });
    scene.addClaim('x', { class: 'both' });
    await scene.waits(1, 'n2');
    await scene.clock.advance(firstWaitMs);
    await scene.volume();
    assert.deepEqual(scene.creates('n2')[0]?.accessibility_requirements, {
      requisite: [own('n1'), own('n2')],
      preferred: [own('n2'), own('n1')],
    });
  });

  test('a node that turns out to be full gives the claim back and contests it anew', async () => {
    await using scene = await NodeScene.start();
    scene.driver().next('CreateVolume', new DriverFailure(status.RESOURCE_EXHAUSTED, 'full'));
    scene.addClaim();
    await scene.waits();
    await scene.clock.advance(firstWaitMs);
    await scene.event('ProvisioningFailed');
    await scene.waits(2);
    await scene.clock.advance(firstWaitMs);
    await scene.volume();
    assert.equal(scene.calls('GetCapacity'), 2);
    assert.deepEqual(scene.writesOf(), ['PUT n1', 'PUT -', 'PUT n1']);
  });

  test('the source of a restore is protected only by the node that has the claim', async () => {
    await using scene = await NodeScene.start({
      nodes: ['n1', 'n2'],
      controller: ['CREATE_DELETE_VOLUME', 'CREATE_DELETE_SNAPSHOT'],
      random: (node) => () => (node === 'n1' ? 0.5 : 0),
    });
    scene.addSnapshot('snap');
    scene.addClaim('x', {
      spec: { dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'snap' } },
    });
    await Promise.all([scene.waits(1, 'n1'), scene.waits(1, 'n2')]);
    await scene.clock.advance(firstWaitMs);
    await scene.volume();
    const writes = scene.wire.requests.filter(
      ({ method, path }) => method === 'PUT' && /claims\/x|snapshots\/snap/.test(path),
    );
    assert.match(writes[0]?.path ?? '', /persistentvolumeclaims\/x/);
    const protections = writes.filter(
      ({ path, body }) => path.includes('snap') && (body.metadata.finalizers ?? []).length > 0,
    );
    assert.equal(protections.length, 1);
    assert.deepEqual(scene.creates('n2'), []);
  });

  test('a driver without topology owns and provisions like any other', async () => {
    await using scene = await NodeScene.start({ topology: false });
    scene.addClaim();
    await scene.waits();
    await scene.clock.advance(firstWaitMs);
    const { spec } = await scene.volume();
    assert.equal(spec.nodeAffinity, undefined);
    const { request } = await scene.called('GetCapacity');
    assert.equal(request['accessible_topology'] ?? undefined, undefined);
    assert.equal(scene.creates()[0]?.accessibility_requirements ?? undefined, undefined);
  });
});

describe('node deployment, several nodes', () => {
  test('of two nodes that want a claim one gets it', async () => {
    await using scene = await NodeScene.start({ nodes: ['n1', 'n2'] });
    scene.addClaim();
    await Promise.all([scene.waits(1, 'n1'), scene.waits(1, 'n2')]);
    await scene.clock.advance(firstWaitMs); // both at the same moment
    await scene.volume();
    await scene.clock.advance(60_000);
    await Promise.all([scene.looked('n1'), scene.looked('n2')]);
    assert.equal(scene.creates('n1').length + scene.creates('n2').length, 1);
    const writes = scene.writesOf();
    assert.ok(writes.length <= 2 && new Set(writes).size === writes.length, writes.join());
    assert.equal(scene.events().filter(({ reason }) => reason === 'ProvisioningSucceeded').length, 1);
  });

  test('of three nodes and thirty claims each claim is provisioned once, on the node that it names', async () => {
    const nodes = ['n1', 'n2', 'n3'];
    await using scene = await NodeScene.start({
      nodes,
      workers: 100,
      ownTime: true,
      random: () => Math.random,
      flags: ['--node-deployment-base-delay=200ms', '--node-deployment-max-delay=400ms'],
    });
    const names = Array.from({ length: 30 }, (_, index) => `c${index}`);
    for (const name of names) scene.addClaim(name);
    await scene.until('thirty volumes', () => scene.volumes.length === 30);
    const made = nodes.flatMap((node) => scene.creates(node).map(({ name }) => ({ node, name })));
    assert.equal(made.length, 30);
    for (const name of names) {
      const volume = `pvc-${scene.claim(name)?.metadata.uid ?? ''}`;
      assert.deepEqual(
        made.filter((each) => each.name === volume),
        [{ node: scene.owner(name), name: volume }],
      );
    }
  });
});

describe('node deployment, beyond the original', () => {
  test('waiting claims occupy no worker', async () => {
    await using scene = await NodeScene.start();
    for (let each = 0; each < 20; each++) scene.addClaim(`w${each}`);
    await scene.waits(20);
    scene.addClaim('x', { node: 'n1' });
    await scene.volume();
    assert.equal(scene.calls('GetCapacity'), 0);
  });

  test('a driver that does not answer holds up other claims no longer than the timeout', async () => {
    await using scene = await NodeScene.start({ flags: ['--timeout=1s'] });
    scene.driver().next('GetCapacity', () => new Promise<object>(() => undefined));
    scene.addClaim();
    await scene.waits();
    await scene.clock.advance(firstWaitMs);
    await scene.called('GetCapacity');
    scene.addClaim('y', { node: 'n1' });
    await scene.volume('y');
    await scene.volume('x');
  });

  test('a class that is only in the beta annotation counts', async () => {
    await using scene = await NodeScene.start();
    const annotations = { 'volume.beta.kubernetes.io/storage-class': 'imm' };
    scene.addClaim('x', { annotations, spec: { storageClassName: undefined } });
    await scene.waits();
    await scene.clock.advance(firstWaitMs);
    await scene.volume();
  });

  test('a claim without any class is left alone', async () => {
    await using scene = await NodeScene.start();
    scene.addClaim('x', { spec: { storageClassName: undefined } });
    await scene.looked();
    assert.deepEqual([scene.events(), scene.creates()], [[], []]);
  });

  test('leader election is left out, and its health path answers', async () => {
    await using scene = await NodeScene.start({ nodes: ['n1', 'n2'], flags: ['--leader-election'] });
    scene.addClaim('x', { class: 'late', node: 'n1' });
    scene.addClaim('y', { class: 'late', node: 'n2' });
    await Promise.all([scene.volume('x'), scene.volume('y')]);
    const others = scene
      .requestsFor('leases')
      .filter(({ path, bodyText }) => !`${path} ${bodyText}`.includes('-journal-'));
    assert.deepEqual(others, []);
  });

  test('the capacity check records no event for a claim that a populator fills', async () => {
    await using scene = await NodeScene.start({
      nodes: ['n1', 'n2'],
      random: (node) => () => (node === 'n1' ? 0.5 : 0.1),
    });
    scene.addClaim('x', { spec: { dataSourceRef: { apiGroup: 'example.com', kind: 'Filler', name: 'f' } } });
    await Promise.all([scene.waits(1, 'n1'), scene.waits(1, 'n2')]);
    await scene.clock.advance(firstWaitMs);
    await scene.program('n1').logged('assuming an external populator will provision it');
    await scene.clock.advance(60_000);
    await Promise.all([scene.looked('n1'), scene.looked('n2')]);
    const told = ['n1', 'n2'].map(
      (node) => scene.program(node).lines.filter((line) => /"Event occurred".*Assuming an external/.test(line)).length,
    );
    assert.deepEqual(told, [1, 0]);
    assert.equal(scene.calls('GetCapacity', 'n1') + scene.calls('GetCapacity', 'n2'), 0);
  });
});
