import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger, type Logger } from '../../../src/base/logger.ts';
import { ApiServer } from '../../../sandbox/api/api-server.ts';
import type { SandboxObject } from '../../../sandbox/api/client.ts';
import { startControlPlane } from '../../../sandbox/control-plane/control-plane.ts';
import { createNodes } from '../../../sandbox/control-plane/create-nodes.ts';
import { guardHandlers } from '../../../sandbox/control-plane/guarded-client.ts';
import { subscribeTo, updateObject } from '../../../sandbox/control-plane/object-access.ts';
import { resources } from '../../../sandbox/control-plane/objects.ts';
import { Cluster, configMaps } from './cluster.ts';
import { ManualClock } from './manual-clock.ts';
import { ProvisionerDouble } from './provisioner-double.ts';

function addConfigMap(cluster: Cluster, name: string, owners: SandboxObject[] = [], block = false): SandboxObject {
  return cluster.client.create(configMaps, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name,
      namespace: 'default',
      ownerReferences: owners.map((owner) => ({
        apiVersion: 'v1',
        kind: owner.kind ?? '',
        name: owner.metadata.name,
        uid: owner.metadata.uid ?? '',
        ...(block ? { blockOwnerDeletion: true } : {}),
      })),
    },
  });
}

const configMap = (cluster: Cluster, name: string): SandboxObject | undefined =>
  cluster.client.get(configMaps, { namespace: 'default', name });

describe('namespaces', () => {
  test('a deleted namespace takes its pod and bound claims along, their volumes are Released', async () => {
    await using cluster = new Cluster();
    using _ = new ProvisionerDouble(cluster.client);
    cluster.addClass('keep', { reclaimPolicy: 'Retain' });
    cluster.client.create(resources.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } });
    const inTeam = (object: SandboxObject): SandboxObject => ({
      ...object,
      metadata: { name: object.metadata.name, namespace: 'team' },
    });
    const template = cluster.addClaim('c', 'keep');
    const pod = cluster.addPod('p', ['c']);
    cluster.deletePod('p');
    cluster.client.create(resources.claims, inTeam(template));
    cluster.client.create(resources.pods, inTeam(pod));
    const claim = await cluster.until('a bound claim', () => {
      const found = cluster.client.get(resources.claims, { namespace: 'team', name: 'c' });
      return (found?.['status'] as { phase?: string } | undefined)?.phase === 'Bound' && found;
    });
    await cluster.until('a running pod', () => {
      const found = cluster.client.get(resources.pods, { namespace: 'team', name: 'p' });
      return (found?.['status'] as { phase?: string } | undefined)?.phase === 'Running';
    });
    cluster.client.delete(resources.namespaces, { name: 'team' });
    await cluster.until('no namespace', () => cluster.client.get(resources.namespaces, { name: 'team' }) === undefined);
    assert.deepEqual(cluster.client.list(resources.pods, { namespace: 'team' }), []);
    assert.deepEqual(cluster.client.list(resources.claims, { namespace: 'team' }), []);
    await cluster.volumeInPhase(`pvc-${claim.metadata.uid}`, 'Released');
  });
});

