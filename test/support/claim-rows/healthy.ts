/** Nothing is wrong: no cause for which somebody has to act may be named, at any moment. */
import type { Row, World } from './row.ts';

const late = { volumeBindingMode: 'WaitForFirstConsumer' };
const selectedNode = 'volume.kubernetes.io/selected-node';
const claim = { kind: 'claim', name: 'c' } as const;
const pod = { kind: 'pod', name: 'p' } as const;
const waitsForBinding = ['not-handed-over', 'in-progress', 'volume-made', 'bound'] as const;
const running = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };

const onNode = (world: World) => ({ nodeSelector: { 'kubernetes.io/hostname': world.name('node') } });
const nothing = (): Promise<void> => Promise.resolve();
const recordedOnly = { not: 'it is a moment of the way of a claim that another row goes' } as const;

/** A class and a claim with immediate binding. */
async function newClaim(world: World, spec: object = {}): Promise<void> {
  await world.addClass();
  await world.addClaim(spec);
}

/** The provisioner works on the claim. */
async function begun(world: World, msAgo = 0): Promise<void> {
  await world.handedOver();
  const message = 'External provisioner is provisioning volume for claim';
  await world.addEvent(claim, { reason: 'Provisioning', message, msAgo });
}

async function failed(world: World, error: string, msAgo: number): Promise<void> {
  const message = `failed to provision volume with StorageClass "${world.name()}": ${error}`;
  await world.addEvent(claim, { reason: 'ProvisioningFailed', message, msAgo });
}

/** A bound claim, and a node. */
async function boundClaim(world: World): Promise<void> {
  await world.addNode();
  await newClaim(world);
  await world.bound();
}

/** A bound claim with a Pod that has a node. */
async function usedClaim(world: World, status?: object): Promise<void> {
  await boundClaim(world);
  await world.addPod(onNode(world));
  await world.placed();
  if (status !== undefined) await world.patch(pod, { status });
}

/** A claim of a class that waits for a Pod, and a Pod. */
async function lateClaim(world: World): Promise<void> {
  await world.addClass(late);
  await world.addNode();
  await world.addClaim();
  await world.addPod(onNode(world));
}

/** The claim goes, and its volume is released. */
async function released(world: World, msAgo = 0): Promise<void> {
  const lastPhaseTransitionTime = new Date(Date.now() - msAgo).toISOString();
  await world.remove(claim);
  await world.patch({ kind: 'volume', name: world.volume }, { status: { phase: 'Released', lastPhaseTransitionTime } });
}

async function attach(world: World): Promise<void> {
  await world.add('attachment', {
    metadata: { name: world.name('attachment') },
    spec: { attacher: world.driver, nodeName: world.name('node'), source: { persistentVolumeName: world.volume } },
  });
}

const ofVolume = (world: World): string => `pv/${world.volume}`;

