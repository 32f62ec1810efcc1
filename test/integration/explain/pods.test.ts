/** What `why` makes of the state of a Pod, where a little more or less of it changes the answer. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Explanation } from '../../../src/explain/explanation.ts';
import { driverName } from '../../support/api-scene.ts';
import { ExplainRig } from './rig.ts';

const minute = 60_000;
const zoneKey = 'topology.kubernetes.io/zone';
const plain = 'The claim is bound to PersistentVolume v.';
const late = { volumeBindingMode: 'WaitForFirstConsumer' };
const ready = { conditions: [{ type: 'Ready', status: 'True' }] };
const claims = (...names: string[]): object => ({
  volumes: names.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
});

function refused(message: string): object {
  return {
    phase: 'Pending',
    conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
  };
}

function addBound(rig: ExplainRig, volume: object = {}, labels: Record<string, string> = {}): void {
  rig.addVolume('v', volume, 'Bound', { labels });
  rig.addClaim({ volumeName: 'v' }, { phase: 'Bound' });
}

describe('a Pod on a node whose claim is bound', () => {
  async function explained(
    arrange: (rig: ExplainRig) => void,
    options: { laterMs?: number; forbid?: [string, string] } = {},
  ): Promise<Explanation> {
    await using rig = await ExplainRig.start();
    addBound(rig);
    rig.addPod('p', { spec: { nodeName: 'n1' } });
    arrange(rig);
    if (options.forbid !== undefined) rig.forbid(...options.forbid);
    const explanation = await rig.explain({ claim: 'c' }, options);
    assert.equal(explanation.verdict, 'bound');
    assert.ok(rig.requests.length <= 6, rig.requests.join(', '));
    return explanation;
  }
  const attach = { component: 'attachdetach-controller' };
  const kubelet = { component: 'kubelet' };
  const refusedToAttach = 'AttachVolume.Attach failed for volume "v" : rpc error: code = Internal desc = on fire';

  test('cannot start while its volume cannot be attached, and can once it is', async () => {
    const failed = (rig: ExplainRig): void =>
      rig.addEvent(rig.pod('p'), 'FailedAttachVolume', refusedToAttach, { ...attach, msAgo: minute });
    assert.match(
      (await explained(failed)).message,
      /its volume cannot be attached\. Last error, 6\d s ago: .*on fire$/,
    );
    const { message } = await explained((rig) => {
      failed(rig);
      rig.addEvent(rig.pod('p'), 'SuccessfulAttachVolume', 'AttachVolume.Attach succeeded for volume "v"', attach);
    });
    assert.equal(message, plain);
  });

  test('has its volume once its images are pulled', async () => {
    const text = 'MountVolume.SetUp failed for volume "v" : the driver is not registered';
    const failed = (rig: ExplainRig): void =>
      rig.addEvent(rig.pod('p'), 'FailedMount', text, { ...kubelet, msAgo: minute });
    assert.match((await explained(failed)).message, /its volume cannot be mounted\. Last error/);
    const { message } = await explained((rig) => {
      failed(rig);
      rig.addEvent(rig.pod('p'), 'Pulling', 'Pulling image "none"', kubelet);
    });
    assert.equal(message, plain);
  });

  test('is not explained by an error that nobody has repeated for long, nor by a first one about another volume', async () => {
    const failed = (rig: ExplainRig): void => rig.addEvent(rig.pod('p'), 'FailedAttachVolume', refusedToAttach, attach);
    assert.equal((await explained(failed, { laterMs: 15 * minute })).message, plain);
    const other = (rig: ExplainRig): void =>
      rig.addEvent(rig.pod('p'), 'FailedMount', 'MountVolume.SetUp failed for volume "kube-api-access" : x', kubelet);
    assert.equal((await explained(other)).message, plain);
  });

  test('cannot start on a node without the driver, whoever finds that out', async () => {
    for (const [reason, text] of [
      [
        'FailedAttachVolume',
        'AttachVolume.Attach failed for volume "v" : CSINode n1 does not contain driver d.example.com',
      ],
      [
        'FailedMount',
        'MountVolume.MountDevice failed for volume "v" : driver name d.example.com not found in the list of registered CSI drivers',
      ],
    ] as const) {
      const { cure } = await explained((rig) => rig.addEvent(rig.pod('p'), reason, text));
      assert.match(cure, /^Let the driver's node plugin, .* run on node n1, .*: kubectl get csinode n1 -o yaml$/);
    }
  });

  test('cannot start on a node that is not ready, whatever was recorded before', async () => {
    for (const [status, text] of [
      [
        'Unknown',
        /cannot start: its node n1 is not ready \(Ready is Unknown since 2\S+\), so that nothing starts there\.$/,
      ],
      ['True', /its volume cannot be attached\. Last error/],
    ] as const) {
      const { message, cure } = await explained((rig) => {
        const lastTransitionTime = new Date(Date.now() - 2 * minute).toISOString();
        rig.add('nodes', {
          metadata: { name: 'n1' },
          status: { conditions: [{ type: 'Ready', status, lastTransitionTime }] },
        });
        rig.addEvent(rig.pod('p'), 'FailedAttachVolume', refusedToAttach, { ...attach, msAgo: minute });
      });
      assert.match(message, text);
      if (status === 'Unknown') assert.match(cure, /^Start the node again\. .*: kubectl taint nodes n1 /);
    }
  });

  test('is not said to be on a dead machine where the kubelet itself reports that it is not ready', async () => {
    const { message, cure } = await explained((rig) =>
      rig.add('nodes', {
        metadata: { name: 'n1' },
        status: { conditions: [{ type: 'Ready', status: 'False', lastTransitionTime: '2026-01-01T00:00:00Z' }] },
      }),
    );
    assert.match(message, /not ready \(Ready is False since 2026/);
    assert.equal(cure, 'See why its kubelet is not ready: kubectl describe node n1');
  });

  test('cannot use a volume in a way that is not its own, in words that a kubelet puts after the names', async () => {
    for (const [words, message, cure] of [
      [
        'volume data has volumeMode Block, but is specified in volumeMounts',
        /cannot start on node n1: its kubelet cannot use the volume\. Last error, .*: volume data has volumeMode Block/,
        /^The claim is a block device \(volumeMode Block\): name it in volumeDevices/,
      ],
      [
        'volume data has volumeMode Filesystem, but is specified in volumeDevices',
        /its kubelet cannot use the volume/,
        /^The claim is a file system .*: name it in volumeMounts/,
      ],
      ['timed out waiting for the condition', /and no event names an error/, /node plugin on node n1/],
      ['context deadline exceeded', /and no event names an error/, /node plugin on node n1/],
    ] as const) {
      const text = `Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process volumes=[data]: ${words}`;
      const found = await explained((rig) =>
        rig.addEvent(rig.pod('p'), 'FailedMount', text, { ...kubelet, msAgo: minute, count: 4 }),
      );
      assert.match(found.message, message);
      assert.match(found.cure, cure);
    }
  });

  test('has its volume mounted where a directory of it cannot be created, or where the sandbox fails', async () => {
    const waiting = {
      reason: 'CreateContainerConfigError',
      message: 'failed to create subPath directory for volumeMount "data" of container "main"',
    };
    const statuses = { phase: 'Pending', containerStatuses: [{ name: 'main', state: { waiting } }] };
    const spec = { nodeName: 'n1' };
    const directory = await explained((rig) => rig.addPod('a', { spec, status: statuses }));
    assert.match(
      directory.message,
      /the volume is mounted, and its container main cannot use a directory of it \(Create/,
    );
    assert.match(
      directory.cure,
      /^Create the directory \(subPath of the container\) in the volume, or let root of node n1/,
    );

    const failed = (rig: ExplainRig): void =>
      rig.addEvent(rig.pod('p'), 'FailedCreatePodSandBox', 'failed to assign an IP address to container', kubelet);
    const sandbox = await explained(failed);
    assert.match(
      sandbox.message,
      /a reason other than this claim: the kubelet cannot create its sandbox\. .* IP address/,
    );
    assert.match(sandbox.cure, /^Usually that is the network plugin \(CNI\) of the node/);
    const over = await explained((rig) => {
      rig.addEvent(rig.pod('p'), 'FailedCreatePodSandBox', 'no address', { ...kubelet, msAgo: minute });
      rig.addEvent(rig.pod('p'), 'Pulling', 'Pulling image "none"', kubelet);
    });
    assert.equal(over.message, plain);
  });

  test('is not known to start where the events may not be read', async () => {
    const { steps, message } = await explained(() => undefined, { forbid: ['list', 'events'] });
    assert.equal(message, plain);
    assert.match(
      steps.find(({ step }) => step === 'pod')?.detail ?? '',
      /is not visible: the permission to list events in namespace ns1 is missing/,
    );
  });

  test('waits for another one that holds its volume elsewhere, even after the first event about it is old', async () => {
    const { message, cure } = await explained(
      (rig) => {
        rig.addPod('q', { spec: { nodeName: 'n2' }, status: { phase: 'Running' } });
        const text = 'Multi-Attach error for volume "v" Volume is already used by pod(s) q';
        rig.addEvent(rig.pod('p'), 'FailedAttachVolume', text, attach);
      },
      { laterMs: 30 * minute },
    );
    assert.match(message, /the volume is attached to node n2, where Pod q uses it\.$/);
    assert.match(cure, /: kubectl delete pod -n ns1 q$/);
  });
});

describe('a Pod that the scheduler refuses', () => {
  test('is no hint for a claim that was bound since', async () => {
    for (const words of [
      'pod has unbound immediate PersistentVolumeClaims. not found',
      'persistentvolumeclaim "c" not found',
    ]) {
      await using rig = await ExplainRig.start();
      addBound(rig);
      rig.addPod('p', { status: refused(`0/1 nodes are available: ${words}`) });
      assert.equal((await rig.explain()).message, plain);
    }
  });

  test('is waited for where it was placed a moment ago, as its claim may be bound by now', async () => {
    await using rig = await ExplainRig.start();
    rig.addClass({ ...late, provisioner: 'kubernetes.io/no-provisioner' });
    rig.addClaim({}, { annotations: {} });
    rig.addPod('p', { spec: { schedulerName: 'mine' }, status: { phase: 'Pending' } });
    rig.api.bindPod({ namespace: 'ns1', name: 'p' }, 'n1');
    const { verdict, cause } = await rig.explain();
    assert.deepEqual({ verdict, cause }, { verdict: 'waiting', cause: 'waits-for-consumer' });
    assert.equal((await rig.explain({ claim: 'c' }, { laterMs: 3 * minute })).cause, 'pod-unschedulable');
  });

  test('is explained by the labels of a volume that has no node affinity', async () => {
    await using rig = await ExplainRig.start();
    addBound(rig, {}, { [zoneKey]: 'north__south' });
    rig.add('nodes', { metadata: { name: 'n1', labels: { [zoneKey]: 'east' } }, status: ready });
    rig.addPod('p', { status: refused('0/1 nodes are available: 1 node(s) had no available volume zone.') });
    const { message } = await rig.explain();
    assert.match(
      message,
      /nodes with topology\.kubernetes\.io\/zone=north or south, and there is none\. Nodes have east\.$/,
    );
  });

  test('is explained by a taint of the only node that its volume allows, unless it tolerates it', async () => {
    for (const [tolerations, text] of [
      [[], /which are n1 \(taint example\.com\/gpu:NoSchedule\)\. The scheduler: /],
      [[{ key: 'example.com/gpu', operator: 'Exists' }], /which are n1\. The scheduler: /],
    ] as const) {
      await using rig = await ExplainRig.start();
      const matchExpressions = [{ key: zoneKey, operator: 'In', values: ['north'] }];
      addBound(rig, { nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } } });
      const spec = { taints: [{ key: 'example.com/gpu', effect: 'NoSchedule' }] };
      rig.add('nodes', { metadata: { name: 'n1', labels: { [zoneKey]: 'north' } }, spec, status: ready });
      rig.add('nodes', { metadata: { name: 'n2', labels: { [zoneKey]: 'south' } }, status: ready });
      const words = "1 node(s) didn't match PersistentVolume's node affinity, 1 node(s) had untolerated taint(s).";
      rig.addPod('p', { spec: { tolerations }, status: refused(`0/2 nodes are available: ${words}`) });
      assert.match((await rig.explain()).message, text);
    }
  });

  for (const words of [
    'node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode',
    'node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod',
  ]) {
    test(`waits for the one Pod that may use the claim: ${words.slice(0, 20)}`, async () => {
      await using rig = await ExplainRig.start();
      rig.addVolume('v', {}, 'Bound');
      rig.addClaim({ volumeName: 'v', accessModes: ['ReadWriteOncePod'] }, { phase: 'Bound' });
      rig.addPod('q', { spec: { nodeName: 'n1' }, status: { phase: 'Running' } });
      rig.addPod('p', { status: refused(`0/1 nodes are available: 1 ${words}.`) });
      assert.match(
        (await rig.explain()).message,
        /cannot be scheduled: the claim has access mode ReadWriteOncePod, and Pod q on node n1 uses it\.$/,
      );
    });
  }

  test('is not refused for a claim that several Pods may use, whatever holds another of its claims', async () => {
    await using rig = await ExplainRig.start();
    addBound(rig);
    rig.addPod('q', { spec: { nodeName: 'n1' }, status: { phase: 'Running' } });
    const words =
      '0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod.';
    rig.addPod('p', { status: refused(words) });
    assert.match((await rig.explain()).message, /Pod p, which uses it, cannot be scheduled\. The scheduler: /);
  });

  test('is told where its class allows volumes, and what keeps it from there', async () => {
    await using rig = await ExplainRig.start();
    rig.addClass({ ...late, allowedTopologies: [{ matchLabelExpressions: [{ key: zoneKey, values: ['north'] }] }] });
    for (const [name, zone] of [
      ['n1', 'north'],
      ['n2', 'south'],
    ] as const) {
      const spec = { unschedulable: name === 'n1' };
      rig.add('nodes', { metadata: { name, labels: { [zoneKey]: zone } }, spec, status: ready });
      const drivers = [{ name: driverName, nodeID: name, topologyKeys: [zoneKey] }];
      rig.add('csiNodes', { metadata: { name }, spec: { drivers } });
    }
    rig.addClaim({}, { annotations: {} });
    const words = "1 node(s) didn't find available persistent volumes to bind, 1 node(s) were unschedulable.";
    rig.addPod('p', { status: refused(`0/2 nodes are available: ${words}`) });
    const { cause, message, cure } = await rig.explain();
    assert.equal(cause, 'pod-unschedulable');
    assert.match(
      message,
      /allows volumes only on nodes with topology\.kubernetes\.io\/zone=north: n1 \(cordoned\)\. The scheduler: /,
    );
    assert.match(cure, /: kubectl uncordon n1$/);
  });

  test('waits for the room of its other claim where there is enough for this one', async () => {
    await using rig = await ExplainRig.start();
    rig.addClass(late);
    rig.add('drivers', { metadata: { name: driverName }, spec: { storageCapacity: true } });
    rig.add('nodes', { metadata: { name: 'n1', labels: { [zoneKey]: 'north' } }, status: ready });
    rig.add('capacities', {
      metadata: { name: 'x', namespace: 'driver' },
      storageClassName: 'sc',
      nodeTopology: { matchLabels: { [zoneKey]: 'north' } },
      capacity: '10Gi',
    });
    rig.addClaim({}, { annotations: {} });
    rig.addClaim({ resources: { requests: { storage: '20Gi' } } }, { annotations: {}, name: 'd' });
    const words = '0/1 nodes are available: 1 node(s) did not have enough free storage.';
    rig.addPod('p', { spec: claims('c', 'd'), status: refused(words) });
    const { cause, message } = await rig.explain();
    assert.equal(cause, 'no-capacity');
    assert.match(
      message,
      /^It waits for Pod p, which waits for claim d: .*requests 20Gi, and the most that is published .* is 10Gi/,
    );
  });

  test('has the claim that was created for its ephemeral volume', async () => {
    await using rig = await ExplainRig.start();
    rig.addClass(late);
    const volumes = [{ name: 'data', ephemeral: { volumeClaimTemplate: { spec: {} } } }];
    const { uid = '' } = rig.addPod('a', { spec: { volumes }, status: { phase: 'Pending' } }).metadata;
    const ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name: 'a', uid, controller: true }];
    rig.addClaim({}, { annotations: {}, name: 'a-data', ownerReferences });
    const { cause, message } = await rig.explain({ claim: 'a-data' });
    assert.equal(cause, 'waits-for-consumer', message);
    assert.match(message, /^Pod a uses the claim/);
  });

  test('counts before one whose ephemeral volume the claim does not belong to', async () => {
    await using rig = await ExplainRig.start();
    rig.addClass(late);
    rig.add('drivers', { metadata: { name: driverName }, spec: { storageCapacity: true } });
    rig.addClaim({}, { annotations: {}, name: 'a-data' });
    const volumes = [{ name: 'data', ephemeral: { volumeClaimTemplate: { spec: {} } } }];
    rig.addPod('a', { spec: { volumes }, status: refused('0/1 nodes are available: (pod is not owner).') });
    rig.addPod('p', {
      spec: claims('a-data'),
      status: refused('0/1 nodes are available: 1 node(s) did not have enough free storage.'),
    });
    const { cause, message } = await rig.explain({ claim: 'a-data' });
    assert.equal(cause, 'capacity-not-published', message);
  });
});
