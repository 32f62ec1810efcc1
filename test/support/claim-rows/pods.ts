/** Pods, and the scheduler. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { KubeObject, RecordedEvent, Row, World } from './row.ts';

const late = { volumeBindingMode: 'WaitForFirstConsumer' };
const zoneKey = 'topology.kubernetes.io/zone';
const hostKey = 'kubernetes.io/hostname';
const minute = 60_000;

const onNode = (world: World) => ({ [hostKey]: world.name('node') });
const pod = { kind: 'pod', name: 'p' } as const;

/** What the scheduler writes into a Pod that it cannot place. */
async function refuse(world: World, message: string, name = 'p', reason = 'Unschedulable'): Promise<void> {
  const refusal = { type: 'PodScheduled', status: 'False', reason, message };
  await world.patch({ kind: 'pod', name }, { status: { phase: 'Pending', conditions: [refusal] } });
}

/** Claim `c`, which is for the volume of the row. */
async function addBoundClaim(world: World, spec: object = {}, accessModes = ['ReadWriteOnce']): Promise<void> {
  const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: world.namespace, name: 'c' };
  await world.addVolume({ claimRef, accessModes, ...spec });
  await world.addClaim({ volumeName: world.name('volume'), accessModes });
}

/** What kube-controller-manager writes then. */
async function bind(world: World): Promise<void> {
  await world.patch({ kind: 'volume', name: world.name('volume') }, { status: { phase: 'Bound' } });
  await world.patch({ kind: 'claim', name: 'c' }, { status: { phase: 'Bound' } });
}

function usableIn(key: string, value: string): object {
  return {
    nodeAffinity: {
      required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'In', values: [value] }] }] },
    },
  };
}

const twoClaims = {
  volumes: [
    { name: 'data', persistentVolumeClaim: { claimName: 'c' } },
    { name: 'logs', persistentVolumeClaim: { claimName: 'd' } },
  ],
};
const refusedForNode = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.";
const wrongPlace = "0/1 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity.";
const noRoom = '0/1 nodes are available: 1 node(s) did not have enough free storage.';

/** A class of a driver whose published capacity the scheduler compares, and that nobody serves; a claim of it and its Pod. */
async function addCompared(world: World): Promise<void> {
  const provisioner = `${world.name()}.none.example.com`;
  await world.add('driver', {
    metadata: { name: provisioner },
    spec: { attachRequired: false, storageCapacity: true },
  });
  await world.addClass({ ...late, provisioner });
  await world.addNode({ driver: null, labels: { [zoneKey]: world.name('zone') } });
  await world.addClaim();
  await world.addPod({ nodeSelector: onNode(world) });
}

async function publish(world: World, zone: string, sizes: object): Promise<void> {
  const nodeTopology = { matchLabels: { [zoneKey]: world.name(zone) } };
  await world.add('capacity', {
    metadata: { name: world.name(zone) },
    ...{ storageClassName: world.name(), nodeTopology, ...sizes },
  });
}

/** Claim `c` with the finalizer of kube-controller-manager, and Pod `p` on a node that is there. */
async function addClaimInUse(world: World, node: object = {}): Promise<void> {
  await addBoundClaim(world);
  await world.patch({ kind: 'claim', name: 'c' }, { metadata: { finalizers: ['kubernetes.io/pvc-protection'] } });
  const { metadata } = await world.addNode();
  if (Object.keys(node).length > 0) await world.patch({ kind: 'node', name: metadata.name }, node);
  await world.addPod({ nodeName: world.name('node'), terminationGracePeriodSeconds: 1 });
}

const notReady = {
  status: {
    conditions: [
      { type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown', lastTransitionTime: '2026-01-01T00:00:00Z' },
    ],
  },
};

async function taint(world: World, key: string): Promise<void> {
  const taints = [{ key, effect: 'NoSchedule' }];
  await world.patch({ kind: 'node', name: world.name('node') }, { spec: { taints } });
}
/** Since Kubernetes 1.36 without the taint. */
const untolerated = '0/2 nodes are available: 2 node(s) had untolerated taint(s).';

/** Somebody deletes the Pod, and no kubelet confirms its end. */
async function terminate(world: World): Promise<void> {
  await world.remove({ ...pod, graceful: true });
}

async function deleteClaim(world: World): Promise<void> {
  await world.remove({ kind: 'claim', name: 'c' });
}

async function addAttachment(world: World, node: string, status: object = {}): Promise<KubeObject> {
  const volume = world.name('volume');
  // as kube-controller-manager names it
  const name = `csi-${createHash('sha256').update(`${volume}${world.driver}${node}`).digest('hex')}`;
  const spec = { attacher: world.driver, nodeName: node, source: { persistentVolumeName: volume } };
  return await world.add('attachment', { metadata: { name }, spec, status: { attached: false, ...status } });
}

/** Of a claim that waits for a Pod. */
const consumers: readonly Row[] = [
  {
    title: 'a Pod that fits no node',
    async arrange(world) {
      await world.addClass(late);
      await world.addClaim();
      await world.addPod({ nodeSelector: onNode(world) });
    },
    recorded: (world) => refuse(world, refusedForNode),
    verdict: 'stuck',
    cause: 'pod-unschedulable',
    says: /^Pod p uses the claim and cannot be scheduled\. The scheduler: .*node/,
    advises: /^Correct nodeSelector or affinity of the Pod, or label a node as they ask: kubectl get nodes|^Add a node/,
    cure: (world) => world.addNode(),
    ends: 'bound',
  },
  {
    title: 'a Pod whose node has a taint that Kubernetes sets',
    async arrange(world) {
      await world.addClass(late);
      await world.addClaim();
      await world.addNode();
      await taint(world, 'node.kubernetes.io/disk-pressure');
      await world.addPod({ nodeSelector: onNode(world) });
    },
    recorded: (world) => refuse(world, untolerated),
    verdict: 'stuck',
    cause: 'pod-unschedulable',
    says: /\d+ node\(s\) had untolerated taint/,
    advises: /^Free disk space on node \S+node, .*; Kubernetes then removes the taint: kubectl describe node \S+node$/,
  },
  {
    title: 'a Pod whose node is not ready',
    async arrange(world) {
      await world.addClass(late);
      await world.addClaim();
      await world.addNode();
      await taint(world, 'node.kubernetes.io/unreachable');
      await world.patch({ kind: 'node', name: world.name('node') }, notReady);
      await world.addPod({ nodeSelector: onNode(world) });
    },
    recorded: (world) => refuse(world, untolerated),
    verdict: 'stuck',
    cause: 'pod-unschedulable',
    says: /\d+ node\(s\) had untolerated taint/,
    advises:
      /^Start node \S+node, or find out why it is not ready \(NodeStatusUnknown\): kubectl describe node \S+node$/,
  },
  {
    title: 'a Pod whose node is cordoned',
    async arrange(world) {
      await world.addClass(late);
      await world.addClaim();
      await world.addNode();
      await world.patch({ kind: 'node', name: world.name('node') }, { spec: { unschedulable: true } });
      await world.addPod({ nodeSelector: onNode(world) });
    },
    recorded: (world) =>
      refuse(
        world,
        "0/4 nodes are available: 1 node(s) were unschedulable, 3 node(s) didn't match Pod's node affinity/selector.",
      ),
    verdict: 'stuck',
    cause: 'pod-unschedulable',
    says: /\d+ node\(s\) were unschedulable/,
    advises: /^Let Pods run on it: kubectl uncordon \S+node$/,
    cure: (world) => world.patch({ kind: 'node', name: world.name('node') }, { spec: { unschedulable: null } }),
    ends: 'bound',
  },
  {
    title: 'a Pod that a scheduling gate holds',
    async arrange(world) {
      await world.addClass(late);
      await world.addNode();
      await world.addClaim();
      await world.addPod({ nodeSelector: onNode(world), schedulingGates: [{ name: 'example.com/quota' }] });
    },
    recorded: (world) => world.patch(pod, { status: { phase: 'Pending' } }),
    verdict: 'waiting',
    cause: 'pod-unschedulable',
    says: /held by scheduling gates: example\.com\/quota\.$/,
    advises: /gates/,
    cure: (world) => world.patch(pod, { spec: { schedulingGates: null } }),
    ends: 'bound',
  },
  {
    title: 'a Pod that a scheduling gate has held for long',
    async arrange(world) {
      await world.addClass(late);
      await world.addClaim();
      await world.addPod({ schedulingGates: [{ name: 'example.com/quota' }] });
    },
    recorded: (world) => world.patch(pod, { status: { phase: 'Pending' } }),
    laterMs: 15 * minute,
    verdict: 'stuck',
    cause: 'pod-unschedulable',
    says: /scheduling gates: example\.com\/quota\. Nobody has removed them for 1\d min\.$/,
    advises: /^Look at what set the gates/,
  },
  {
    title: 'a Pod of a scheduler that does not run',
    async arrange(world) {
      await world.addClass(late);
      await world.addClaim();
      await world.addPod({ schedulerName: 'of-my-own' });
    },
    recorded: (world) => world.patch(pod, { status: { phase: 'Pending' } }),
    laterMs: 5 * minute,
    verdict: 'stuck',
    cause: 'pod-unschedulable',
    says: /no scheduler has reported anything about it for \d min\. Its scheduler is of-my-own\.$/,
    advises: /^Check that of-my-own runs/,
  },
  {
    title: 'a Pod that sets its node itself',
    async arrange(world) {
      await world.addClass(late);
      await world.addClaim();
      await world.addPod({ nodeName: 'n1' });
    },
    recorded: (world) => world.patch(pod, { status: { phase: 'Pending' } }),
    verdict: 'stuck',
    cause: 'pod-unschedulable',
    says: /sets spec\.nodeName to n1, so it bypasses the scheduler/,
    advises: /nodeSelector/,
  },
  {
    title: 'a Pod that another scheduler has put on a node',
    async arrange(world) {
      await world.addClass(late);
      await world.addNode();
      await world.addClaim();
      await world.addPod({ schedulerName: 'of-my-own' });
      await world.place('p', world.name('node'));
    },
    recorded: (world) => world.patch(pod, { status: { phase: 'Pending' } }),
    laterMs: 3 * minute,
    verdict: 'stuck',
    cause: 'pod-unschedulable',
    says: /was put on node \S+ by the scheduler of-my-own that chose no node for the volume/,
    advises: /^Let default-scheduler schedule the Pod.*: kubectl delete pod -n \S+ p$/,
    async cure(world) {
      await world.remove(pod);
      await world.addPod({ nodeSelector: onNode(world) }, { name: 'q' });
    },
    ends: 'bound',
  },
  {
    title: 'a claim that was created again below its Pod',
    async arrange(world) {
      await world.addClass(late);
      await world.addNode();
      await world.addPod({ schedulerName: 'of-my-own' });
      await world.place('p', world.name('node'));
      await new Promise((resolve) => setTimeout(resolve, 2000)); // the API server keeps whole seconds
      await world.addClaim();
    },
    recorded: (world) => world.patch(pod, { status: { phase: 'Pending' } }),
    verdict: 'stuck',
    cause: 'pod-unschedulable',
    says: /was put on node \S+ before the claim was created/,
    advises: /: kubectl delete pod -n \S+ p$/,
  },
  {
    title: 'an ephemeral volume whose name a claim of somebody else has',
    async arrange(world) {
      await world.addClass(late);
      await world.addNode();
      await world.addClaim({}, { name: 'p-data' });
      const spec = {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        storageClassName: world.name(),
      };
      const volumes = [{ name: 'data', ephemeral: { volumeClaimTemplate: { spec } } }];
      await world.addPod({ nodeSelector: onNode(world), volumes });
    },
    recorded: (world) =>
      refuse(world, '0/1 nodes are available: PVC ns1/p-data was not created for pod ns1/p (pod is not owner).'),
    object: 'p-data',
    verdict: 'stuck',
    cause: 'pod-unschedulable',
    says: /^Pod p has an ephemeral volume for which a claim p-data of its own is needed\. This claim was not created for the Pod/,
    advises: /: kubectl delete pvc -n \S+ p-data$/,
    cure: (world) => world.remove({ kind: 'claim', name: 'p-data' }),
    ends: 'bound',
  },
];

/** Another claim of the Pod is the reason. */
const chains: readonly Row[] = [
  {
    title: 'a Pod whose other claim names a class that does not exist',
    async arrange(world) {
      await world.addClass(late);
      await world.addNode();
      await world.addClaim();
      await world.addClaim({ storageClassName: world.name('none') }, { name: 'd' });
      await world.addPod({ nodeSelector: onNode(world), ...twoClaims });
    },
    recorded: (world) =>
      refuse(
        world,
        `running PreFilter plugin "VolumeBinding": storageclass.storage.k8s.io "${world.name('none')}" not found`,
        'p',
        'SchedulerError',
      ),
    verdict: 'stuck',
    cause: 'class-not-found',
    says: /^It waits for Pod p, which waits for claim d: StorageClass \S+ does not exist/,
    advises: /class/,
  },
  {
    title: 'a Pod whose other claim does not exist',
    async arrange(world) {
      await world.addClass(late);
      await world.addNode();
      await world.addClaim();
      await world.addPod({ nodeSelector: onNode(world), ...twoClaims });
    },
    recorded: (world) => refuse(world, '0/1 nodes are available: persistentvolumeclaim "d" not found. not found'),
    verdict: 'stuck',
    cause: 'not-found',
    says: /^It waits for Pod p, which waits for claim d: /,
    advises: /./,
    cure: (world) => world.addClaim({}, { name: 'd' }),
    ends: 'bound',
  },
  {
    title: 'a Pod whose other claim is bound on a node that is gone',
    async arrange(world) {
      await world.addClass(late);
      await world.addNode();
      const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: world.namespace, name: 'd' };
      await world.addVolume({ claimRef, ...usableIn(hostKey, world.name('gone')) });
      await world.addClaim({ volumeName: world.name('volume') }, { name: 'd' });
      await world.addClaim();
      await world.addPod({ nodeSelector: onNode(world), ...twoClaims });
    },
    async recorded(world) {
      await world.patch({ kind: 'claim', name: 'd' }, { status: { phase: 'Bound' } });
      await refuse(world, wrongPlace);
    },
    verdict: 'stuck',
    cause: 'pod-unschedulable',
    says: /^It waits for Pod p, which waits for claim d: .*can only be used on nodes with kubernetes\.io\/hostname=\S+gone, and there is none\./,
    advises: /^Add the node again under that name, with its disks\. .*: kubectl get nodes -L kubernetes\.io\/hostname$/,
  },
];

