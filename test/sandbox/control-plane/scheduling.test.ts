import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { SandboxObject } from '../../../sandbox/api/client.ts';
import { annotation } from '../../../sandbox/control-plane/annotations.ts';
import { updateObject } from '../../../sandbox/control-plane/object-access.ts';
import { resources, type StorageCapacity } from '../../../sandbox/control-plane/objects.ts';
import { Cluster, type StoredEvent } from './cluster.ts';
import { ProvisionerDouble } from './provisioner-double.ts';

const twoNodes = (why: string): string =>
  `0/2 nodes are available: ${why}. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.`;

function failure(cluster: Cluster, pod: string, text: string): Promise<StoredEvent> {
  return cluster.until(`FailedScheduling about ${pod}: ${text}`, () =>
    cluster.events(pod).find(({ reason, message }) => reason === 'FailedScheduling' && message.includes(text)),
  );
}

function addDriver(cluster: Cluster): void {
  cluster.client.create(resources.csiDrivers, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    metadata: { name: 'x.example.com' },
    spec: { storageCapacity: true },
  });
}

function addCapacity(cluster: Cluster, zone: string, sizes: object): StorageCapacity {
  return cluster.client.create(resources.capacities, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIStorageCapacity',
    metadata: { name: `zone-${zone}`, namespace: 'kube-system' },
    storageClassName: 'late',
    nodeTopology: { matchLabels: { 'topology.kubernetes.io/zone': zone } },
    ...sizes,
  }) as StorageCapacity;
}

const inZone = (zone: string): object => ({
  required: {
    nodeSelectorTerms: [{ matchExpressions: [{ key: 'topology.kubernetes.io/zone', operator: 'In', values: [zone] }] }],
  },
});