export const healthy: readonly Row[] = [
  // claims that are bound in a moment
  {
    title: 'a new claim with immediate binding',
    arrange: (world) => newClaim(world),
    recorded: nothing,
    healthy: waitsForBinding,
    ends: 'bound',
  },
  {
    title: 'a claim that was handed over a moment ago',
    arrange: (world) => newClaim(world),
    recorded: (world) => world.handedOver(),
    laterMs: 20_000,
    cluster: recordedOnly,
    healthy: ['in-progress'],
  },
  {
    title: 'a claim on which the driver works for five minutes',
    arrange: (world) => newClaim(world),
    recorded: (world) => begun(world, 300_000),
    cluster: recordedOnly,
    healthy: ['in-progress'],
  },
  {
    title: 'a claim whose volume takes its driver some seconds',
    async arrange(world) {
      await world.fault({ delayMs: 3000 });
      await newClaim(world);
    },
    recorded: (world) => begun(world),
    healthy: waitsForBinding,
    ends: 'bound',
  },
  {
    title: 'a claim whose volume is saved and not bound yet',
    arrange: (world) => newClaim(world),
    async recorded(world) {
      await begun(world);
      const { uid } = (await world.read(claim))?.metadata ?? {};
      const claimRef = { kind: 'PersistentVolumeClaim', namespace: world.namespace, name: 'c', uid };
      await world.addVolume({ claimRef }, { name: `pvc-${uid ?? ''}`, status: { phase: 'Available' } });
    },
    cluster: recordedOnly,
    healthy: ['volume-made'],
  },
  {
    title: 'a claim whose volume was created and cannot be seen yet',
    arrange: (world) => newClaim(world),
    async recorded(world) {
      await begun(world, 2000);
      await world.addEvent(claim, {
        reason: 'ProvisioningSucceeded',
        message: 'Successfully provisioned volume pvc-1',
      });
    },
    cluster: recordedOnly,
    healthy: ['volume-made'],
  },
  {
    title: 'a claim whose first call took too long, while the next one runs',
    arrange: (world) => newClaim(world),
    async recorded(world) {
      await begun(world, 1000);
      await failed(world, 'rpc error: code = DeadlineExceeded desc = context deadline exceeded', 11_000);
    },
    cluster: recordedOnly,
    healthy: ['driver-error', 'in-progress'],
  },
  {
    title: 'a claim whose driver has an operation pending',
    arrange: (world) => newClaim(world),
    async recorded(world) {
      await begun(world, 9000);
      await failed(world, 'rpc error: code = Aborted desc = an operation with the given volume exists', 5000);
    },
    cluster: recordedOnly,
    healthy: ['driver-error'],
  },
  {
    title: 'a claim whose driver is late with its first volume, and then creates it',
    async arrange(world) {
      await world.fault({ code: 'ABORTED', message: 'an operation is pending', times: 3 });
      await newClaim(world);
    },
    async recorded(world) {
      await begun(world, 9000);
      await failed(world, 'rpc error: code = Aborted desc = an operation is pending', 5000);
    },
    healthy: [...waitsForBinding, 'driver-error'],
    ends: 'bound',
  },
  {
    title: 'a claim whose volume could not be saved a moment ago as a webhook did not respond',
    arrange: (world) => newClaim(world),
    async recorded(world) {
      await begun(world, 30_000);
      const message =
        'Error creating provisioned PV object for claim ns1/c: Internal error occurred: failed calling webhook "w.example.com": context deadline exceeded. Deleting the volume.';
      await world.addEvent(claim, { reason: 'ProvisioningFailed', message, msAgo: 20_000 });
    },
    cluster: recordedOnly,
    healthy: ['api-server'],
  },
  {
    title: 'a claim of kube-controller-manager, which waits for the external provisioner',
    arrange: (world) => newClaim(world),
    async recorded(world) {
      await world.handedOver();
      await world.addEvent(claim, {
        reason: 'ExternalProvisioning',
        message: `Waiting for a volume to be created either by the external provisioner '${world.driver}' or manually by the system administrator.`,
        component: 'persistentvolume-controller',
      });
    },
    cluster: recordedOnly,
    healthy: ['in-progress'],
  },
  {
    title: 'a claim whose provisioner has just handed over its Lease',
    arrange: (world) => newClaim(world),
    async recorded(world) {
      await world.handedOver();
      const lease = { kind: 'lease', namespace: 'driver', name: world.driver.replaceAll('.', '-') } as const;
      await world.patch(lease, { spec: { holderIdentity: '', leaseDurationSeconds: 1 } });
    },
    cluster: recordedOnly,
    healthy: ['no-leader'],
  },
  {
    title: 'a claim with a Secret that exists',
    async arrange(world) {
      const prefix = 'csi.storage.k8s.io/provisioner-secret';
      await world.add('secret', { metadata: { name: 's' } });
      await world.addClass({ parameters: { [`${prefix}-name`]: 's', [`${prefix}-namespace`]: world.namespace } });
      await world.addClaim();
    },
    recorded: (world) => begun(world),
    healthy: waitsForBinding,
    ends: 'bound',
  },
  {
    title: 'a large claim',
    arrange: (world) => newClaim(world, { resources: { requests: { storage: '100Gi' } } }),
    recorded: (world) => begun(world),
    healthy: waitsForBinding,
    ends: 'bound',
  },
  {
    title: 'a claim for a block device',
    arrange: (world) => newClaim(world, { volumeMode: 'Block' }),
    recorded: (world) => begun(world),
    healthy: waitsForBinding,
    ends: 'bound',
  },
  {
    title: 'a claim that several nodes may write to',
    arrange: (world) => newClaim(world, { accessModes: ['ReadWriteMany'] }),
    recorded: (world) => begun(world),
    healthy: waitsForBinding,
    ends: 'bound',
  },

  // existing volumes
  {
    title: 'a claim of a class without a provisioner, and a volume that fits',
    async arrange(world) {
      await world.addClass({ provisioner: 'kubernetes.io/no-provisioner' });
      await world.addVolume();
      await world.addClaim();
    },
    recorded: (world) =>
      world.patch({ kind: 'volume', name: world.name('volume') }, { status: { phase: 'Available' } }),
    healthy: ['volume-made', 'bound'],
    ends: 'bound',
  },
  {
    title: 'a volume that nobody has claimed and that is being deleted',
    arrange: (world) => world.addVolume(),
    async recorded(world) {
      await world.patch({ kind: 'volume', name: world.name('volume') }, { status: { phase: 'Available' } });
      await world.remove({ kind: 'volume', name: world.name('volume') });
    },
    cluster: (world) => world.remove({ kind: 'volume', name: world.name('volume') }),
    object: (world) => `pv/${world.name('volume')}`,
    healthy: ['retained', 'deleting', 'not-found'],
    ends: 'gone',
  },
  {
    title: 'a claim that names an existing volume which names the claim',
    async arrange(world) {
      const claimRef = { namespace: world.namespace, name: 'c' };
      await world.addVolume({ claimRef, storageClassName: '' });
      await world.addClaim({ storageClassName: '', volumeName: world.name('volume') });
    },
    recorded: (world) =>
      world.patch({ kind: 'volume', name: world.name('volume') }, { status: { phase: 'Available' } }),
    healthy: ['volume-made', 'bound'],
    ends: 'bound',
  },
  {
    title: 'a claim that names an existing volume that fits',
    async arrange(world) {
      await world.addVolume({ storageClassName: '' });
      await world.addClaim({ storageClassName: '', volumeName: world.name('volume') });
    },
    recorded: (world) =>
      world.patch({ kind: 'volume', name: world.name('volume') }, { status: { phase: 'Available' } }),
    healthy: ['volume-made', 'bound'],
    ends: 'bound',
  },

  // Pods
  {
    title: 'a claim of a class that waits for a Pod, until there is one',
    async arrange(world) {
      await world.addClass(late);
      await world.addNode();
      await world.addClaim();
    },
    recorded: nothing,
    healthy: ['waits-for-consumer', ...waitsForBinding],
    cure: (world) => world.addPod(onNode(world)),
    ends: 'bound',
  },
  {
    title: 'a claim whose Pod the scheduler has not seen yet',
    arrange: lateClaim,
    recorded: (world) => world.patch(pod, { status: { phase: 'Pending' } }),
    healthy: ['waits-for-consumer', ...waitsForBinding],
    ends: 'bound',
  },
  {
    title: 'a claim whose Pod waits for others to be evicted',
    arrange: lateClaim,
    recorded: (world) =>
      world.patch(pod, {
        status: {
          phase: 'Pending',
          nominatedNodeName: world.name('node'),
          conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes' }],
        },
      }),
    cluster: recordedOnly,
    healthy: ['waits-for-consumer'],
  },
  {
    title: 'a bound claim whose Pod has its node, and gets it in a moment',
    async arrange(world) {
      await lateClaim(world);
      const chosen = { 'volume.kubernetes.io/selected-node': world.name('node') };
      await world.patch({ kind: 'claim', name: 'c' }, { metadata: { annotations: chosen } });
    },
    async recorded(world) {
      const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes' }];
      await world.patch(pod, { status: { phase: 'Pending', nominatedNodeName: world.name('node'), conditions } });
    },
    cluster: recordedOnly,
    healthy: ['waits-for-consumer', ...waitsForBinding],
  },
  {
    title: 'a claim with one Pod that fits no node and one that the scheduler has not seen yet',
    async arrange(world) {
      await lateClaim(world);
      await world.addPod({ nodeSelector: { 'kubernetes.io/hostname': world.name('nowhere') } }, { name: 'misfit' });
    },
    async recorded(world) {
      const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes' }];
      await world.patch({ kind: 'pod', name: 'misfit' }, { status: { phase: 'Pending', conditions } });
      await world.patch(pod, { status: { phase: 'Pending' } });
    },
    cluster: { not: 'once it is bound, the Pod that fits no node is a hint' },
    healthy: ['waits-for-consumer'],
  },
  {
    title: 'a claim for which a node was chosen a moment ago',
    arrange: lateClaim,
    async recorded(world) {
      await world.handedOver();
      await world.patch(claim, { metadata: { annotations: { [selectedNode]: world.name('node') } } });
    },
    cluster: recordedOnly,
    healthy: ['in-progress'],
  },
  {
    title: 'a claim on a node whose driver works, in its second minute',
    arrange: lateClaim,
    async recorded(world) {
      await begun(world, 90_000);
      await world.patch(claim, { metadata: { annotations: { [selectedNode]: world.name('node') } } });
    },
    cluster: recordedOnly,
    healthy: ['in-progress'],
  },

  // sources
  {
    title: 'a clone of a bound claim',
    async arrange(world) {
      await world.addClass();
      await world.addClaim({}, { name: 'source' });
      await world.bound('source');
      await world.addClaim({ dataSource: { kind: 'PersistentVolumeClaim', name: 'source' } });
    },
    recorded: (world) => begun(world),
    healthy: waitsForBinding,
    ends: 'bound',
  },
  {
    title: 'a clone of a claim that is being provisioned',
    async arrange(world) {
      await world.addClass();
      const dataSource = { kind: 'PersistentVolumeClaim', name: 'source' };
      await world.addClaim({}, { name: 'source' });
      await world.addClaim({ dataSource });
    },
    async recorded(world) {
      await world.handedOver();
      await world.handedOver('source');
      await world.patch({ kind: 'claim', name: 'source' }, { status: { phase: 'Pending' } });
    },
    cluster: recordedOnly,
    healthy: ['source-not-ready', ...waitsForBinding],
  },
  {
    title: 'a restore of a snapshot that is ready',
    async arrange(world) {
      await world.add('snapshot', { metadata: { name: 's' }, spec: { source: { persistentVolumeClaimName: 'x' } } });
      await newClaim(world, { dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 's' } });
    },
    async recorded(world) {
      await world.patch({ kind: 'snapshot', name: 's' }, { status: { readyToUse: true, restoreSize: '1Gi' } });
      await begun(world);
    },
    cluster: recordedOnly,
    healthy: ['in-progress'],
  },
  {
    title: 'a restore of a snapshot that is being taken',
    async arrange(world) {
      await world.add('snapshot', { metadata: { name: 's' }, spec: { source: { persistentVolumeClaimName: 'x' } } });
      await newClaim(world, { dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 's' } });
    },
    async recorded(world) {
      await world.patch({ kind: 'snapshot', name: 's' }, { status: { readyToUse: false } });
      await world.handedOver();
    },
    cluster: recordedOnly,
    healthy: ['source-not-ready'],
  },
  {
    title: 'a claim that a populator has begun to fill',
    arrange: (world) =>
      newClaim(world, { dataSourceRef: { apiGroup: 'e2e.example.com', kind: 'Greeting', name: 'hello' } }),
    recorded: (world) => world.handedOver(),
    cluster: recordedOnly,
    healthy: ['source-not-ready'],
  },

  // bound claims
  { title: 'a bound claim that nobody uses yet', arrange: boundClaim, recorded: nothing, healthy: ['bound'] },
  {
    title: 'a bound claim whose Pod runs',
    arrange: (world) => usedClaim(world, running),
    recorded: nothing,
    healthy: ['bound'],
  },
  {
    title: 'a bound claim whose Pod starts',
    arrange: (world) => usedClaim(world, { phase: 'Pending' }),
    recorded: nothing,
    laterMs: 20_000,
    healthy: ['bound'],
  },
  {
    title: 'a bound claim whose Pod the scheduler has not seen yet',
    async arrange(world) {
      await boundClaim(world);
      await world.addPod(onNode(world));
    },
    recorded: (world) => world.patch(pod, { status: { phase: 'Pending' } }),
    healthy: ['bound'],
  },
  {
    title: 'a bound claim whose Pod has completed',
    arrange: (world) => usedClaim(world, { phase: 'Succeeded' }),
    recorded: nothing,
    healthy: ['bound'],
  },
  {
    title: 'a bound claim that two Pods of one node use',
    async arrange(world) {
      await usedClaim(world, running);
      await world.addPod(onNode(world), { name: 'q' });
      await world.placed('q');
      await world.patch({ kind: 'pod', name: 'q' }, { status: running });
    },
    recorded: nothing,
    healthy: ['bound'],
  },
  {
    title: 'a bound claim whose volume is being expanded',
    async arrange(world) {
      await usedClaim(world, running);
      const conditions = [{ type: 'Resizing', status: 'True' }];
      await world.patch(claim, { status: { conditions } });
    },
    recorded: nothing,
    healthy: ['bound'],
  },

  {
    title: 'a claim for a local volume, until there is a Pod',
    async arrange(world) {
      await world.addClass({ provisioner: 'kubernetes.io/no-provisioner', ...late });
      await world.addNode();
      const expression = { key: 'kubernetes.io/hostname', operator: 'In', values: [world.name('node')] };
      await world.addVolume({
        csi: null,
        local: { path: '/mnt/disk' },
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [expression] }] } },
      });
      await world.addClaim();
    },
    recorded: (world) =>
      world.patch({ kind: 'volume', name: world.name('volume') }, { status: { phase: 'Available' } }),
    healthy: ['waits-for-consumer', 'volume-made', 'bound'],
    cure: (world) => world.addPod(onNode(world)),
    ends: 'bound',
  },
  {
    title: 'a claim for a local volume, which the scheduler has just bound',
    async arrange(world) {
      await world.addClass({ provisioner: 'kubernetes.io/no-provisioner', ...late });
      await world.addNode();
      await world.addVolume();
      await world.addClaim();
      await world.addPod(onNode(world));
    },
    async recorded(world) {
      const claimRef = { namespace: world.namespace, name: 'c', uid: (await world.read(claim))?.metadata.uid };
      await world.patch(
        { kind: 'volume', name: world.name('volume') },
        { spec: { claimRef }, status: { phase: 'Bound' } },
      );
      await world.placed();
    },
    cluster: recordedOnly,
    healthy: ['volume-made'],
  },
  {
    title: 'a bound claim whose Pod is ending while another one waits for it',
    async arrange(world) {
      await usedClaim(world, running);
      await world.remove({ ...pod, graceful: true });
      await world.addPod(onNode(world), { name: 'q' });
    },
    recorded: (world) => world.patch({ kind: 'pod', name: 'q' }, { status: { phase: 'Pending' } }),
    healthy: ['bound'],
  },
  {
    title: 'a claim without a class for which there is an existing volume that fits',
    async arrange(world) {
      const labels = { row: world.namespace };
      await world.addVolume({ storageClassName: '' }, { labels });
      await world.addClaim({ storageClassName: '', selector: { matchLabels: labels } });
    },
    recorded: (world) =>
      world.patch({ kind: 'volume', name: world.name('volume') }, { status: { phase: 'Available' } }),
    healthy: ['static-class', 'volume-made', 'bound'],
    ends: 'bound',
  },
  {
    title: 'a claim of a class without provisioner for which there is an existing volume that fits',
    async arrange(world) {
      await world.addClass({ provisioner: 'kubernetes.io/no-provisioner' });
      await world.addVolume();
      await world.addClaim();
    },
    recorded: (world) =>
      world.patch({ kind: 'volume', name: world.name('volume') }, { status: { phase: 'Available' } }),
    healthy: ['static-class', 'volume-made', 'bound'],
    ends: 'bound',
  },
  {
    title: 'a deleted claim whose Pod is ending within its grace period',
    arrange: (world) => usedClaim(world, running),
    async recorded(world) {
      await world.patch(claim, { metadata: { finalizers: ['kubernetes.io/pvc-protection'] } });
      await world.remove(claim);
      await world.remove({ ...pod, graceful: true });
    },
    async cluster(world) {
      await world.remove({ ...pod, graceful: true });
      await world.remove(claim);
    },
    cure: (world) => world.remove(pod),
    healthy: ['bound', 'deleting', 'not-found'],
    ends: 'gone',
  },
  // deletions that are under way
  {
    title: 'a deleted claim whose finalizer goes in a moment',
    arrange: boundClaim,
    async recorded(world) {
      await world.patch(claim, { metadata: { finalizers: ['kubernetes.io/pvc-protection'] } });
      await world.remove(claim);
    },
    cure: (world) => world.remove(claim),
    healthy: ['bound', 'deleting', 'not-found'],
    ends: 'gone',
  },
  {
    title: 'a volume whose claim was deleted a moment ago',
    arrange: boundClaim,
    recorded: released,
    object: ofVolume,
    cure: (world) => world.remove(claim),
    healthy: ['in-use', 'deleting', 'not-found'],
    ends: 'gone',
  },
  {
    title: 'a volume that its driver is deleting for half a minute',
    arrange: boundClaim,
    recorded: (world) => released(world, 30_000),
    object: ofVolume,
    cluster: recordedOnly,
    healthy: ['deleting'],
  },
  {
    title: 'a released volume that is being detached',
    arrange: boundClaim,
    async recorded(world) {
      await released(world);
      await attach(world);
    },
    object: ofVolume,
    async cure(world) {
      await attach(world);
      await world.remove(claim);
      await world.remove({ kind: 'attachment', name: world.name('attachment') });
    },
    healthy: ['in-use', 'attached', 'deleting', 'not-found'],
    ends: 'gone',
  },
  {
    title: 'a volume whose deletion was postponed, as it was attached, and is not any more',
    arrange: boundClaim,
    async recorded(world) {
      await released(world);
      const message = `persistentvolume ${world.volume} is still attached to node n1, waiting for detach`;
      await world.addEvent({ kind: 'volume', name: world.volume }, { reason: 'VolumeDelete', message });
    },
    object: ofVolume,
    cluster: recordedOnly,
    healthy: ['deleting'],
  },
  {
    title: 'the source of a clone that is deleted while the clone is being made',
    arrange: boundClaim,
    async recorded(world) {
      const finalizers = ['kubernetes.io/pvc-protection', 'provisioner.storage.kubernetes.io/cloning-protection'];
      await world.patch(claim, { metadata: { finalizers } });
      await world.remove(claim);
    },
    cluster: recordedOnly,
    healthy: ['deleting'],
  },
  { title: 'a volume in use', arrange: boundClaim, recorded: nothing, object: ofVolume, healthy: ['in-use'] },
  {
    title: 'a volume that is kept for its data',
    async arrange(world) {
      await world.addClass({ reclaimPolicy: 'Retain' });
      await world.addClaim();
      await world.bound();
    },
    recorded: released,
    object: ofVolume,
    cluster: (world) => world.remove(claim),
    healthy: ['in-use', 'retained'],
  },
  {
    title: 'a volume that nobody has claimed yet',
    arrange: (world) => world.addVolume(),
    recorded: (world) =>
      world.patch({ kind: 'volume', name: world.name('volume') }, { status: { phase: 'Available' } }),
    object: (world) => `pv/${world.name('volume')}`,
    healthy: ['retained'],
  },
];