const afterCures: readonly Row[] = [
  {
    title: 'a Pod that was refused before its claim was created',
    async arrange(world) {
      await world.addClass(late);
      await world.addClaim();
      await world.addPod({ nodeSelector: onNode(world) });
    },
    recorded: (world) => refuse(world, '0/1 nodes are available: persistentvolumeclaim "c" not found. not found'),
    cluster: { not: 'the scheduler tries again within a second' },
    verdict: 'waiting',
    cause: 'waits-for-consumer',
    says: /the scheduler has not tried again since what it said is no longer so: .*"c" not found/,
    advises: /^Nothing: /,
  },
  {
    title: 'a Pod that was refused before its other claim was bound',
    async arrange(world) {
      await world.addClass(late);
      await world.addClaim();
      await world.addClaim({}, { name: 'd', status: { phase: 'Bound' } });
      await world.addPod({ nodeSelector: onNode(world), ...twoClaims });
    },
    recorded: (world) => refuse(world, '0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.'),
    cluster: { not: 'the scheduler tries again within a second' },
    verdict: 'waiting',
    cause: 'waits-for-consumer',
    says: /no longer so: .*unbound immediate/,
    advises: /^Nothing: /,
  },
  {
    title: 'a driver whose capacity the scheduler no longer compares',
    async arrange(world) {
      await addCompared(world);
      await refuse(world, noRoom);
      const name = `${world.name()}.none.example.com`;
      await world.patch({ kind: 'driver', name }, { spec: { storageCapacity: false } });
    },
    recorded: () => Promise.resolve(),
    cluster: { not: 'the scheduler writes its words at any time' },
    verdict: 'waiting',
    cause: 'no-capacity',
    says: /did not have enough free storage/,
    advises: /no longer has storageCapacity: true, and the scheduler tries again within five minutes/,
  },
];

/** The scheduler compares what is published with what is requested. */
const capacity: readonly Row[] = [
  {
    title: 'a driver whose capacity the scheduler compares, and none is published',
    arrange: addCompared,
    recorded: (world) => refuse(world, noRoom),
    laterMs: 5 * minute,
    verdict: 'stuck',
    cause: 'capacity-not-published',
    says: /has storageCapacity: true, .*there is no CSIStorageCapacity for StorageClass \S+: nothing counts as room\.$/,
    advises:
      /--enable-capacity.*: kubectl patch csidriver \S+ --type=merge -p '\{"spec":\{"storageCapacity":false\}\}'$/,
  },
  {
    title: 'a driver that has just been installed, and has published no capacity yet',
    arrange: addCompared,
    recorded: (world) => refuse(world, noRoom),
    verdict: 'waiting',
    cause: 'capacity-not-published',
    says: /there is no CSIStorageCapacity for StorageClass/,
    advises: /^Nothing: .* within two minutes$/,
  },
  {
    title: 'published capacity that is less than requested',
    async arrange(world) {
      await addCompared(world);
      await publish(world, 'zone', { capacity: '512Mi' });
    },
    recorded: (world) => refuse(world, noRoom),
    verdict: 'stuck',
    cause: 'no-capacity',
    says: /requests 1Gi, and the most that is published for a volume of StorageClass \S+ is 512Mi \(topology\.kubernetes\.io\/zone=\S+\)\.$/,
    advises: /^Free storage/,
  },
  {
    title: 'published capacity with a smaller size of volumes',
    async arrange(world) {
      await addCompared(world);
      await publish(world, 'zone', { capacity: '100Gi', maximumVolumeSize: '512Mi' });
    },
    recorded: (world) => refuse(world, noRoom),
    verdict: 'stuck',
    cause: 'no-capacity',
    says: /the most that is published .* is 512Mi/,
    advises: /^Request at most that/,
  },
  {
    title: 'published capacity for segments without nodes',
    async arrange(world) {
      await addCompared(world);
      await publish(world, 'elsewhere', { capacity: '100Gi' });
    },
    recorded: (world) => refuse(world, noRoom),
    verdict: 'stuck',
    cause: 'no-capacity',
    says: /it is published for segments in which no node is: topology\.kubernetes\.io\/zone=\S+elsewhere\.$/,
    advises: /node plugin/,
  },
];