describe('delayed binding', () => {
  test('the pod gets its node once its claim was provisioned for that node', async () => {
    await using cluster = new Cluster();
    using _ = new ProvisionerDouble(cluster.client);
    cluster.addClaim('c', 'late');
    await cluster.eventAbout('c', 'WaitForFirstConsumer');
    const steps: string[] = [];
    const note = (step: string, is: boolean): void => {
      if (is && !steps.includes(step)) steps.push(step);
    };
    cluster.client.subscribe(resources.claims, ({ object }) => {
      const { annotations = {} } = object.metadata;
      note('selected-node', annotations[annotation.selectedNode] === 'n1');
      note('provisioner', annotations[annotation.storageProvisioner] === 'x.example.com');
      note('bound', annotations[annotation.bindCompleted] === 'yes');
    });
    cluster.client.subscribe(resources.volumes, () => note('volume', true));
    cluster.client.subscribe(resources.pods, ({ object }) => {
      note('assigned', (object as SandboxObject & { spec: { nodeName?: string } }).spec.nodeName === 'n1');
    });
    cluster.addPod('p', ['c']);
    assert.equal(await cluster.podOnNode('p'), 'n1');
    await cluster.claimInPhase('c', 'Bound');
    await cluster.until('the pod to be seen on its node', () => steps.includes('assigned'));
    assert.deepEqual(steps, ['selected-node', 'provisioner', 'volume', 'bound', 'assigned']);
    const event = await cluster.eventAbout('p', 'Scheduled');
    assert.equal(event.message, 'Successfully assigned default/p to n1');
    assert.equal(event.type, 'Normal');
    assert.deepEqual(event['source'], { component: 'default-scheduler' });
    await cluster.until('a running pod', () => cluster.pod('p')?.status?.phase === 'Running');
    assert.equal(cluster.event('c', 'WaitForPodScheduled'), undefined);
  });

  test('when the provisioner sends the node back, the pod fails and is scheduled anew', async () => {
    await using cluster = new Cluster();
    using provisioner = new ProvisionerDouble(cluster.client, { refusals: 1 });
    cluster.addClaim('c', 'late');
    cluster.addPod('p', ['c']);
    const event = await failure(cluster, 'p', 'binding volumes');
    assert.equal(
      event.message,
      'running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "c"',
    );
    assert.equal(await cluster.podOnNode('p'), 'n1');
    await cluster.claimInPhase('c', 'Bound');
    assert.deepEqual(provisioner.refusedNodes, ['n1']);
  });

  test('with avoidLastNode the next attempt goes to another node', async () => {
    await using cluster = new Cluster({ scheduling: { avoidLastNode: true, backoffBaseMs: 20 } });
    using provisioner = new ProvisionerDouble(cluster.client, { refusals: 1 });
    cluster.addClaim('c', 'late');
    cluster.addPod('p', ['c']);
    assert.equal(await cluster.podOnNode('p'), 'n2');
    assert.deepEqual(provisioner.refusedNodes, ['n1']);
    assert.equal(cluster.claim('c')?.metadata.annotations?.[annotation.selectedNode], 'n2');
  });

  test('a claim that takes too long fails the attempt, and the pod is tried again', async () => {
    await using cluster = new Cluster({ scheduling: { bindTimeoutMs: 50, backoffBaseMs: 20 } });
    cluster.addClaim('c', 'late');
    cluster.addPod('p', ['c']);
    await failure(cluster, 'p', 'binding volumes: context deadline exceeded');
    assert.equal(cluster.claim('c')?.metadata.annotations?.[annotation.selectedNode], 'n1');
    using _ = new ProvisionerDouble(cluster.client);
    assert.equal(await cluster.podOnNode('p'), 'n1');
  });

  test('a claim deleted while the pod waits fails the attempt', async () => {
    await using cluster = new Cluster();
    cluster.addClaim('c', 'late');
    cluster.addPod('p', ['c']);
    await cluster.eventAbout('c', 'ExternalProvisioning');
    cluster.deleteClaim('c');
    await failure(cluster, 'p', 'persistentvolumeclaim "c" not found');
    assert.equal(cluster.claim('c'), undefined);
  });

  test('allowed topologies decide the node', async () => {
    await using cluster = new Cluster();
    using _ = new ProvisionerDouble(cluster.client);
    cluster.addClass('zoned', {
      volumeBindingMode: 'WaitForFirstConsumer',
      allowedTopologies: [{ matchLabelExpressions: [{ key: 'topology.kubernetes.io/zone', values: ['b'] }] }],
    });
    cluster.addClaim('c', 'zoned');
    cluster.addPod('p', ['c']);
    assert.equal(await cluster.podOnNode('p'), 'n2');
    assert.equal(cluster.claim('c')?.metadata.annotations?.[annotation.selectedNode], 'n2');
  });

  test('two pods of one claim go to the node it was provisioned for', async () => {
    await using cluster = new Cluster({ scheduling: { nodeChoice: 'roundRobin' } });
    cluster.addClaim('c', 'late');
    cluster.addPod('p', ['c']);
    cluster.addPod('q', ['c']);
    await cluster.eventAbout('c', 'ExternalProvisioning');
    using _ = new ProvisionerDouble(cluster.client);
    assert.equal(await cluster.podOnNode('p'), 'n1');
    assert.equal(await cluster.podOnNode('q'), 'n1');
  });
});

describe('storage capacity', () => {
  test('the node with enough free storage is chosen', async () => {
    await using cluster = new Cluster();
    using _ = new ProvisionerDouble(cluster.client);
    addDriver(cluster);
    addCapacity(cluster, 'a', { capacity: '1Gi' });
    addCapacity(cluster, 'b', { capacity: '10Gi' });
    cluster.addClaim('c', 'late', { size: '5Gi' });
    cluster.addPod('p', ['c']);
    assert.equal(await cluster.podOnNode('p'), 'n2');
  });

  test('without enough storage the pod waits, and goes on after a capacity update', async () => {
    await using cluster = new Cluster();
    using _ = new ProvisionerDouble(cluster.client);
    addDriver(cluster);
    addCapacity(cluster, 'a', { capacity: '1Gi' });
    const capacity = addCapacity(cluster, 'b', { capacity: '2Gi' });
    cluster.addClaim('c', 'late', { size: '5Gi' });
    cluster.addPod('p', ['c']);
    const event = await failure(cluster, 'p', 'free storage');
    assert.equal(event.message, twoNodes('2 node(s) did not have enough free storage'));
    assert.equal(event.type, 'Warning');
    const condition = await cluster.until('the condition', () => cluster.pod('p')?.status?.conditions?.[0]);
    assert.equal(condition.type, 'PodScheduled');
    assert.equal(condition.status, 'False');
    assert.equal(condition.reason, 'Unschedulable');
    assert.equal(condition.message, event.message);
    updateObject(cluster.client, resources.capacities, capacity, (copy) => {
      copy.capacity = '100Gi';
    });
    assert.equal(await cluster.podOnNode('p'), 'n2');
  });

  test('the maximum volume size of a segment counts more than its capacity', async () => {
    await using cluster = new Cluster();
    using _ = new ProvisionerDouble(cluster.client);
    addDriver(cluster);
    addCapacity(cluster, 'a', { capacity: '100Gi', maximumVolumeSize: '2Gi' });
    addCapacity(cluster, 'b', { capacity: '10Gi' });
    cluster.addClaim('c', 'late', { size: '5Gi' });
    cluster.addPod('p', ['c']);
    assert.equal(await cluster.podOnNode('p'), 'n2');
  });

  test('a driver that does not publish capacity is not asked for it', async () => {
    await using cluster = new Cluster();
    using _ = new ProvisionerDouble(cluster.client);
    addCapacity(cluster, 'b', { capacity: '10Gi' });
    cluster.addClaim('c', 'late', { size: '5Gi' });
    cluster.addPod('p', ['c']);
    assert.equal(await cluster.podOnNode('p'), 'n1');
  });
});