describe('garbage collection', () => {
  test('objects go with the last of their owners, through several generations', async () => {
    await using cluster = new Cluster();
    const first = addConfigMap(cluster, 'first');
    const second = addConfigMap(cluster, 'second');
    const child = addConfigMap(cluster, 'child', [first, second]);
    addConfigMap(cluster, 'grandchild', [child]);
    cluster.client.delete(configMaps, { namespace: 'default', name: 'first' });
    const doomed = addConfigMap(cluster, 'doomed', [first]);
    await cluster.until('the orphan to go', () => configMap(cluster, doomed.metadata.name) === undefined);
    assert.notEqual(configMap(cluster, 'child'), undefined);
    cluster.client.delete(configMaps, { namespace: 'default', name: 'second' });
    await cluster.until('the grandchild to go', () => configMap(cluster, 'grandchild') === undefined);
    assert.equal(configMap(cluster, 'child'), undefined);
  });

  test('an owner of a kind nobody knows counts as existing', async () => {
    await using cluster = new Cluster();
    const stranger = { kind: 'Stranger', metadata: { name: 's', uid: 'u-1' } };
    const absent = { kind: 'ConfigMap', metadata: { name: 'absent', uid: 'u-2' } };
    addConfigMap(cluster, 'kept', [stranger]);
    addConfigMap(cluster, 'doomed', [absent]);
    await cluster.until('the orphan to go', () => configMap(cluster, 'doomed') === undefined);
    assert.notEqual(configMap(cluster, 'kept'), undefined);
  });

  test('foreground deletion waits for blocking dependents', async () => {
    await using cluster = new Cluster();
    const owner = addConfigMap(cluster, 'owner');
    const child = addConfigMap(cluster, 'child', [owner], true);
    const held = updateObject(cluster.client, configMaps, child, ({ metadata }) => {
      metadata.finalizers = ['example.com/hold'];
    });
    updateObject(cluster.client, configMaps, owner, ({ metadata }) => {
      metadata.finalizers = ['foregroundDeletion'];
    });
    cluster.client.delete(configMaps, { namespace: 'default', name: 'owner' });
    const deleted = await cluster.until('the child to be deleted', () => {
      const found = configMap(cluster, 'child');
      return found?.metadata.deletionTimestamp !== undefined && found;
    });
    assert.equal(deleted.metadata.uid, held.metadata.uid);
    assert.notEqual(configMap(cluster, 'owner'), undefined);
    updateObject(cluster.client, configMaps, deleted, ({ metadata }) => {
      metadata.finalizers = [];
    });
    await cluster.until('the owner to go', () => configMap(cluster, 'owner') === undefined);
  });

  test('orphan deletion leaves the dependents behind, without their owner', async () => {
    await using cluster = new Cluster();
    const owner = addConfigMap(cluster, 'owner');
    addConfigMap(cluster, 'child', [owner]);
    updateObject(cluster.client, configMaps, owner, ({ metadata }) => {
      metadata.finalizers = ['orphan'];
    });
    cluster.client.delete(configMaps, { namespace: 'default', name: 'owner' });
    await cluster.until('the owner to go', () => configMap(cluster, 'owner') === undefined);
    assert.deepEqual(configMap(cluster, 'child')?.metadata.ownerReferences ?? [], []);
  });
});

describe('the kubelet stub', () => {
  test('runs assigned pods and removes deleted ones without waiting for their grace period', async () => {
    await using cluster = new Cluster();
    cluster.addPod('p', [], { terminationGracePeriodSeconds: 3600 });
    const pod = await cluster.until('a running pod', () => {
      const found = cluster.pod('p');
      return found?.status?.phase === 'Running' && found;
    });
    const { conditions = [] } = pod.status ?? {};
    const ready = conditions.filter(({ status }) => status === 'True').map(({ type }) => type);
    assert.ok(ready.includes('Ready'));
    assert.ok(ready.includes('PodScheduled'));
    cluster.deletePod('p');
    await cluster.until('no pod', () => cluster.pod('p') === undefined);
  });

  test('holds a pod that was put on a node by hand until its claim is bound', async () => {
    await using cluster = new Cluster();
    cluster.addClaim('c', 'fast');
    cluster.addPod('p', ['c'], { nodeName: 'n1' });
    cluster.addPod('q', [], { nodeName: 'n1' });
    await cluster.until('another pod to run', () => cluster.pod('q')?.status?.phase === 'Running');
    assert.equal(cluster.pod('p')?.status?.phase, 'Pending');
    using _ = new ProvisionerDouble(cluster.client);
    await cluster.until('the pod to run', () => cluster.pod('p')?.status?.phase === 'Running');
  });
});