/** The claim is bound, and its Pod does not start. */
const bound: readonly Row[] = [
  {
    title: 'a bound claim in a zone without nodes',
    async arrange(world) {
      await world.addClass();
      await world.addNode({ labels: { [zoneKey]: world.name('other') } });
      await addBoundClaim(world, usableIn(zoneKey, world.name('zone')));
      await world.addPod({ nodeSelector: onNode(world) });
    },
    async recorded(world) {
      await bind(world);
      await refuse(world, wrongPlace);
    },
    verdict: 'bound',
    cause: 'bound',
    says: /^The claim is bound to PersistentVolume \S+, and Pod p, which uses it, cannot be scheduled: the volume can only be used on nodes with topology\.kubernetes\.io\/zone=\S+zone, and there is none\. Nodes have .*other/,
    advises:
      /^Add a node there, or see whether one that is there has lost its label; .*: kubectl get nodes -L topology\.kubernetes\.io\/zone$/,
  },
  {
    title: 'a bound claim whose zone has a cordoned node only',
    async arrange(world) {
      await world.addClass();
      await world.addNode({ labels: { [zoneKey]: world.name('zone') } });
      await world.patch({ kind: 'node', name: world.name('node') }, { spec: { unschedulable: true } });
      await world.addNode({ name: world.name('elsewhere') });
      await addBoundClaim(world, usableIn(zoneKey, world.name('zone')));
      const values = [world.name('node'), world.name('elsewhere')];
      const nodeSelectorTerms = [{ matchExpressions: [{ key: hostKey, operator: 'In', values }] }];
      const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
      await world.addPod({ affinity: { nodeAffinity } });
    },
    async recorded(world) {
      await bind(world);
      await refuse(
        world,
        '0/2 nodes are available: 1 node(s) were unschedulable, 1 node(s) had volume node affinity conflict.',
      );
    },
    verdict: 'bound',
    cause: 'bound',
    says: /can only be used on nodes with topology\.kubernetes\.io\/zone=\S+, which are \S+node \(cordoned\)\. The scheduler: /,
    advises: /: kubectl uncordon \S+node$/,
  },
  {
    title: 'a bound claim whose volume is in another zone than the nodes that its Pod asks for',
    async arrange(world) {
      await world.addClass();
      await world.addNode({ labels: { [zoneKey]: world.name('zone') } });
      await world.addNode({ name: world.name('gpu'), labels: { [zoneKey]: world.name('other') } });
      await addBoundClaim(world, usableIn(zoneKey, world.name('zone')));
      await world.addPod({ nodeSelector: { [hostKey]: world.name('gpu') } });
    },
    async recorded(world) {
      await bind(world);
      await refuse(
        world,
        "0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, 1 node(s) didn't match Pod's node affinity/selector.",
      );
    },
    verdict: 'bound',
    cause: 'bound',
    says: /can only be used on nodes with topology\.kubernetes\.io\/zone=\S+, which are \S+node\. The scheduler: /,
    advises:
      /^None of these nodes has the labels that nodeSelector or affinity of the Pod ask for: .* volumeBindingMode WaitForFirstConsumer/,
  },
  {
    title: 'a bound claim whose volume is on a node where its Pod must not run beside another one',
    async arrange(world) {
      await world.addClass();
      await world.addNode();
      await world.addNode({ name: world.name('elsewhere') });
      await addBoundClaim(world, usableIn(hostKey, world.name('node')));
      const labels = { app: 'db' };
      const containers = [{ name: 'main', image: 'none' }];
      await world.add('pod', {
        metadata: { name: 'first', labels },
        spec: { nodeName: world.name('node'), containers },
      });
      const apart = [{ labelSelector: { matchLabels: labels }, topologyKey: hostKey }];
      const values = [world.name('node'), world.name('elsewhere')];
      const nodeSelectorTerms = [{ matchExpressions: [{ key: hostKey, operator: 'In', values }] }];
      await world.addPod({
        affinity: {
          nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
          podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: apart },
        },
      });
    },
    async recorded(world) {
      await bind(world);
      await refuse(
        world,
        "0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, 1 node(s) didn't match pod anti-affinity rules.",
      );
    },
    verdict: 'bound',
    cause: 'bound',
    says: /can only be used on nodes with kubernetes\.io\/hostname=\S+, which are \S+node\. The scheduler: .*anti-affinity rules/,
    advises:
      /^Relax podAffinity and podAntiAffinity of the Pods, .*\. Another node does not help: the volume is only on these$/,
  },
  {
    title: 'a bound claim whose Pod has another claim in another zone',
    async arrange(world) {
      await world.addClass();
      await world.addNode({ labels: { [zoneKey]: world.name('zone') } });
      await world.addNode({ name: world.name('elsewhere'), labels: { [zoneKey]: world.name('other') } });
      await addBoundClaim(world, usableIn(zoneKey, world.name('zone')));
      const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: world.namespace, name: 'd' };
      await world.addVolume({ claimRef, ...usableIn(zoneKey, world.name('other')) }, { name: world.name('second') });
      await world.addClaim({ volumeName: world.name('second') }, { name: 'd' });
      await world.addPod({
        volumes: [
          { name: 'data', persistentVolumeClaim: { claimName: 'c' } },
          { name: 'more', persistentVolumeClaim: { claimName: 'd' } },
        ],
      });
    },
    async recorded(world) {
      await bind(world);
      await world.patch({ kind: 'volume', name: world.name('second') }, { status: { phase: 'Bound' } });
      await world.patch({ kind: 'claim', name: 'd' }, { status: { phase: 'Bound' } });
      await refuse(world, "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity.");
    },
    verdict: 'bound',
    cause: 'bound',
    says: /no node can use both its volumes\. That of this claim is for nodes with topology\.kubernetes\.io\/zone=\S+zone, which are \S+node; that of claim d is for nodes with topology\.kubernetes\.io\/zone=\S+other, which are \S+elsewhere\.$/,
    advises: /^Give the Pod claims whose volumes are in one place: .*WaitForFirstConsumer$/,
  },
  {
    title: 'a bound claim with a volume of a node that is gone',
    async arrange(world) {
      await world.addClass();
      await world.addNode();
      await addBoundClaim(world, usableIn(hostKey, world.name('gone')));
      await world.addPod({ nodeSelector: onNode(world) });
    },
    async recorded(world) {
      await bind(world);
      await refuse(world, wrongPlace);
    },
    verdict: 'bound',
    cause: 'bound',
    says: /only be used on nodes with kubernetes\.io\/hostname=\S+gone, and there is none/,
    advises: /^Add the node again under that name/,
  },
  {
    title: 'a bound claim that one Pod may use, and two want',
    async arrange(world) {
      await world.addClass();
      await world.addNode();
      await addBoundClaim(world, {}, ['ReadWriteOncePod']);
      if (world.level === 'cluster') await world.bound();
      await world.addPod({ nodeSelector: onNode(world) }, { name: 'q' });
      await world.placed('q');
      await world.addPod({ nodeSelector: onNode(world) });
    },
    async recorded(world) {
      await bind(world);
      await world.patch({ kind: 'pod', name: 'q' }, { status: { phase: 'Running' } });
      await refuse(
        world,
        '0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod.',
      );
    },
    verdict: 'bound',
    cause: 'bound',
    says: /cannot be scheduled: the claim has access mode ReadWriteOncePod, and Pod q on node \S+ uses it\.$/,
    advises: /^Delete that Pod, or wait for its end: kubectl delete pod -n \S+ q$/,
  },
  {
    title: 'a bound claim whose only Pod is Terminating on a dead node',
    async arrange(world) {
      await world.addClass();
      await world.addNode();
      await addBoundClaim(world, {}, ['ReadWriteOncePod']);
      if (world.level === 'cluster') await world.bound();
      await world.addPod({ nodeSelector: onNode(world), terminationGracePeriodSeconds: 1 }, { name: 'q' });
      await world.placed('q');
      await world.patch({ kind: 'node', name: world.name('node') }, notReady);
      await world.remove({ kind: 'pod', name: 'q', graceful: true });
      await world.addPod({ nodeSelector: onNode(world) });
    },
    async recorded(world) {
      await bind(world);
      await refuse(
        world,
        '0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod.',
      );
    },
    laterMs: 10 * minute,
    verdict: 'bound',
    cause: 'bound',
    says: /Pod q on node \S+ uses it; that Pod is Terminating for .* min, and its node \S+ is not ready \(Ready is Unknown since .*\), so that its end is not confirmed\.$/,
    advises: /: kubectl taint nodes \S+ node\.kubernetes\.io\/out-of-service=nodeshutdown:NoExecute$/,
  },
  {
    title: 'a bound claim whose Pod waits for another claim',
    async arrange(world) {
      await world.addClass();
      await world.addNode();
      await addBoundClaim(world);
      await world.addClaim({ storageClassName: world.name('none') }, { name: 'd' });
      await world.addPod({ nodeSelector: onNode(world), ...twoClaims });
    },
    async recorded(world) {
      await bind(world);
      await refuse(world, '0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.');
    },
    verdict: 'bound',
    cause: 'bound',
    says: /^The claim is bound to PersistentVolume \S+, and Pod p, which uses it, waits for its claim d\./,
    advises: /: csi-provisioner why \S+\/d$/,
  },
  {
    title: 'a bound claim whose Pod waits in silence for the volume of another claim',
    async arrange(world) {
      await world.addClass();
      await world.addNode();
      await addBoundClaim(world);
      await world.addClaim({}, { name: 'd' });
      await world.addPod({ nodeSelector: onNode(world), ...twoClaims });
    },
    async recorded(world) {
      await bind(world);
      await world.patch(pod, { status: { phase: 'Pending' } });
    },
    cluster: { not: 'the scheduler is silent for ten minutes at most, while a driver works' },
    laterMs: 5 * minute,
    verdict: 'bound',
    cause: 'bound',
    says: /and Pod p, which uses it, waits for its claim d\.$/,
    advises: /: csi-provisioner why ns1\/d$/,
  },
  {
    title: 'a bound claim that is in the way of an ephemeral volume',
    async arrange(world) {
      await world.addClass();
      await world.addNode();
      const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: world.namespace, name: 'p-data' };
      await world.addVolume({ claimRef });
      await world.addClaim({ volumeName: world.name('volume') }, { name: 'p-data' });
      const spec = {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        storageClassName: world.name(),
      };
      await world.addPod({
        nodeSelector: onNode(world),
        volumes: [{ name: 'data', ephemeral: { volumeClaimTemplate: { spec } } }],
      });
    },
    async recorded(world) {
      await world.patch({ kind: 'claim', name: 'p-data' }, { status: { phase: 'Bound' } });
      await refuse(world, '0/1 nodes are available: PVC ns1/p-data was not created for pod ns1/p (pod is not owner).');
    },
    object: 'p-data',
    verdict: 'bound',
    cause: 'bound',
    says: /has an ephemeral volume for which a claim p-data of its own is needed/,
    advises: /: kubectl delete pvc -n \S+ p-data$/,
  },
  {
    title: 'a bound claim whose volume cannot be attached',
    async arrange(world) {
      await world.addClass();
      await world.addNode();
      await addBoundClaim(world);
      if (world.level === 'cluster') await world.bound();
      await world.addPod({ nodeSelector: onNode(world) });
      await world.placed();
      const attachError = { time: new Date().toISOString(), message: 'rpc error: code = NotFound desc = no such disk' };
      await addAttachment(world, world.name('node'), { attachError });
    },
    async recorded(world) {
      await bind(world);
      await world.patch(pod, { status: { phase: 'Pending' } });
    },
    verdict: 'bound',
    cause: 'bound',
    says: /cannot start on node \S+: its volume cannot be attached\. Last error: rpc error: code = NotFound desc = no such disk$/,
    advises: /csi-attacher/,
  },
  {
    title: 'a bound claim whose volume nobody attaches',
    async arrange(world) {
      await world.addClass();
      await world.addNode();
      await addBoundClaim(world);
      if (world.level === 'cluster') await world.bound();
      await world.addPod({ nodeSelector: onNode(world) });
      await world.placed();
      await addAttachment(world, world.name('node'));
    },
    async recorded(world) {
      await bind(world);
      await world.patch(pod, { status: { phase: 'Pending' } });
    },
    laterMs: 5 * minute,
    verdict: 'bound',
    cause: 'bound',
    says: /VolumeAttachment csi-\S+ asks the external-attacher of \S+ to attach the volume, and nothing has happened for \d min\.$/,
    advises: /csi-attacher/,
  },
  {
    title: 'a bound claim whose volume is attached to the node of another Pod',
    async arrange(world) {
      await world.addClass();
      await world.addNode();
      await addBoundClaim(world);
      if (world.level === 'cluster') await world.bound();
      await world.addPod({ nodeSelector: onNode(world) }, { name: 'q' });
      await world.placed('q');
      await world.addNode({ name: world.name('second') });
      await world.addPod({ nodeSelector: { [hostKey]: world.name('second') } });
      await world.placed();
      await world.addEvent(pod, {
        reason: 'FailedAttachVolume',
        message: `Multi-Attach error for volume "${world.name('volume')}" Volume is already used by pod(s) q`,
        component: 'attachdetach-controller',
      });
    },
    async recorded(world) {
      await bind(world);
      await world.patch(pod, { status: { phase: 'Pending' } });
    },
    verdict: 'bound',
    cause: 'bound',
    says: /cannot start on node \S+second: the volume is attached to node \S+node, where Pod q uses it\.$/,
    advises: /: kubectl delete pod -n \S+ q$/,
  },
  ...[
    {
      title: 'a bound claim of a rolling update, whose old Pod has the volume elsewhere',
      sets: ['web-1', 'web-2'],
      advises:
        /^Deployment web keeps the old Pod .*: kubectl patch deployment -n \S+ web -p '\{"spec":\{"strategy":\{"type":"Recreate","rollingUpdate":null\}\}\}'$/,
    },
    {
      title: 'a bound claim that two replicas want on two nodes',
      sets: ['web-1', 'web-1'],
      advises: /^Both are replicas of Deployment web, .*: kubectl scale deployment -n \S+ web --replicas=1$/,
    },
    {
      title: 'a bound claim that a Pod of another Deployment has elsewhere',
      sets: ['web-1', 'job-1'],
      advises: /^Deployment web would create that Pod again: let only one of the two use the claim/,
    },
  ].map(({ title, sets: [ofHolder = '', ofPod = ''], advises }): Row => ({
    title,
    async arrange(world) {
      await world.addClass();
      await world.addNode();
      await addBoundClaim(world);
      await world.addPod({ nodeSelector: onNode(world) }, { name: 'q' });
      await world.placed('q');
      await world.addNode({ name: world.name('second') });
      await world.addPod({ nodeSelector: { [hostKey]: world.name('second') } });
      await world.placed();
      await world.patch({ kind: 'pod', name: 'q' }, ofReplicaSet(ofHolder));
      await world.patch(pod, ofReplicaSet(ofPod));
      await world.addEvent(pod, {
        reason: 'FailedAttachVolume',
        message: `Multi-Attach error for volume "${world.name('volume')}" Volume is already used by pod(s) q`,
        component: 'attachdetach-controller',
      });
    },
    async recorded(world) {
      await bind(world);
      await world.patch(pod, { status: { phase: 'Pending' } });
    },
    cluster: { not: 'the garbage collector takes Pods whose ReplicaSet does not exist' },
    verdict: 'bound',
    cause: 'bound',
    says: /cannot start on node \S+second: the volume is attached to node \S+node, where Pod q uses it\.$/,
    advises,
  })),
  {
    title: 'a bound claim whose volume cannot be mounted',
    async arrange(world) {
      await world.addClass();
      await world.addNode();
      await addBoundClaim(world);
      if (world.level === 'cluster') await world.bound();
      await world.addPod({ nodeSelector: onNode(world) });
      await world.placed();
      await world.addEvent(pod, {
        reason: 'FailedMount',
        message: `MountVolume.SetUp failed for volume "${world.name('volume')}" : rpc error: code = Internal desc = bad superblock`,
        component: 'kubelet',
      });
    },
    async recorded(world) {
      await bind(world);
      await world.patch(pod, { status: { phase: 'Pending' } });
    },
    verdict: 'bound',
    cause: 'bound',
    says: /cannot start on node \S+: its volume cannot be mounted\. Last error, \d+ s ago: MountVolume\.SetUp failed .*bad superblock$/,
    advises: /^The file system of the volume is damaged, differs from its fsType, or .*Take a snapshot or copy before/,
  },
];