describe('pods that cannot be scheduled', () => {
  test('a pod with an immediate claim that is not bound waits for it', async () => {
    await using cluster = new Cluster();
    cluster.addClaim('c', 'fast');
    cluster.addPod('p', ['c']);
    const event = await failure(cluster, 'p', 'unbound');
    assert.equal(event.message, twoNodes('pod has unbound immediate PersistentVolumeClaims'));
    using _ = new ProvisionerDouble(cluster.client);
    assert.equal(await cluster.podOnNode('p'), 'n1');
  });

  test('a missing claim is named, and the pod goes on once it is there', async () => {
    await using cluster = new Cluster();
    using _ = new ProvisionerDouble(cluster.client);
    cluster.addPod('p', ['c']);
    const event = await failure(cluster, 'p', 'not found');
    assert.equal(event.message, twoNodes('persistentvolumeclaim "c" not found'));
    cluster.addClaim('c', 'late');
    assert.equal(await cluster.podOnNode('p'), 'n1');
  });

  test('a lost claim is named with its volume', async () => {
    await using cluster = new Cluster();
    cluster.addVolume('v', '1Gi');
    cluster.addClaim('c', '', { volumeName: 'v' });
    await cluster.claimInPhase('c', 'Bound');
    cluster.client.delete(resources.volumes, { name: 'v' });
    updateObject(cluster.client, resources.volumes, cluster.volume('v')!, ({ metadata }) => {
      metadata.finalizers = [];
    });
    await cluster.claimInPhase('c', 'Lost');
    cluster.addPod('p', ['c']);
    const event = await failure(cluster, 'p', 'non-existent');
    assert.equal(event.message, twoNodes('persistentvolumeclaim "c" bound to non-existent persistentvolume "v"'));
  });

  test('a claim held by another pod while it is being deleted takes no new pods', async () => {
    await using cluster = new Cluster();
    using _ = new ProvisionerDouble(cluster.client);
    cluster.addClaim('c', 'fast');
    cluster.addPod('p', ['c']);
    await cluster.podOnNode('p');
    cluster.deleteClaim('c');
    cluster.addPod('q', ['c']);
    const event = await failure(cluster, 'q', 'deleted');
    assert.equal(event.message, twoNodes('persistentvolumeclaim "c" is being deleted'));
  });

  test('reasons of several nodes are counted, and a node that becomes usable wakes the pod', async () => {
    await using cluster = new Cluster();
    const node = cluster.client.get(resources.nodes, { name: 'n1' })!;
    updateObject(cluster.client, resources.nodes, node, (copy) => {
      copy['spec'] = { taints: [{ key: 'broken', value: 'yes', effect: 'NoSchedule' }] };
    });
    cluster.addPod('p', [], { nodeSelector: { 'topology.kubernetes.io/zone': 'a' } });
    const event = await failure(cluster, 'p', 'taint');
    assert.equal(
      event.message,
      twoNodes("1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint {broken: yes}"),
    );
    updateObject(cluster.client, resources.nodes, cluster.client.get(resources.nodes, { name: 'n1' })!, (copy) => {
      copy['spec'] = {};
    });
    assert.equal(await cluster.podOnNode('p'), 'n1');
  });

  test('gated pods and pods of another scheduler are left alone until the gate is gone', async () => {
    await using cluster = new Cluster();
    cluster.addPod('other', [], { schedulerName: 'mine' });
    const gated = cluster.addPod('gated', [], { schedulingGates: [{ name: 'wait' }] });
    cluster.addPod('plain', []);
    await cluster.podOnNode('plain');
    assert.equal(cluster.pod('gated')?.spec.nodeName, undefined);
    updateObject(cluster.client, resources.pods, gated, (copy) => {
      copy.spec.schedulingGates = [];
    });
    await cluster.podOnNode('gated');
    assert.equal(cluster.pod('other')?.spec.nodeName, undefined);
    assert.deepEqual(cluster.events('other'), []);
  });
});

