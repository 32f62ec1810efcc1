/** VolumeSnapshots as sources: what the snapshot-controller, the csi-snapshotter and the provisioner refuse. */
import type { KubeObject, Row, World } from './row.ts';

const group = 'snapshot.storage.k8s.io';
const fromSnapshot = (name = 's'): object => ({ dataSource: { apiGroup: group, kind: 'VolumeSnapshot', name } });

interface SnapshotState {
  name?: string;
  className?: string;
  /** Default: claim `src`. */
  source?: object;
  status?: Record<string, unknown>;
  finalizers?: string[];
}

/** A VolumeSnapshot as its user and, with a status, the snapshot-controller write it. */
async function addSnapshot(world: World, state: SnapshotState = {}): Promise<KubeObject> {
  const { name = 's', className, source = { persistentVolumeClaimName: 'src' }, status, finalizers } = state;
  return await world.add('snapshot', {
    metadata: { name, ...(finalizers !== undefined && { finalizers }) },
    spec: { source, ...(className !== undefined && { volumeSnapshotClassName: className }) },
    ...(status !== undefined && { status }),
  });
}

interface ContentState {
  driver?: string;
  mode?: string;
  source?: object;
  ref?: object;
  status?: Record<string, unknown>;
}

/** Its content, as the snapshot-controller writes it. @returns its name. */
async function addContent(world: World, snapshot: KubeObject, state: ContentState = {}): Promise<string> {
  const { driver = world.driver, mode = 'Filesystem', source = { volumeHandle: 'handle' }, ref = {}, status } = state;
  const name = world.name('content');
  const { uid } = snapshot.metadata;
  await world.add('snapshotContent', {
    metadata: { name },
    spec: {
      driver,
      deletionPolicy: 'Retain',
      source,
      sourceVolumeMode: mode,
      volumeSnapshotRef: {
        kind: 'VolumeSnapshot',
        namespace: world.namespace,
        name: snapshot.metadata.name,
        uid,
        ...ref,
      },
    },
    ...(status !== undefined && { status }),
  });
  return name;
}

const readyContent = { readyToUse: true, snapshotHandle: 'snap-1', restoreSize: 2 ** 30 };

/** Ready, with its content. */
async function addReady(world: World, state: ContentState = {}, restoreSize = '1Gi'): Promise<void> {
  const snapshot = await addSnapshot(world);
  const boundVolumeSnapshotContentName = await addContent(world, snapshot, { status: readyContent, ...state });
  const status = { boundVolumeSnapshotContentName, readyToUse: true, restoreSize };
  await world.patch({ kind: 'snapshot', name: 's' }, { status });
}

/** Failed, as the snapshot-controller reports it. */
async function addFailed(world: World, message: string, state: SnapshotState = {}): Promise<KubeObject> {
  const error = { message, time: new Date().toISOString().replace(/\.\d+Z/, 'Z') };
  return await addSnapshot(world, { ...state, status: { readyToUse: false, error } });
}

async function restore(world: World, spec: object = {}): Promise<void> {
  await world.addClass();
  await world.addClaim({ ...fromSnapshot(), ...spec });
}

const handedOver = (world: World): Promise<void> => world.handedOver();

/** The claim is deleted, and created again without a source, which stands for another one. */
async function recreate(world: World, spec: object = {}): Promise<void> {
  const claim = { kind: 'claim', name: 'c' } as const;
  await world.remove(claim);
  await world.eventually(async () => {
    if ((await world.read(claim)) !== undefined) throw new Error('the claim is still there');
  });
  await world.addClaim(spec);
}

const recreated = { cure: (world: World): Promise<void> => recreate(world), ends: 'bound' } as const;

const claimName = 'volumesnapshotclass.snapshot.storage.k8s.io "gone" not found';

/** Claim `c`, which the snapshot-controller keeps, is deleted. */
async function deleteSource(world: World): Promise<void> {
  await world.addClass();
  await world.addClaim({}, { finalizers: ['snapshot.storage.kubernetes.io/pvc-as-source-protection'] });
  await world.remove({ kind: 'claim', name: 'c' });
}