/** As the ReplicaSet of a Deployment creates a Pod. */
function ofReplicaSet(name: string): object {
  const [, hash = ''] = name.split('-');
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name, uid: `uid-${name}`, controller: true };
  return { metadata: { labels: { 'pod-template-hash': hash }, ownerReferences: [owner] } };
}

/** What a kubelet or kube-controller-manager says of Pod `p`, which has a node. */
async function startWith(world: World, event: RecordedEvent): Promise<void> {
  await world.addClass();
  await world.addNode();
  await addBoundClaim(world);
  if (world.level === 'cluster') await world.bound();
  await world.addPod({ nodeSelector: onNode(world) });
  await world.placed();
  await world.addEvent(pod, event);
}

/** Container `main` of Pod `p`, which has the volume at /data, is started in vain. @param message - what it wrote last. */
async function crash(world: World, message: string, reason = 'Error'): Promise<void> {
  await startWith(world, { reason: 'Scheduled', message: 'assigned', component: 'default-scheduler' });
  const waiting = { reason: 'CrashLoopBackOff', message: 'back-off 5m0s restarting failed container=main pod=p' };
  const terminated = { exitCode: 1, reason, message, startedAt: null, finishedAt: null };
  const status = { name: 'main', state: { waiting }, lastState: { terminated }, ready: false, restartCount: 7 };
  await world.patch(pod, {
    status: { phase: 'Running', containerStatuses: [{ ...status, image: 'none', imageID: '' }] },
  });
}

async function boundAndPending(world: World): Promise<void> {
  await bind(world);
  await world.patch(pod, { status: { phase: 'Pending' } });
}

/** As when the scheduler has placed the Pod a moment ago. */
async function boundAndPlaced(world: World): Promise<void> {
  await bind(world);
  const placed = { type: 'PodScheduled', status: 'True', lastTransitionTime: new Date().toISOString() };
  await world.patch(pod, { status: { phase: 'Pending', conditions: [placed] } });
}

const attachedElsewhere = (world: World): RecordedEvent => ({
  reason: 'FailedAttachVolume',
  message: `Multi-Attach error for volume "${world.name('volume')}" Volume is already exclusively attached to one node and can't be attached to another`,
  component: 'attachdetach-controller',
});

/** What a kubelet records of all volumes of a Pod that are not mounted, by their names in the Pod. */
const waitsFor = (volume: string): RecordedEvent => ({
  reason: 'FailedMount',
  message: `Unable to attach or mount volumes: unmounted volumes=[${volume}], unattached volumes=[], failed to process volumes=[]: context deadline exceeded`,
  component: 'kubelet',
  count: 7,
});

const missing = 'MountVolume.SetUp failed for volume "config" : configmap "app-config" not found';