describe('volumes and nodes', () => {
  test('a bound volume keeps the pod to the nodes it can be reached from', async () => {
    await using cluster = new Cluster();
    cluster.addVolume('v', '1Gi', { nodeAffinity: inZone('b') });
    cluster.addClaim('c', '', { volumeName: 'v' });
    await cluster.claimInPhase('c', 'Bound');
    cluster.addPod('p', ['c']);
    assert.equal(await cluster.podOnNode('p'), 'n2');
    cluster.addPod('q', ['c'], { nodeSelector: { 'topology.kubernetes.io/zone': 'a' } });
    const event = await failure(cluster, 'q', 'volume node affinity');
    assert.equal(
      event.message,
      twoNodes("1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had volume node affinity conflict"),
    );
  });

  test('delayed claims take local volumes of the chosen node, each its own', async () => {
    await using cluster = new Cluster();
    cluster.addClass('local', {
      provisioner: 'kubernetes.io/no-provisioner',
      volumeBindingMode: 'WaitForFirstConsumer',
    });
    const local = (zone: string): object => ({ storageClassName: 'local', nodeAffinity: inZone(zone) });
    cluster.addVolume('a1', '10Gi', local('a'));
    cluster.addVolume('b1', '5Gi', local('b'));
    cluster.addVolume('b2', '10Gi', local('b'));
    for (const name of ['a1', 'b1', 'b2']) await cluster.volumeInPhase(name, 'Available');
    cluster.addClaim('large', 'local', { size: '5Gi' });
    cluster.addClaim('small', 'local', { size: '1Gi' });
    cluster.addPod('p', ['large', 'small']);
    assert.equal(await cluster.podOnNode('p'), 'n2');
    assert.equal((await cluster.claimInPhase('small', 'Bound')).spec.volumeName, 'b1');
    assert.equal((await cluster.claimInPhase('large', 'Bound')).spec.volumeName, 'b2');
    assert.equal(cluster.claim('small')?.metadata.annotations?.[annotation.selectedNode], undefined);
    assert.equal(cluster.volume('b1')?.metadata.annotations?.[annotation.boundByController], 'yes');
    assert.equal(cluster.volume('a1')?.status?.phase, 'Available');
  });

  test('without a fitting local volume the pod waits for one', async () => {
    await using cluster = new Cluster();
    cluster.addClass('local', {
      provisioner: 'kubernetes.io/no-provisioner',
      volumeBindingMode: 'WaitForFirstConsumer',
    });
    cluster.addClaim('c', 'local');
    cluster.addPod('p', ['c']);
    const event = await failure(cluster, 'p', 'find');
    assert.equal(event.message, twoNodes("2 node(s) didn't find available persistent volumes to bind"));
    cluster.addVolume('v', '1Gi', { storageClassName: 'local', nodeAffinity: inZone('b') });
    assert.equal(await cluster.podOnNode('p'), 'n2');
  });

  test('the policy spread balances the pods over the nodes', async () => {
    await using cluster = new Cluster({ scheduling: { nodeChoice: 'spread' } });
    const nodes: string[] = [];
    for (const name of ['p1', 'p2', 'p3', 'p4']) {
      cluster.addPod(name, []);
      nodes.push(await cluster.podOnNode(name));
    }
    assert.deepEqual(nodes.toSorted(), ['n1', 'n1', 'n2', 'n2']);
  });
});