describe('starting and stopping', () => {
  test('each part can be left out', async () => {
    await using cluster = new Cluster({ parts: { scheduler: false, pvBinder: false } });
    cluster.addVolume('v', '1Gi');
    cluster.addPod('p', []);
    cluster.addPod('q', [], { nodeName: 'n1' });
    await cluster.until('the kubelet at work', () => cluster.pod('q')?.status?.phase === 'Running');
    assert.equal(cluster.volume('v')?.status?.phase, 'Pending');
    assert.equal(cluster.pod('p')?.spec.nodeName, undefined);
  });

  test('the controllers do without resources that are switched off', async () => {
    await using cluster = new Cluster({
      disabledResources: [
        'csistoragecapacities.storage.k8s.io',
        'csidrivers.storage.k8s.io',
        'snapshot.storage.k8s.io',
      ],
    });
    using _ = new ProvisionerDouble(cluster.client);
    cluster.addClaim('c', 'late');
    cluster.addPod('p', ['c']);
    assert.equal(await cluster.podOnNode('p'), 'n1');
  });

  test('what is there at the start is taken over, and after the end nothing happens any more', async () => {
    const cluster = new Cluster();
    using _ = new ProvisionerDouble(cluster.client);
    cluster.addClaim('before', 'late');
    cluster.addPod('p', ['before']);
    await cluster.podOnNode('p');
    cluster.deleteClaim('before');
    await cluster.stopControlPlane();
    cluster.deletePod('p');
    cluster.addClaim('c', 'fast');
    cluster.addVolume('v', '1Gi');
    cluster.client.delete(resources.pods, { namespace: 'default', name: 'p' }, { gracePeriodSeconds: 0 });
    // A subscriber of the same turn: the controllers would have heard of it by then.
    await cluster.until('the deletion to be told', () => cluster.pod('p') === undefined);
    const { promise, resolve } = Promise.withResolvers<undefined>();
    subscribeTo(cluster.client, resources.nodes, () => resolve(undefined));
    createNodes({ client: cluster.client, clock: systemClock, nodes: [{ name: 'n3' }] });
    await promise;
    assert.equal(cluster.volume('v')?.status?.phase, 'Pending');
    assert.equal(cluster.claim('c')?.metadata.annotations, undefined);
    assert.notEqual(cluster.claim('before'), undefined);

    cluster.startControlPlane();
    await cluster.claimInPhase('c', 'Bound');
    await cluster.volumeInPhase('v', 'Available');
    await cluster.until('the claim to go', () => cluster.claim('before') === undefined);
    await cluster[Symbol.asyncDispose]();
  });

  test('an object that no controller can read is logged and holds up nothing', async () => {
    const logged: object[] = [];
    const logger: Logger = { ...silentLogger, error: (fields) => logged.push(fields), child: () => logger };
    await using cluster = new Cluster({ logger });
    const { client } = cluster;
    const guarded = guardHandlers(client, logger);
    const heard: string[] = [];
    guarded.subscribe(configMaps, ({ object }) => {
      heard.push(object.metadata.name);
      if (object.metadata.name === 'first') throw new TypeError('cannot read it');
    });
    client.create(configMaps, { metadata: { name: 'first', namespace: 'default' } });
    client.create(configMaps, { metadata: { name: 'second', namespace: 'default' } });
    await turn();
    assert.deepEqual(heard, ['first', 'second']);
    assert.partialDeepStrictEqual(logged, [{ resource: 'configmaps', namespace: 'default', name: 'first' }]);
  });

  test('no timer outlives the controllers', async () => {
    const clock = new ManualClock();
    const server = new ApiServer();
    const client = server.client('test');
    createNodes({
      client,
      clock,
      nodes: [{ name: 'n1' }],
      drivers: [{ name: 'x.example.com', topologyKeys: ['zone'] }],
    });
    client.create(resources.pods, {
      metadata: { name: 'p', namespace: 'default' },
      spec: { containers: [{ name: 'main', image: 'busybox' }], nodeSelector: { nowhere: 'true' } },
    });
    const controlPlane = startControlPlane({ client: (user) => server.client(user), clock, logger: silentLogger });
    await turn();
    await turn();
    assert.ok(clock.pending > 0);
    await controlPlane[Symbol.asyncDispose]();
    assert.equal(clock.pending, 0);
    await controlPlane[Symbol.asyncDispose]();
    const csiNode = client.get(resources.csiNodes, { name: 'n1' });
    assert.deepEqual(csiNode?.['spec'], {
      drivers: [{ name: 'x.example.com', nodeID: 'n1', topologyKeys: ['zone'] }],
    });
    await server.close();
  });
});