const starting: readonly Row[] = [
  {
    title: 'a bound claim whose mount has lost its process',
    arrange: (world) =>
      startWith(world, {
        reason: 'FailedMount',
        message: `MountVolume.SetUp failed for volume "${world.name('volume')}" : stat /m/mount: transport endpoint is not connected`,
        component: 'kubelet',
      }),
    recorded: boundAndPending,
    verdict: 'bound',
    cause: 'bound',
    says: /its volume cannot be mounted\. Last error, \d+ s ago: .*transport endpoint is not connected$/,
    advises: /^The process that serves this mount on node \S+ \(FUSE\) has ended/,
  },
  {
    title: 'a bound claim whose server has exported its directory anew',
    arrange: (world) =>
      startWith(world, {
        reason: 'FailedMount',
        message: `MountVolume.SetUp failed for volume "${world.name('volume')}" : stat /m/mount: stale NFS file handle`,
        component: 'kubelet',
      }),
    recorded: boundAndPending,
    verdict: 'bound',
    cause: 'bound',
    says: /its volume cannot be mounted\. Last error, \d+ s ago: .*stale NFS file handle$/,
    advises: /^The server no longer has the directory that node \S+ has mounted/,
  },
  {
    title: 'a bound claim whose volume must be detached from the node first',
    async arrange(world) {
      await startWith(world, {
        reason: 'FailedMount',
        message: `MountVolume.WaitForAttach failed for volume "${world.name('volume')}" : volume attachment is being deleted`,
        component: 'kubelet',
      });
      const detachError = { time: new Date().toISOString(), message: 'context deadline exceeded' };
      const { metadata } = await addAttachment(world, world.name('node'), { attached: true, detachError });
      const held = { kind: 'attachment', name: metadata.name } as const;
      await world.patch(held, { metadata: { finalizers: ['external-attacher/csi-example-com'] } });
      await world.remove(held);
    },
    recorded: boundAndPending,
    cluster: { not: 'it needs an external-attacher that cannot detach' },
    verdict: 'bound',
    cause: 'bound',
    says: /the volume is being detached from it first \(VolumeAttachment csi-\S+\)\. Detaching it has failed for \d+ s, and is tried again\. Last error: context deadline exceeded\.$/,
    advises:
      /^See the log of the driver \S+\. .* attached to no node, .* remove the finalizer; the volume is then attached again: kubectl patch volumeattachment csi-\S+ --type=json /,
  },
  {
    title: 'a bound claim whose volume stays attached to a node that is gone',
    async arrange(world) {
      await startWith(world, attachedElsewhere(world));
      await addAttachment(world, world.name('gone'), { attached: true });
    },
    recorded: boundAndPending,
    laterMs: 20 * minute,
    verdict: 'bound',
    cause: 'bound',
    says: /the volume is still attached to node \S+gone \(VolumeAttachment csi-\S+\)\. The node does not exist, and kube-controller-manager has not detached the volume for 20 min\.$/,
    advises:
      /^If the machine is off or gone, so that it cannot write to the volume any more: kubectl delete volumeattachment csi-\S+$/,
  },
  {
    title: 'a bound claim whose volume is still mounted on a node where no Pod uses it',
    async arrange(world) {
      await startWith(world, attachedElsewhere(world));
      await world.addNode({ name: world.name('second') });
      const volumesInUse = [`kubernetes.io/csi/${world.driver}^${world.name('volume')}`];
      await world.patch({ kind: 'node', name: world.name('second') }, { status: { volumesInUse } });
      await addAttachment(world, world.name('second'), { attached: true });
    },
    recorded: boundAndPending,
    laterMs: 20 * minute,
    verdict: 'bound',
    cause: 'bound',
    says: /still attached to node \S+second \(VolumeAttachment csi-\S+\)\. The kubelet of the node says that it still uses the volume \(status\.volumesInUse\)\.$/,
    advises: /^See which Pods are left there, and the log of its kubelet: kubectl get pods /,
  },
  {
    title: 'a bound claim whose volume cannot be detached from another node',
    async arrange(world) {
      await startWith(world, attachedElsewhere(world));
      const detachError = { time: new Date().toISOString(), message: 'disk is busy' };
      const { metadata } = await addAttachment(world, world.name('second'), { attached: true, detachError });
      const held = { kind: 'attachment', name: metadata.name } as const;
      await world.patch(held, { metadata: { finalizers: ['external-attacher/csi-example-com'] } });
      await world.remove(held);
    },
    recorded: boundAndPending,
    cluster: { not: 'it needs an external-attacher that cannot detach' },
    laterMs: 20 * minute,
    verdict: 'bound',
    cause: 'bound',
    says: /still attached to node \S+second \(VolumeAttachment csi-\S+\)\. Detaching it has failed for 20 min, and is tried again\. Last error: disk is busy\.$/,
    advises:
      /attached to no node, .* remove the finalizer; the volume can then be attached to the node of the Pod: kubectl patch volumeattachment csi-\S+ /,
  },
  {
    title: 'a bound claim for whose volume the kubelet waits, without an error',
    arrange: (world) => startWith(world, waitsFor('data')),
    recorded: boundAndPending,
    verdict: 'bound',
    cause: 'bound',
    says: /does not start on node \S+node: its volume is not mounted, and no event names an error\. Last event, \d+ s ago: Unable to attach or mount volumes: unmounted volumes=\[data\]/,
    advises:
      /^See the log of the driver's node plugin on node \S+node, and whether the volume is attached: kubectl get volumeattachments$/,
  },
  {
    title: 'a bound claim that is a block device, and is named among the file systems of a container',
    async arrange(world) {
      const { message, ...event } = waitsFor('data');
      const words =
        'failed to process volumes=[data]: volume data has volumeMode Block, but is specified in volumeMounts';
      await startWith(world, { ...event, message: message.replace(/failed to process volumes=.*$/, words) });
    },
    recorded: boundAndPending,
    verdict: 'bound',
    cause: 'bound',
    says: /cannot start on node \S+node: its kubelet cannot use the volume\. Last error, \d+ s ago: volume data has volumeMode Block/,
    advises: /^The claim is a block device \(volumeMode Block\): name it in volumeDevices of the container/,
  },
  {
    title: 'a bound claim whose Pod is on a node that is not ready',
    async arrange(world) {
      await startWith(world, waitsFor('data'));
      await world.patch({ kind: 'node', name: world.name('node') }, notReady);
    },
    recorded: boundAndPending,
    verdict: 'bound',
    cause: 'bound',
    says: /cannot start: its node \S+node is not ready \(Ready is Unknown since \S+\), so that nothing starts there\.$/,
    advises: /^Start the node again\. .*: kubectl taint nodes \S+ /,
  },
  {
    title: 'a bound claim in whose volume the kubelet cannot create a directory',
    async arrange(world) {
      await startWith(world, { reason: 'Scheduled', message: 'assigned', component: 'default-scheduler' });
      const waiting = {
        reason: 'CreateContainerConfigError',
        message: 'failed to create subPath directory for volumeMount "data" of container "main"',
      };
      const status = { name: 'main', state: { waiting }, ready: false, restartCount: 0, image: 'none', imageID: '' };
      await world.patch(pod, { status: { containerStatuses: [status] } });
    },
    recorded: boundAndPending,
    verdict: 'bound',
    cause: 'bound',
    says: /the volume is mounted, and its container main cannot use a directory of it \(CreateContainerConfigError: /,
    advises:
      /^Create the directory \(subPath of the container\) in the volume, or let root of node \S+node write there/,
  },
  {
    title: 'a bound claim whose Pod gets no sandbox',
    arrange: (world) =>
      startWith(world, {
        reason: 'FailedCreatePodSandBox',
        message: 'Failed to create pod sandbox: plugin type="aws-cni" failed (add): failed to assign an IP address',
        component: 'kubelet',
      }),
    recorded: boundAndPending,
    verdict: 'bound',
    cause: 'bound',
    says: /for a reason other than this claim: the kubelet cannot create its sandbox\. Last error, \d+ s ago: .*IP address$/,
    advises:
      /^Usually that is the network plugin \(CNI\) of the node: do what the error says, and see its Pod on node \S+node$/,
  },
  {
    title: 'a bound claim whose Pod lacks a ConfigMap, which the kubelet reports less often than the volumes',
    async arrange(world) {
      await startWith(world, { reason: 'FailedMount', message: missing, component: 'kubelet', msAgo: 30_000 });
      await world.addEvent(pod, waitsFor('config'));
    },
    recorded: boundAndPending,
    verdict: 'bound',
    cause: 'bound',
    says: /another of its volumes cannot be mounted\. Last error, \d+ s ago: .*configmap "app-config" not found$/,
    advises: /^Create what it names/,
  },
  {
    title: 'a bound claim whose Pod waits on its node for the volume of another claim',
    async arrange(world) {
      await world.addClass();
      await world.addNode();
      await addBoundClaim(world);
      if (world.level === 'cluster') await world.bound();
      await world.addPod({ nodeName: world.name('node'), ...twoClaims });
      await world.addEvent(pod, waitsFor('logs'));
    },
    recorded: boundAndPending,
    verdict: 'bound',
    cause: 'bound',
    says: /for a reason other than this claim: another of its volumes cannot be mounted\. .*unmounted volumes=\[logs\]/,
    advises: /^Look at the claim of that volume: csi-provisioner why \S+\/d$/,
  },
  {
    title: 'a bound claim whose Pod is Terminating on a dead node, so that none takes its place',
    async arrange(world) {
      await world.addClass();
      await addClaimInUse(world, notReady);
      if (world.level === 'cluster') await world.bound();
      await terminate(world);
    },
    async recorded(world) {
      await bind(world);
      await world.patch(pod, { status: { phase: 'Running' } });
    },
    laterMs: 10 * minute,
    verdict: 'bound',
    cause: 'bound',
    says: /and Pod p, which uses it, is Terminating for \d+ min, and its node \S+ is not ready \(Ready is Unknown since /,
    advises: /: kubectl taint nodes \S+ node\.kubernetes\.io\/out-of-service=nodeshutdown:NoExecute$/,
  },
  {
    title: 'a bound claim whose files the kubelet may not give to the group of the Pod',
    arrange: (world) =>
      startWith(world, {
        reason: 'FailedMount',
        message: `MountVolume.SetUp failed for volume "${world.name('volume')}" : applyFSGroup failed for vol v: open /m/raft: permission denied`,
        component: 'kubelet',
      }),
    recorded: boundAndPending,
    verdict: 'bound',
    cause: 'bound',
    says: /its volume cannot be mounted\. Last error, \d+ s ago: .*permission denied$/,
    advises: /^The kubelet of node \S+ may not change the group of the files to the fsGroup of the Pod/,
  },
  {
    title: 'a bound claim whose Pod lacks a ConfigMap',
    arrange: (world) => startWith(world, { reason: 'FailedMount', message: missing, component: 'kubelet', count: 7 }),
    recorded: boundAndPending,
    verdict: 'bound',
    cause: 'bound',
    says: /does not start on node \S+node, for a reason other than this claim: another of its volumes cannot be mounted\. .*configmap "app-config" not found$/,
    advises:
      /^Create what it names, such as a ConfigMap or a Secret, or correct the Pod: kubectl describe pod -n \S+ p$/,
  },
  {
    title: 'a bound claim whose Pod has an image that cannot be pulled',
    async arrange(world) {
      await startWith(world, { reason: 'Scheduled', message: 'assigned', component: 'default-scheduler' });
      const waiting = { reason: 'ImagePullBackOff', message: 'Back-off pulling image "nginx:typo"' };
      const status = { name: 'main', state: { waiting }, ready: false, restartCount: 0, image: 'none', imageID: '' };
      await world.patch(pod, { status: { containerStatuses: [status] } });
    },
    recorded: boundAndPending,
    verdict: 'bound',
    cause: 'bound',
    says: /for a reason other than this claim: its container main waits \(ImagePullBackOff: Back-off pulling image "nginx:typo"\)\.$/,
    advises:
      /^Correct the name of the image; .* a Secret in imagePullSecrets, of which the Pod has none: kubectl describe pod -n \S+ p$/,
  },
  {
    title: 'a bound claim whose Pod crashes because its user may not write to the volume',
    arrange: (world) => crash(world, "mkdir: cannot create directory '/data/pgdata': Permission denied"),
    recorded: bind,
    verdict: 'bound',
    cause: 'bound',
    says: /and Pod p, which uses it, has its volumes on node \S+node, but its container main exits each time it is started \(exit code 1, Error\)\. Last message: .*Permission denied$/,
    advises:
      /^Unless the error says otherwise: let the user of the container write to the volume: set securityContext\.fsGroup .*: kubectl logs -n \S+ p -c main --previous$/,
  },
  {
    title: 'a bound claim whose Pod crashes because the volume is full',
    arrange: (world) => crash(world, 'could not write to file "/data/wal/1": No space left on device'),
    recorded: bind,
    verdict: 'bound',
    cause: 'bound',
    says: /exits each time it is started .*No space left on device$/,
    advises: /the volume is full: .*allowVolumeExpansion.*: kubectl edit pvc -n \S+ c\. Its log: kubectl logs /,
  },
  {
    title: 'a bound claim whose Pod runs on a mount that has lost its process',
    async arrange(world) {
      await startWith(world, { reason: 'Scheduled', message: 'assigned', component: 'default-scheduler' });
      const { spec } = (await world.read({ kind: 'claim', name: 'c' })) ?? {};
      const name = String(spec?.['volumeName']);
      const message = `failed to stat "/var/lib/kubelet/pods/1/volumes/kubernetes.io~csi/${name}/mount": transport endpoint is not connected`;
      const waiting = { reason: 'CreateContainerError', message };
      const status = { name: 'main', state: { waiting }, ready: false, restartCount: 1, image: 'none', imageID: '' };
      await world.patch(pod, { status: { phase: 'Running', containerStatuses: [status] } });
    },
    recorded: bind,
    verdict: 'bound',
    cause: 'bound',
    says: /cannot run its container main on node \S+node, which cannot use the volume \(CreateContainerError: .*not connected\)\.$/,
    advises: /^The process that serves this mount on node \S+node \(FUSE\) has ended/,
  },
  {
    title: 'a bound claim whose Pod does not start, of which nobody says anything',
    arrange: (world) => startWith(world, { reason: 'Scheduled', message: 'assigned', component: 'default-scheduler' }),
    recorded: boundAndPlaced,
    laterMs: 20 * minute,
    verdict: 'bound',
    cause: 'bound',
    says: /and Pod p, which uses it, has not started on node \S+node in \d+ min, and no event says why\.$/,
    advises: /^See the log of its kubelet: kubectl describe pod -n \S+ p$/,
  },
  {
    title: 'a bound claim whose Pod does not start, of which an old event says why',
    arrange: (world) =>
      startWith(world, {
        reason: 'FailedAttachVolume',
        message: `AttachVolume.Attach failed for volume "${world.name('volume')}" : rpc error: code = Internal desc = AttachmentLimitExceeded`,
        component: 'attachdetach-controller',
      }),
    recorded: boundAndPlaced,
    laterMs: 20 * minute,
    verdict: 'bound',
    cause: 'bound',
    says: /has not started on node \S+node in \d+ min\. Last error of its volume, \d+ min ago: .*AttachmentLimitExceeded$/,
    advises: /^Node \S+node has as many volumes attached as its machine allows: .* see also the log of the kubelet: /,
  },
  {
    title: 'a bound claim of which a file is mounted that is a directory there',
    async arrange(world) {
      const message =
        'unable to start container process: error mounting "/v/volume-subpaths/pv/main/0" to rootfs at "/etc/app/config.yaml": not a directory: Are you trying to mount a directory onto a file (or vice-versa)?';
      await crash(world, message, 'StartError');
    },
    recorded: bind,
    verdict: 'bound',
    cause: 'bound',
    says: /has its volumes on node \S+node, but its container main cannot be started \(exit code 1, StartError\)\. Last message: .*not a directory/,
    advises: /^A file is to be mounted over a directory, or a directory over a file: .* use a ConfigMap or Secret$/,
  },
  {
    title: 'a bound claim whose Pod crashes as its directory is not empty',
    arrange: (world) =>
      crash(world, 'initdb: error: directory "/data" exists but is not empty. It contains a lost+found directory'),
    recorded: bind,
    verdict: 'bound',
    cause: 'bound',
    says: /exits each time it is started .*lost\+found directory$/,
    advises: /the program wants an empty directory, and the root of a file system has lost\+found: .* PGDATA\)/,
  },
  {
    title: 'a bound claim whose Pod crashes for what it says of a file elsewhere',
    arrange: (world) => crash(world, 'open /etc/app/key: permission denied'),
    recorded: bind,
    verdict: 'bound',
    cause: 'bound',
    says: /Last message: open \/etc\/app\/key: permission denied$/,
    advises: /^See why it ends: kubectl logs -n \S+ p -c main --previous$/,
  },
  {
    title: 'a bound claim whose PersistentVolume has the volumeHandle of another one in the Pod',
    async arrange(world) {
      await world.addClass();
      await world.addNode();
      await addBoundClaim(world);
      const { spec } = (await world.read({ kind: 'volume', name: world.name('volume') })) ?? {};
      const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: world.namespace, name: 'd' };
      await world.addVolume({ claimRef, csi: spec?.['csi'] }, { name: world.name('second') });
      await world.addClaim({ volumeName: world.name('second') }, { name: 'd' });
      if (world.level === 'cluster') await Promise.all([world.bound(), world.bound('d')]);
      await world.addPod({ nodeSelector: onNode(world), ...twoClaims });
      await world.placed();
      await world.addEvent(pod, waitsFor('data'));
    },
    async recorded(world) {
      await world.patch({ kind: 'volume', name: world.name('second') }, { status: { phase: 'Bound' } });
      await world.patch({ kind: 'claim', name: 'd' }, { status: { phase: 'Bound' } });
      await boundAndPending(world);
    },
    verdict: 'bound',
    cause: 'bound',
    says: /cannot start on node \S+node: PersistentVolumes \S+volume and \S+second \(claim d\) have the same volumeHandle, \S+, so that its kubelet takes them for one volume/,
    advises: /^Give each PersistentVolume its own volumeHandle: .*; or mount claim d twice, with subPath$/,
  },
  {
    title: 'a bound claim whose Pod is on a tainted node without the node plugin of the driver',
    async arrange(world) {
      const message = `MountVolume.MountDevice failed for volume "${world.name('volume')}" : kubernetes.io/csi: attacher.MountDevice failed to create newCsiDriverClient: driver name d not found in the list of registered CSI drivers`;
      await startWith(world, { reason: 'FailedMount', message, component: 'kubelet', count: 4 });
      await taint(world, 'nvidia.com/gpu');
    },
    recorded: boundAndPending,
    verdict: 'bound',
    cause: 'bound',
    says: /its volume cannot be mounted\. Last error, \d+ s ago: .*not found in the list of registered CSI drivers$/,
    advises:
      /^Let the driver's node plugin, usually a DaemonSet, run on node \S+node \(its Pods must tolerate the taint nvidia\.com\/gpu:NoSchedule\)/,
  },
  {
    title: 'a bound claim whose volume is in another zone than its node, which its PersistentVolume does not say',
    arrange: (world) =>
      startWith(world, {
        reason: 'FailedAttachVolume',
        message: `AttachVolume.Attach failed for volume "${world.name('volume')}" : rpc error: code = Internal desc = InvalidVolume.ZoneMismatch: The volume is not in the same availability zone as instance i-1`,
        component: 'attachdetach-controller',
      }),
    recorded: boundAndPending,
    verdict: 'bound',
    cause: 'bound',
    says: /its volume cannot be attached\. Last error, .*ZoneMismatch/,
    advises: /^The volume is in another zone than node \S+node: have the Pod run in that of the volume/,
  },
  {
    title: 'a claim whose Pod waits for others to make room, which do not end',
    async arrange(world) {
      await world.addClass(late);
      await world.addClaim();
      await world.addPod({ nodeSelector: onNode(world) });
    },
    async recorded(world) {
      const refusal = {
        type: 'PodScheduled',
        status: 'False',
        reason: 'Unschedulable',
        message: '0/1 nodes are available: 1 Insufficient cpu.',
        lastTransitionTime: new Date().toISOString().replace(/\.\d+Z/, 'Z'),
      };
      await world.patch(pod, { status: { phase: 'Pending', nominatedNodeName: 'n1', conditions: [refusal] } });
    },
    cluster: { not: 'it needs Pods of two priorities and a kubelet that is late' },
    laterMs: 5 * minute,
    verdict: 'stuck',
    cause: 'pod-unschedulable',
    says: /preempting Pods of lower priority on node n1 to make room for it; they have not ended for 5 min\.$/,
    advises:
      /^See which Pods on that node stay Terminating, .*: kubectl get pods -A --field-selector spec\.nodeName=n1$/,
  },
  {
    title: 'a bound claim of whose files the kubelet changes the owner',
    arrange: (world) =>
      startWith(world, {
        reason: 'VolumePermissionChangeInProgress',
        message: 'Setting volume ownership for /var/lib/kubelet/pods/1/volumes is taking longer than expected',
        component: 'kubelet',
      }),
    recorded: boundAndPending,
    verdict: 'bound',
    cause: 'bound',
    says: /does not start yet on node \S+: for \d+ s its kubelet has been changing the ownership of all files of the volume\./,
    advises: /fsGroupChangePolicy: OnRootMismatch/,
  },
  {
    title: 'a bound claim for whose Pod kube-controller-manager waits for an external-attacher in vain',
    arrange: (world) =>
      startWith(world, {
        reason: 'FailedAttachVolume',
        message: `AttachVolume.Attach failed for volume "${world.name('volume')}" : timed out waiting for external-attacher of csi.example.com CSI driver to attach volume handle`,
        component: 'attachdetach-controller',
      }),
    recorded: boundAndPending,
    verdict: 'bound',
    cause: 'bound',
    says: /its volume cannot be attached\. Last error, \d+ s ago: .*timed out waiting for external-attacher/,
    advises: /^Check that the Pod of the driver's controller runs, with its container csi-attacher\./,
  },
];