/** A released volume of the driver, which does not delete it: it says that snapshots need it. */
async function addNeeded(world: World): Promise<void> {
  const [name, message] = [world.name('volume'), 'volume has dependent snapshots'];
  await world.fault({ method: 'DeleteVolume', volumeId: name, code: 'INTERNAL', message });
  const claimRef = { namespace: world.namespace, name: 'gone', uid: 'b5d7b0a8-0000-4000-8000-000000000000' };
  await world.addVolume({ persistentVolumeReclaimPolicy: 'Delete', claimRef });
}

export const snapshots: readonly Row[] = [
  {
    title: 'a claim that is being deleted, and a snapshot of it cannot be taken',
    async arrange(world) {
      const source = { persistentVolumeClaimName: 'c' };
      await addFailed(world, `Failed to get snapshot class with error ${claimName}`, { className: 'gone', source });
      await deleteSource(world);
    },
    recorded: () => Promise.resolve(),
    laterMs: 60_000,
    verdict: 'stuck',
    cause: 'deleting',
    says: /because of a snapshot of it: VolumeSnapshot s cannot be taken: its VolumeSnapshotClass gone does not exist\.$/,
    advises:
      /^Fix that, so that the snapshot can be taken; or, if nobody needs it, delete it: kubectl delete volumesnapshot -n \S+ s$/,
    cure: (world) => world.patch({ kind: 'claim', name: 'c' }, { metadata: { finalizers: null } }),
    ends: 'gone',
  },
  {
    title: 'a claim that is being deleted, and a snapshot of it is being taken',
    async arrange(world) {
      const status = { readyToUse: false, boundVolumeSnapshotContentName: world.name('content') };
      const snapshot = await addSnapshot(world, { source: { persistentVolumeClaimName: 'c' }, status });
      await addContent(world, snapshot, { status: { readyToUse: false } });
      await deleteSource(world);
    },
    recorded: () => Promise.resolve(),
    laterMs: 60_000,
    verdict: 'waiting',
    cause: 'deleting',
    says: /because of a snapshot of it: VolumeSnapshot s is being taken by driver \S+, for /,
    advises: /^Nothing: the claim goes once the snapshot is taken$/,
    cure: (world) => world.patch({ kind: 'claim', name: 'c' }, { metadata: { finalizers: null } }),
    ends: 'gone',
  },
  {
    title: 'a released volume of which there are snapshots, so that its driver does not delete it',
    object: (world) => `pv/${world.name('volume')}`,
    async arrange(world) {
      const snapshot = await addSnapshot(world, { name: 'nightly' });
      const source = { volumeHandle: world.name('volume') };
      await addContent(world, snapshot, { source, status: readyContent });
      await addNeeded(world);
    },
    async recorded(world) {
      await world.patch({ kind: 'volume', name: world.name('volume') }, { status: { phase: 'Released' } });
      await world.addEvent(
        { kind: 'volume', name: world.name('volume') },
        {
          reason: 'VolumeFailedDelete',
          message: 'rpc error: code = Internal desc = volume has dependent snapshots',
        },
      );
    },
    verdict: 'stuck',
    cause: 'delete-error',
    says: /^The driver keeps the volume, of which there is a snapshot: \S+\/nightly \(VolumeSnapshotContent \S+\)\. .*desc = volume has dependent snapshots$/,
    advises:
      /^As long as somebody needs it, nothing: .*\(deletionPolicy Retain keeps .*\): kubectl delete volumesnapshot -n \S+ nightly$/,
    cure: (world) => world.fault(),
    ends: 'gone',
  },
  {
    title: 'a snapshot that does not exist, and one of almost its name',
    async arrange(world) {
      await addSnapshot(world, { name: 'nightly-1' });
      await world.addClass();
      await world.addClaim(fromSnapshot('nighly-1'));
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-missing',
    says: /VolumeSnapshot \S+\/nighly-1, the data source of the claim, does not exist; nightly-1 does\.$/,
    advises: /^If nightly-1 is meant, recreate the claim with it/,
    ...recreated,
  },
  {
    title: 'a snapshot that is in another namespace',
    async arrange(world) {
      const other = `${world.namespace}-other`;
      await world.add('namespace', { metadata: { name: other } });
      const spec = { source: { persistentVolumeClaimName: 'src' } };
      await world.add('snapshot', { metadata: { name: world.name('nightly'), namespace: other }, spec });
      await world.addClass();
      await world.addClaim(fromSnapshot(world.name('nightly')));
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-missing',
    says: /VolumeSnapshot \S+nightly, the data source of the claim, does not exist; there is one of that name in namespace \S+-other\.$/,
    advises: /^If that one is meant, create the new claim there, as a snapshot is restored in its own namespace; /,
    ...recreated,
  },
  {
    title: 'a snapshot on which no snapshot-controller has worked',
    async arrange(world) {
      await addSnapshot(world);
      await restore(world);
    },
    recorded: handedOver,
    laterMs: 35_000,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /is not ready, and no snapshot-controller has worked on it for \d+ s\.$/,
    advises: /^Install the snapshot-controller/,
    ...recreated,
  },
  {
    title: 'a snapshot whose class does not exist, and one of almost its name',
    async arrange(world) {
      const [className, wanted] = [world.name('snaps'), world.name('snap')];
      await world.add('snapshotClass', {
        metadata: { name: className },
        driver: world.driver,
        deletionPolicy: 'Delete',
      });
      const text = `volumesnapshotclass.snapshot.storage.k8s.io "${wanted}" not found`;
      await addFailed(world, `Failed to get snapshot class with error ${text}`, { className: wanted });
      await restore(world);
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /cannot be taken: its VolumeSnapshotClass \S+-snap does not exist; \S+-snaps does\.$/,
    advises:
      /or name \S+-snaps: kubectl patch volumesnapshot s -n \S+ --type=merge -p '{"spec":{"volumeSnapshotClassName":"\S+-snaps"}}'$/,
    ...recreated,
  },
  {
    title: 'a snapshot whose class came after the snapshot-controller had missed it',
    async arrange(world) {
      const name = world.name('late');
      const text = `volumesnapshotclass.snapshot.storage.k8s.io "${name}" not found`;
      await addFailed(world, `Failed to get snapshot class with error ${text}`, { className: name });
      await world.add('snapshotClass', { metadata: { name }, driver: world.driver, deletionPolicy: 'Delete' });
      await restore(world);
    },
    recorded: handedOver,
    verdict: 'waiting',
    cause: 'source-not-ready',
    says: /had no VolumeSnapshotClass; \S+-late exists now, for \d+ s\.$/,
    advises: /tries again within five minutes/,
    ...recreated,
  },
  {
    title: 'a snapshot that names no class while none is the default',
    async arrange(world) {
      await world.add('snapshotClass', {
        metadata: { name: world.name() },
        driver: world.driver,
        deletionPolicy: 'Delete',
      });
      await addFailed(world, 'Failed to set default snapshot class with error cannot find default snapshot class');
      await restore(world);
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /names no VolumeSnapshotClass, and none of driver \S+ is the default\.$/,
    advises:
      /: kubectl annotate volumesnapshotclass \S+ snapshot\.storage\.kubernetes\.io\/is-default-class=true --overwrite$/,
    ...recreated,
  },
  {
    title: 'a snapshot that names no class while several are the default',
    async arrange(world) {
      await addFailed(world, 'Failed to set default snapshot class with error 2 default snapshot classes were found');
      await restore(world);
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /names no VolumeSnapshotClass, and several of driver \S+ are the default/,
    advises: /^Let one of them be the default/,
    ...recreated,
  },
  {
    title: 'a snapshot of a claim that is gone',
    async arrange(world) {
      const text = 'failed to retrieve PVC src from the lister: "persistentvolumeclaim \\"src\\" not found"';
      await addFailed(world, `Failed to set default snapshot class with error ${text}`);
      await restore(world);
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /was never taken: claim src, of which it was to be taken, does not exist\.$/,
    advises: /^Recreate the claim with another source$/,
    ...recreated,
  },
  {
    title: 'a snapshot of a claim that is being deleted',
    async arrange(world) {
      const text = 'cannot add finalizer on claim because it is being deleted';
      await addFailed(
        world,
        `Failed to create snapshot content with error snapshot controller failed to update src on API server: ${text}`,
      );
      await restore(world);
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /the claim of which it was to be taken is being deleted\.$/,
    advises: /^Recreate the claim with another source$/,
    ...recreated,
  },
  {
    title: 'a snapshot of a volume that is of no CSI driver',
    async arrange(world) {
      const text = `snapshotting non-CSI volumes is not supported, snapshot:${world.namespace}/s`;
      await addFailed(world, `Failed to set default snapshot class with error ${text}`);
      await restore(world);
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /is of no CSI driver\.$/,
    advises: /only volumes of CSI drivers have snapshots$/,
    ...recreated,
  },
  {
    title: 'a snapshot of storage that exists, whose content nobody has created',
    async arrange(world) {
      const source = { volumeSnapshotContentName: world.name('imported') };
      await addFailed(world, 'VolumeSnapshotContent is missing', { source });
      await restore(world);
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /names VolumeSnapshotContent \S+-imported, which does not exist\.$/,
    advises: /^Create it, with the handle of the snapshot at the storage/,
    ...recreated,
  },
  {
    title: 'a snapshot whose content names another snapshot',
    async arrange(world) {
      const source = { volumeSnapshotContentName: world.name('content') };
      const text = `VolumeSnapshotContent [${world.name('content')}] is bound to a different snapshot`;
      await addContent(world, await addFailed(world, text, { source }), { ref: { name: 'nightly' } });
      await restore(world);
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /names VolumeSnapshotContent \S+-content, whose spec\.volumeSnapshotRef is \S+\/nightly\.$/,
    advises: /^Create a VolumeSnapshotContent of its own for this snapshot/,
    ...recreated,
  },
  {
    title: 'a snapshot whose content no csi-snapshotter has seen',
    async arrange(world) {
      const boundVolumeSnapshotContentName = await addContent(world, await addSnapshot(world));
      await world.patch(
        { kind: 'snapshot', name: 's' },
        { status: { boundVolumeSnapshotContentName, readyToUse: false } },
      );
      await restore(world);
    },
    recorded: handedOver,
    laterMs: 35_000,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /no csi-snapshotter of driver \S+ has worked on its VolumeSnapshotContent \S+-content for \d+ s\.$/,
    advises: /runs with the sidecar csi-snapshotter, and see its log: kubectl get leases -A /,
    ...recreated,
  },
  {
    title: 'a snapshot that its driver is taking',
    async arrange(world) {
      const status = { readyToUse: false, snapshotHandle: 'snap-1' };
      const boundVolumeSnapshotContentName = await addContent(world, await addSnapshot(world), { status });
      await world.patch(
        { kind: 'snapshot', name: 's' },
        { status: { boundVolumeSnapshotContentName, readyToUse: false } },
      );
      await restore(world);
    },
    recorded: handedOver,
    verdict: 'waiting',
    cause: 'source-not-ready',
    says: /is being taken by driver \S+, for \d+ s\.$/,
    advises: /^Nothing yet: the driver is asked again/,
    ...recreated,
  },
  {
    title: 'a snapshot that its driver refuses to take',
    async arrange(world) {
      const text =
        'failed to take snapshot of the volume handle: "rpc error: code = ResourceExhausted desc = pool full"';
      await addFailed(world, `Failed to create snapshot: ${text}`);
      await restore(world);
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /failed in the driver: .*code = ResourceExhausted desc = pool full"\.$/,
    advises: /The log of driver \S+ says more: its container beside the sidecar csi-snapshotter$/,
    ...recreated,
  },
  {
    title: 'a snapshot whose Secret is missing',
    async arrange(world) {
      await addFailed(
        world,
        'Failed to create snapshot: failed to get input parameters to create snapshot for content x: "cannot get credentials for snapshot content \\"x\\""',
      );
      await restore(world);
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /cannot get credentials for snapshot content/,
    advises: /^Create the Secret that its VolumeSnapshotClass /,
    ...recreated,
  },
  {
    title: 'a snapshot that is being deleted',
    async arrange(world) {
      await addSnapshot(world, { finalizers: ['snapshot.storage.kubernetes.io/volumesnapshot-bound-protection'] });
      await world.patch({ kind: 'snapshot', name: 's' }, { status: { readyToUse: true } });
      await world.remove({ kind: 'snapshot', name: 's' });
      await restore(world);
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /is being deleted, so no restore begins; and the snapshot-controller keeps it while this claim is Pending\.$/,
    advises: /^Delete the claim, and recreate it with another source$/,
    async cure(world) {
      await recreate(world);
      await world.patch({ kind: 'snapshot', name: 's' }, { metadata: { finalizers: null } });
    },
    ends: 'bound',
  },
  {
    title: 'a snapshot of another driver',
    async arrange(world) {
      await addReady(world, { driver: 'other.example.com' });
      await restore(world);
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /is of driver other\.example\.com, and the claim is for driver /,
    advises: /whose provisioner is other\.example\.com: kubectl get storageclass$/,
    ...recreated,
  },
  {
    title: 'a snapshot whose content belongs to an earlier snapshot of its name',
    async arrange(world) {
      await addReady(world, { ref: { uid: 'b5d7b0a8-0000-4000-8000-000000000000' } });
      await restore(world);
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /which belongs to an earlier snapshot of the same name \(spec\.volumeSnapshotRef\.uid\)\.$/,
    advises: /without that uid, with the same snapshotHandle/,
    ...recreated,
  },
  {
    title: 'a snapshot that is ready and whose content is gone',
    async arrange(world) {
      await addReady(world);
      await world.remove({ kind: 'snapshotContent', name: world.name('content') });
      await restore(world);
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /is ready, and its VolumeSnapshotContent \S+, which names the storage, does not exist any more\.$/,
    advises:
      /^If the storage still has the snapshot, create that VolumeSnapshotContent again, .* Otherwise: recreate the claim with another source$/,
    ...recreated,
  },
  {
    title: 'a snapshot that is larger than the claim',
    async arrange(world) {
      await addReady(world, {}, '2Gi');
      await restore(world);
    },
    recorded: handedOver,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /has 2Gi, which is more than the 1Gi that the claim requests\.$/,
    advises: /^Recreate the claim with at least the size of its source/,
    ...recreated,
  },
  {
    title: 'a snapshot of another volume mode',
    async arrange(world) {
      await addReady(world, { mode: 'Block' });
      await restore(world);
    },
    async recorded(world) {
      await world.handedOver();
      const text = `requested volume ns1/c modifies the mode of the source volume but does not have permission to do so. snapshot.storage.kubernetes.io/allow-volume-mode-change annotation is not present on snapshotcontent ${world.name('content')}`;
      await world.addEvent(
        { kind: 'claim', name: 'c' },
        {
          reason: 'ProvisioningFailed',
          message: `error getting handle for DataSource Type VolumeSnapshot by Name s: ${text}`,
        },
      );
    },
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /was taken of a volume with volumeMode Block, and the claim requests Filesystem\.$/,
    advises:
      /^Recreate the claim with volumeMode Block; .*: kubectl annotate volumesnapshotcontent \S+ snapshot\.storage\.kubernetes\.io\/allow-volume-mode-change=true --overwrite$/,
    ...recreated,
  },
  {
    title: 'a provisioner that may not read VolumeSnapshots',
    async arrange(world) {
      await addReady(world);
      await restore(world);
    },
    async recorded(world) {
      await world.handedOver();
      const text = `volumesnapshots.snapshot.storage.k8s.io "s" is forbidden: User "system:serviceaccount:driver:csi" cannot get resource "volumesnapshots" in API group "snapshot.storage.k8s.io" in the namespace "ns1"`;
      await world.addEvent(
        { kind: 'claim', name: 'c' },
        {
          reason: 'ProvisioningFailed',
          message: `failed to provision volume with StorageClass "sc": error getting handle for DataSource Type VolumeSnapshot by Name s: error getting snapshot s from api server: ${text}`,
        },
      );
    },
    cluster: { not: 'the provisioner of all rows has this permission' },
    verdict: 'stuck',
    cause: 'rejected',
    says: /Last error: .*error getting snapshot s from api server: .* is forbidden: /,
    advises:
      /\{apiGroups: \["snapshot\.storage\.k8s\.io"\], resources: \["volumesnapshots"\], verbs: \["get"\]\} .*: kubectl create role /,
  },
  {
    title: 'a provisioner that could not read the content of a snapshot',
    async arrange(world) {
      await addReady(world);
      await restore(world);
    },
    async recorded(world) {
      await world.handedOver();
      await world.addEvent(
        { kind: 'claim', name: 'c' },
        {
          reason: 'ProvisioningFailed',
          message: `error getting handle for DataSource Type VolumeSnapshot by Name s: error getting snapshotcontent ${world.name('content')} for snapshot s`,
          msAgo: -60_000, // after the snapshot became ready
        },
      );
    },
    cluster: { not: 'the provisioner of all rows has this permission' },
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /Last error: .*error getting snapshotcontent /,
    advises: /resources: \["volumesnapshotcontents"\], verbs: \["get"\]/,
  },
];