/** A claim of 1Gi requests 2Gi. @param status - as the external-resizer writes it. */
async function requestMore(world: World, status: object = {}): Promise<void> {
  await world.addClass({ allowVolumeExpansion: true });
  await world.addClaim();
  await world.bound();
  await world.patch({ kind: 'claim', name: 'c' }, { spec: { resources: { requests: { storage: '2Gi' } } } });
  if (Object.keys(status).length > 0) await world.patch({ kind: 'claim', name: 'c' }, { status });
}

const condition = (type: string, message = ''): object => ({
  conditions: [{ type, status: 'True', message, lastTransitionTime: new Date().toISOString().replace(/\.\d+Z/, 'Z') }],
});

const expands: RecordedEvent = {
  reason: 'ExternalExpanding',
  message: 'waiting for an external controller to expand this PVC',
  component: 'volume_expand',
};

/** A bound claim that is to become larger, and one whose namespace is being deleted. */
const changing: readonly Row[] = [
  {
    title: 'a bound claim that requests more, and no external-resizer works on that',
    arrange: (world) => requestMore(world),
    async recorded(world) {
      const annotations = { 'volume.kubernetes.io/storage-provisioner': world.driver };
      await world.patch({ kind: 'claim', name: 'c' }, { metadata: { annotations } });
      await world.addEvent({ kind: 'claim', name: 'c' }, expands);
    },
    laterMs: 3 * minute,
    verdict: 'bound',
    cause: 'bound',
    says: /requests 2Gi, and has 1Gi: no external-resizer of .* has begun to expand the volume in 3 min/,
    advises: /^Run the sidecar csi-resizer beside the controller of /,
  },
  {
    title: 'a bound claim that requests more than its existing volume has',
    arrange: (world) => requestMore(world),
    recorded: (world) => world.addEvent({ kind: 'claim', name: 'c' }, expands),
    cluster: { not: 'its volume would be one that somebody else has made' },
    laterMs: 3 * minute,
    verdict: 'bound',
    cause: 'bound',
    says: /requests 2Gi, and has 1Gi: no external-resizer of its driver has begun to expand the volume in 3 min/,
    advises: /^If its PersistentVolume has no spec\.csi, nothing expands it: create a larger volume and claim/,
  },
  {
    title: 'a bound claim that requests more, which the driver refuses',
    async arrange(world) {
      await requestMore(world);
      await world.addEvent(
        { kind: 'claim', name: 'c' },
        {
          reason: 'VolumeResizeFailed',
          message: 'resize volume "pvc-1" failed: rpc error: code = OutOfRange desc = pool is full',
          component: 'external-resizer csi.example.com',
        },
      );
    },
    recorded: () => Promise.resolve(),
    verdict: 'bound',
    cause: 'bound',
    says: /requests 2Gi, and has 1Gi: the volume could not be expanded, \d+ s ago: .* desc = pool is full\.$/,
    advises: /csi-resizer.*, or request less: /,
  },
  {
    title: 'a bound claim that requests more sooner than the storage allows, and is tried again now',
    async arrange(world) {
      await requestMore(world);
      const component = 'external-resizer csi.example.com';
      const message =
        'resize volume "pvc-1" failed: rpc error: code = Internal desc = VolumeModificationRateExceeded: Wait at least 6 hours';
      const about = { kind: 'claim', name: 'c' } as const;
      await world.addEvent(about, { reason: 'VolumeResizeFailed', message, component });
      const begins = 'External resizer is resizing volume pvc-1';
      await world.addEvent(about, { reason: 'Resizing', message: begins, component });
    },
    recorded: () => Promise.resolve(),
    verdict: 'bound',
    cause: 'bound',
    says: /the volume could not be expanded, \d+ s ago: .*Wait at least 6 hours\.$/,
    advises: /^Wait for as long as the error says: /,
  },
  {
    title: 'a bound claim that requests more of a storage that expands nothing in use',
    async arrange(world) {
      await requestMore(world);
      const message =
        'resize volume "pvc-1" failed: rpc error: code = Internal desc = Cannot resize disk d while it is attached to running VM';
      const event = { reason: 'VolumeResizeFailed', message, component: 'external-resizer csi.example.com' };
      await world.addEvent({ kind: 'claim', name: 'c' }, event);
    },
    recorded: () => Promise.resolve(),
    verdict: 'bound',
    cause: 'bound',
    says: /requests 2Gi, and has 1Gi: the volume could not be expanded, \d+ s ago: .* attached to running VM\.$/,
    advises:
      /^Unless the error says otherwise: this storage expands only what no machine uses\. End the Pods that use the claim/,
  },
  {
    title: 'a bound claim that requests more, and whose file system nobody expands',
    arrange: (world) =>
      requestMore(world, condition('FileSystemResizePending', 'Waiting for user to (re-)start a pod')),
    recorded: () => Promise.resolve(),
    laterMs: 3 * minute,
    verdict: 'bound',
    cause: 'bound',
    says: /the storage has been expanded, and for 3 min the file system has not: the kubelet expands it where a Pod uses the claim\.$/,
    advises: /^Start a Pod that uses the claim\. /,
  },
  {
    title: 'a bound claim that requests more, and whose storage does not respond to that',
    async arrange(world) {
      await requestMore(world, condition('Resizing'));
      await world.addEvent(
        { kind: 'claim', name: 'c' },
        {
          reason: 'Resizing',
          message: 'External resizer is resizing volume pvc-1',
          component: 'external-resizer csi.example.com',
        },
      );
    },
    recorded: () => Promise.resolve(),
    laterMs: 20 * minute,
    verdict: 'bound',
    cause: 'bound',
    says: /the driver's external-resizer has been expanding the volume for 20 min\.$/,
    advises: /container csi-resizer/,
  },
  {
    title: 'a bound claim whose namespace is being deleted, and its Pod is Terminating on a dead node',
    async arrange(world) {
      await world.addClass();
      await addClaimInUse(world, notReady);
      if (world.level === 'cluster') await world.bound();
      await terminate(world);
    },
    async recorded(world) {
      await bind(world);
      await world.patch(pod, { status: { phase: 'Running' } });
      await deleteNamespace(world);
    },
    cluster: deleteNamespace,
    laterMs: 10 * minute,
    verdict: 'stuck',
    cause: 'deleting',
    says: /^Namespace \S+ has been Terminating for 10 min, and the claim goes with it once its Pods are gone, because of Pod p: it is Terminating for \d+ min, and its node \S+ is not ready/,
    advises: /node\.kubernetes\.io\/out-of-service=nodeshutdown:NoExecute$/,
    cure: (world) => world.remove(pod), // as kube-controller-manager does then
    ends: 'gone',
  },
  {
    title: 'a bound claim whose namespace is being deleted, and whatever else is there stays',
    async arrange(world) {
      await world.addClass();
      await addBoundClaim(world);
      if (world.level === 'cluster') await world.bound();
      await world.addNode();
      await world.addPod({ nodeName: world.name('node') }, { name: 'other', claim: 'd' });
      await world.patch({ kind: 'pod', name: 'other' }, { metadata: { finalizers: ['example.com/last-rites'] } });
    },
    async recorded(world) {
      await bind(world);
      await deleteNamespace(world);
      const message = 'Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace';
      const conditions = [{ type: 'NamespaceDeletionContentFailure', status: 'True', message }];
      await world.patch({ kind: 'namespace', name: world.namespace }, { status: { conditions } });
    },
    cluster: deleteNamespace,
    laterMs: 10 * minute,
    verdict: 'stuck',
    cause: 'deleting',
    says: /and the claim goes with it once its Pods are gone\.( kube-controller-manager: .*remain.*)?$/,
    advises:
      /^See which Pods are left \(kubectl get pods -n \S+\), and which other objects \(status\.conditions\): kubectl get namespace \S+ -o yaml$/,
    async cure(world) {
      await world.patch({ kind: 'pod', name: 'other' }, { metadata: { finalizers: null } });
      await world.remove({ kind: 'pod', name: 'other' });
    },
    ends: 'gone',
  },
];

const annotations = (driver: string, node: string) => ({
  'volume.kubernetes.io/storage-provisioner': driver,
  'volume.kubernetes.io/selected-node': node,
});

/** A claim for a driver with zones, and its Pod on a node. @param on - whether the driver is registered there. */
async function choose(world: World, on: 'absent' | 'without keys'): Promise<void> {
  const driver = await world.startProvisioner({ driver: [`--topology=${zoneKey}=a`] });
  await world.addClass({ ...late, provisioner: driver });
  await world.addNode({ driver: on === 'absent' ? null : driver });
  await world.addClaim();
  await world.addPod({ nodeSelector: onNode(world) });
}

async function failForTopology(world: World): Promise<void> {
  const driver = `${world.name('driver')}.example.com`;
  const [claim, node] = [{ kind: 'claim', name: 'c' } as const, world.name('node')];
  await world.patch(claim, { metadata: { annotations: annotations(driver, node) } });
  await world.addEvent(claim, {
    reason: 'ProvisioningFailed',
    message: `failed to provision volume with StorageClass "${world.name()}": error generating accessibility requirements: no topology key found for node ${node}`,
    component: `${driver}_pod-1_x`,
  });
}

async function waitForFailure(world: World): Promise<void> {
  await world.eventually(async () => {
    const { annotations = {} } = (await world.read({ kind: 'claim', name: 'c' }))?.metadata ?? {};
    assert.ok('volume.kubernetes.io/selected-node' in annotations);
  });
}

/** A node was chosen, and the driver is not there as it should be. */
const chosen: readonly Row[] = [
  {
    title: 'a claim for which a node was chosen that does not have the driver',
    arrange: (world) => choose(world, 'absent'),
    recorded: failForTopology,
    cluster: waitForFailure,
    verdict: 'stuck',
    cause: 'no-topology',
    says: /^Driver \S+ is not registered on node \S+node, which was chosen for the claim: its CSINode lists no driver\. Provisioning failed /,
    advises:
      /run on that node \(see its nodeSelector and tolerations\), or give the Pod a nodeSelector .*: kubectl get csinodes$/,
  },
  {
    title: 'a claim for which a node was chosen on which the driver reports no topology',
    arrange: (world) => choose(world, 'without keys'),
    recorded: failForTopology,
    cluster: waitForFailure,
    verdict: 'stuck',
    cause: 'no-topology',
    says: /^Driver \S+ is registered on node \S+node without topology keys\. Provisioning failed /,
    advises: /^Have the driver's node plugin report a topology \(NodeGetInfo\)/,
  },
  {
    title: 'a claim of a provisioner whose leader renews its Lease, and does nothing',
    async arrange(world) {
      const provisioner = `${world.name()}.none.example.com`;
      const spec = { holderIdentity: 'old-7d9f', leaseDurationSeconds: 3600, renewTime: new Date().toISOString() };
      await world.add('driver', { metadata: { name: provisioner }, spec: { attachRequired: false } });
      await world.add('lease', {
        metadata: { name: provisioner.replaceAll('.', '-') },
        spec: { ...spec, renewTime: spec.renewTime.replace('Z', '000Z') },
      });
      await world.addClass({ provisioner });
      await world.addClaim();
    },
    recorded: (world) =>
      world.patch(
        { kind: 'claim', name: 'c' },
        {
          metadata: {
            annotations: { 'volume.kubernetes.io/storage-provisioner': `${world.name()}.none.example.com` },
          },
        },
      ),
    laterMs: 12 * minute,
    verdict: 'stuck',
    cause: 'in-progress',
    says: /which has not started on it in 12 min\. Its leader old-7d9f renews Lease \S+, but namespace \S+ has no Pod old-7d9f\.$/,
    advises: /^See the log of the provisioner, old-7d9f in namespace \S+: .*left over from an earlier installation/,
  },
];

async function deleteNamespace(world: World): Promise<void> {
  await world.remove({ kind: 'namespace', name: world.namespace });
}

/** A claim that is being deleted, and the Pods for which it is kept. */
const held: readonly Row[] = [
  {
    title: 'a claim that is being deleted and that a Pod uses',
    async arrange(world) {
      await addClaimInUse(world);
      await world.patch(pod, { status: { phase: 'Running' } });
      await deleteClaim(world);
    },
    recorded: () => Promise.resolve(),
    verdict: 'stuck',
    cause: 'deleting',
    says: /held by kubernetes\.io\/pvc-protection, because it is used by Pod p\.$/,
    advises: /^Delete the Pods that use it: kubectl delete pod -n \S+ p$/,
    cure: (world) => world.remove(pod),
    ends: 'gone',
  },
  {
    title: 'a claim that is being deleted and that the Pod of a Deployment uses',
    async arrange(world) {
      await addBoundClaim(world);
      await world.patch({ kind: 'claim', name: 'c' }, { metadata: { finalizers: ['kubernetes.io/pvc-protection'] } });
      await world.addNode();
      const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-6d47', uid: 'b5d7b0a8-0000-4000-8000-1' };
      await world.add('pod', {
        metadata: {
          name: 'p',
          labels: { 'pod-template-hash': '6d47' },
          ownerReferences: [{ ...owner, controller: true }],
        },
        spec: {
          nodeName: world.name('node'),
          containers: [{ name: 'main', image: 'none' }],
          volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'c' } }],
        },
      });
      await deleteClaim(world);
    },
    recorded: () => Promise.resolve(),
    cluster: { not: 'the garbage collector deletes a Pod whose owner does not exist' },
    verdict: 'stuck',
    cause: 'deleting',
    says: /because it is used by Pod p\.$/,
    advises:
      /^Scale down what creates them \(Deployment web\), or delete the Pods that use it: kubectl delete pod -n \S+ p$/,
  },
  {
    title: 'a claim that is being deleted and that a Pod holds that has ended',
    async arrange(world) {
      await addClaimInUse(world);
      await world.patch(pod, { status: { phase: 'Succeeded' } });
      await deleteClaim(world);
    },
    recorded: () => Promise.resolve(),
    verdict: 'stuck',
    cause: 'deleting',
    says: /because Pod p, which has ended \(Succeeded\), holds it until deleted\.$/,
    advises: /^Delete what has ended: kubectl delete pod -n \S+ p$/,
    cure: (world) => world.remove(pod),
    ends: 'gone',
  },
  {
    title: 'a claim that is being deleted, and its Pod is Terminating on a dead node',
    async arrange(world) {
      await addClaimInUse(world, notReady);
      await terminate(world);
      await deleteClaim(world);
    },
    recorded: () => Promise.resolve(),
    laterMs: 10 * minute,
    verdict: 'stuck',
    cause: 'deleting',
    says: /because of Pod p: it is Terminating for \d+ min, and its node \S+ is not ready \(Ready is Unknown since 2026-01-01T00:00:00Z\)/,
    advises: /: kubectl taint nodes \S+ node\.kubernetes\.io\/out-of-service=nodeshutdown:NoExecute$/,
    cure: (world) => world.remove(pod), // as kube-controller-manager does then
    ends: 'gone',
  },
  {
    title: 'a claim that is being deleted, and its Pod ends within its time',
    async arrange(world) {
      await addClaimInUse(world);
      await terminate(world);
      await deleteClaim(world);
    },
    recorded: () => Promise.resolve(),
    verdict: 'waiting',
    cause: 'deleting',
    says: /because of Pod p: it is Terminating, until \S+Z\.$/,
    advises: /^Nothing/,
    cure: (world) => world.remove(pod),
    ends: 'gone',
  },
  {
    title: 'a claim that is being deleted, and the kubelet cannot end its Pod',
    async arrange(world) {
      await addClaimInUse(world);
      await terminate(world);
      const message =
        'error killing pod: failed to "KillContainer" for "main" with KillContainerError: "context deadline exceeded"';
      await world.addEvent(pod, { reason: 'FailedKillPod', message, component: 'kubelet', count: 4 });
      await deleteClaim(world);
    },
    recorded: () => Promise.resolve(),
    laterMs: 10 * minute,
    verdict: 'stuck',
    cause: 'deleting',
    says: /because of Pod p: it is Terminating, and late by \d+ min: the kubelet of node \S+ cannot end it\. Last event, \d+ \w+ ago: error killing pod: .*deadline exceeded"\.$/,
    advises: /^Do what the event says: usually the container runtime of node \S+,/,
    cure: (world) => world.remove(pod),
    ends: 'gone',
  },
  {
    title: 'a claim that is being deleted, and the kubelet of its Pod is late',
    async arrange(world) {
      await addClaimInUse(world);
      await terminate(world);
      await deleteClaim(world);
    },
    recorded: () => Promise.resolve(),
    laterMs: 10 * minute,
    verdict: 'stuck',
    cause: 'deleting',
    says: /because of Pod p: it is Terminating, and late by \d+ min: the kubelet of node \S+ has not reported its end\.$/,
    advises: /kubelet's log on node \S+/,
  },
  {
    title: 'a claim that is being deleted, and its Pod has a finalizer',
    async arrange(world) {
      await addClaimInUse(world);
      await world.patch(pod, { metadata: { finalizers: ['example.com/last-rites'] } });
      await world.remove(pod);
      await deleteClaim(world);
    },
    recorded: () => Promise.resolve(),
    verdict: 'stuck',
    cause: 'deleting',
    says: /because of Pod p: it has ended, and is held by example\.com\/last-rites\.$/,
    advises:
      /^Check that a controller of example\.com runs, .* remove its finalizer: kubectl patch pod p --namespace \S+ --type=json /,
    cure: (world) => world.patch(pod, { metadata: { finalizers: null } }),
    ends: 'gone',
  },
  {
    title: 'a claim that is being deleted, and its Pod is Terminating on a node that is gone',
    async arrange(world) {
      await addClaimInUse(world);
      await world.remove({ kind: 'node', name: world.name('node') });
      await terminate(world);
      await deleteClaim(world);
    },
    recorded: () => Promise.resolve(),
    verdict: 'waiting',
    cause: 'deleting',
    says: /because of Pod p: it is Terminating, and its node \S+ does not exist\.$/,
    advises: /within two minutes/,
    cure: (world) => world.remove(pod), // as kube-controller-manager does
    ends: 'gone',
  },
];

export const pods: readonly Row[] = [
  ...consumers,
  ...chains,
  ...afterCures,
  ...capacity,
  ...bound,
  ...starting,
  ...changing,
  ...chosen,
  ...held,
];
