/** Claims and volumes as kube-controller-manager binds, protects and releases them, and as attachments hold them. */
import type { KubeObject, Row, World } from './row.ts';

const minute = 60_000;
const provisionerFinalizer = 'external-provisioner.volume.kubernetes.io/finalizer';
const attacherFinalizer = 'external-attacher/csi-example-com';
const staticClass = { provisioner: 'kubernetes.io/no-provisioner' };
const late = { volumeBindingMode: 'WaitForFirstConsumer' };
const otherUid = 'b5d7b0a8-0000-4000-8000-000000000000';
const claim = { kind: 'claim', name: 'c' } as const;
const nothing = (): Promise<void> => Promise.resolve();

const volumeOf = (world: World) => ({ kind: 'volume', name: world.name('volume') }) as const;
const object = (world: World): string => `pv/${world.name('volume')}`;
const requests = (storage: string) => ({ resources: { requests: { storage } } });
const phase = (phase: string) => (world: World) => world.patch(volumeOf(world), { status: { phase } });
/** Of a claim that is gone. */
const goneClaim = (world: World) => ({ namespace: world.namespace, name: 'gone', uid: otherUid });
const enlarged = (world: World): Promise<unknown> =>
  world.patch(volumeOf(world), { spec: { capacity: { storage: '2Gi' } } });
const freed = (world: World): Promise<unknown> => world.patch(volumeOf(world), { spec: { claimRef: null } });
const unheld = (world: World): Promise<unknown> => world.patch(volumeOf(world), { metadata: { finalizers: null } });

/** Claim `c`, which names the volume. */
const named = (world: World, spec: object = {}): Promise<unknown> =>
  world.addClaim({ volumeName: world.name('volume'), ...spec });

/** A volume whose claim is gone, and whose storage the provisioner of the driver is to delete. */
async function released(world: World, metadata: object = {}, spec: object = {}): Promise<void> {
  await world.addVolume({ persistentVolumeReclaimPolicy: 'Delete', claimRef: goneClaim(world), ...spec }, metadata);
}

/** The driver refuses to delete it. */
const movedText = 'archive subdirectory(/tmp/v, /tmp/archived-v) failed with rename: no such file or directory';

const attachedThere = 'api error VolumeInUse: Volume vol-1 is currently attached to i-1';

async function undeletable(world: World, code: string, metadata: object = {}, message = 'no way'): Promise<void> {
  await world.fault({ method: 'DeleteVolume', volumeId: world.name('volume'), code, message });
  await released(world, metadata);
}

async function failedDeletion(world: World, code: string, said = 'no way'): Promise<void> {
  await phase('Released')(world);
  const message = `rpc error: code = ${code} desc = ${said}`;
  await world.addEvent(volumeOf(world), { reason: 'VolumeFailedDelete', message });
}

async function attach(
  world: World,
  node: string,
  fields: { finalizers?: string[]; status?: object } = {},
): Promise<void> {
  const { finalizers = [], status } = fields;
  await world.add('attachment', {
    metadata: { name: world.name('attachment'), finalizers },
    spec: { attacher: world.driver, nodeName: node, source: { persistentVolumeName: world.name('volume') } },
    ...(status !== undefined && { status: { ...status } }),
  });
}

/** A node whose kubelet says that it uses the volume. */
async function addNodeInUse(world: World): Promise<KubeObject> {
  const node = await world.addNode();
  const volumesInUse = [`kubernetes.io/csi/${world.driver}^${world.name('volume')}`];
  await world.patch({ kind: 'node', name: node.metadata.name }, { status: { volumesInUse } });
  return node;
}

/** The driver deletes nothing that is attached. */
async function stillAttached(world: World): Promise<void> {
  await undeletable(world, 'FAILED_PRECONDITION', {}, 'it is still attached to a node');
}

async function detached(world: World, work: Promise<unknown>): Promise<void> {
  await work;
  await world.fault();
}

const attachmentOf = (world: World) => ({ kind: 'attachment', name: world.name('attachment') }) as const;

export const binding: readonly Row[] = [
  {
    title: 'a class that waits for a Pod, and there is none',
    async arrange(world) {
      await world.addClass({ volumeBindingMode: 'WaitForFirstConsumer' });
      await world.addNode();
      await world.addClaim();
    },
    recorded: () => Promise.resolve(),
    verdict: 'waiting',
    cause: 'waits-for-consumer',
    says: /waits for the first Pod that uses the claim, and there is none yet\.$/,
    advises: /^Nothing/,
    cure: (world) => world.addPod({ nodeSelector: { 'kubernetes.io/hostname': world.name('node') } }),
    ends: 'bound',
  },
  {
    title: 'a class that does not exist',
    arrange: (world) => world.addClaim(),
    recorded: () => Promise.resolve(),
    verdict: 'stuck',
    cause: 'class-not-found',
    says: /^StorageClass \S+ does not exist\. /,
    advises: /^Create (the class|StorageClass \S+)/,
    cure: (world) => world.addClass(),
    ends: 'bound',
  },
  {
    title: "a volume of policy Retain that was deleted and that an attacher's finalizer holds",
    object: (world) => `pv/${world.name('volume')}`,
    async arrange(world) {
      await world.addVolume({}, { finalizers: [attacherFinalizer] });
      await world.remove({ kind: 'volume', name: world.name('volume') });
    },
    recorded: (world) =>
      world.patch(
        { kind: 'volume', name: world.name('volume') },
        { metadata: { finalizers: [attacherFinalizer] }, status: { phase: 'Available' } },
      ),
    laterMs: minute,
    verdict: 'stuck',
    cause: 'deleting',
    says: /\. It is only held by external-attacher\/csi-example-com of the driver's external-attacher, /,
    advises: /^Check that the driver's external-attacher runs, .*: kubectl patch pv \S+ --type=json -p /,
    cure: (world) => world.patch({ kind: 'volume', name: world.name('volume') }, { metadata: { finalizers: null } }),
    ends: 'gone',
  },
  {
    title: 'a claim that a Pod uses and that is being deleted',
    async arrange(world) {
      await world.addClass();
      await world.addNode();
      await world.addClaim();
      await world.bound();
      await world.addPod({ nodeSelector: { 'kubernetes.io/hostname': world.name('node') } });
      await world.placed();
    },
    async recorded(world) {
      await world.patch({ kind: 'claim', name: 'c' }, { metadata: { finalizers: ['kubernetes.io/pvc-protection'] } });
      await world.remove({ kind: 'claim', name: 'c' });
    },
    cluster: (world) => world.remove({ kind: 'claim', name: 'c' }),
    verdict: 'stuck',
    cause: 'deleting',
    says: /because it is used by Pod p\.$/,
    advises:
      /^To keep the data, .*, first run: kubectl patch pv \S+ -p .*Retain.*\. Delete the Pods that use it: kubectl delete pod -n \S+ p$/,
    cure: (world) => world.remove({ kind: 'pod', name: 'p' }),
    ends: 'gone',
  },
  // claims that name a volume
  {
    title: 'a claim that names a volume which does not exist',
    arrange: (world) => named(world),
    recorded: nothing,
    verdict: 'stuck',
    cause: 'waits-for-volume',
    says: /^The claim names PersistentVolume \S+, which does not exist\./, // others have names like it
    advises: /^Create that volume/,
    cure: (world) => world.addVolume(),
    ends: 'bound',
  },
  {
    title: 'a claim that names a volume which is smaller',
    async arrange(world) {
      await world.addVolume();
      await named(world, requests('2Gi'));
    },
    recorded: phase('Available'),
    verdict: 'stuck',
    cause: 'waits-for-volume',
    says: /which does not fit: it has 1Gi, and the claim requests 2Gi\.$/,
    advises: /^Recreate the claim with at most 1Gi/,
    cure: enlarged,
    ends: 'bound',
  },
  {
    title: 'a claim that names a volume of another class',
    async arrange(world) {
      await world.addVolume({ storageClassName: 'another' });
      await named(world);
    },
    recorded: phase('Available'),
    verdict: 'stuck',
    cause: 'waits-for-volume',
    says: /its class is "another", and the claim's is "\S+"\.$/,
    advises: /: kubectl patch pv \S+ -p '\{"spec":\{"storageClassName":"\S+"\}\}'$/,
    cure: (world) => world.patch(volumeOf(world), { spec: { storageClassName: world.name() } }),
    ends: 'bound',
  },
  {
    title: 'a claim that names a volume with fewer access modes',
    async arrange(world) {
      await world.addVolume();
      await named(world, { accessModes: ['ReadWriteMany'] });
    },
    recorded: phase('Available'),
    verdict: 'stuck',
    cause: 'waits-for-volume',
    says: /it does not offer ReadWriteMany\.$/,
    advises: /^Recreate the claim with ReadWriteOnce, or correct spec\.accessModes/,
    cure: (world) => world.patch(volumeOf(world), { spec: { accessModes: ['ReadWriteMany'] } }),
    ends: 'bound',
  },
  {
    title: 'a claim that names a volume of another volume mode',
    async arrange(world) {
      await world.addVolume({ volumeMode: 'Block' });
      await named(world);
    },
    recorded: phase('Available'),
    verdict: 'stuck',
    cause: 'waits-for-volume',
    says: /its volumeMode is Block, and the claim requests Filesystem\.$/,
    advises: /neither can be edited$/,
  },
  {
    title: 'a claim that names a volume which is reserved for another claim',
    async arrange(world) {
      await world.addVolume({ claimRef: { namespace: world.namespace, name: 'other' } });
      await named(world);
    },
    recorded: phase('Available'),
    verdict: 'stuck',
    cause: 'waits-for-volume',
    says: /which is Available for claim \S+\/other\.$/,
    advises:
      /^If that claim does not need it: kubectl patch pv \S+ --type=json -p '\[\{"op":"remove","path":"\/spec\/claimRef"\}\]'$/,
    cure: freed,
    ends: 'bound',
  },
  {
    title: 'a claim that names a volume which another claim has left',
    async arrange(world) {
      await world.addVolume({ claimRef: goneClaim(world) });
      await named(world);
    },
    recorded: phase('Released'),
    verdict: 'stuck',
    cause: 'waits-for-volume',
    says: /which is Released for claim \S+\/gone\.$/,
    advises: /^If its data may go to the next claim: kubectl patch pv .*"path":"\/spec\/claimRef"/,
    cure: freed,
    ends: 'bound',
  },
  {
    title:
      'a claim that names a volume which an earlier claim of its name has left, and whose storage is to be deleted',
    async arrange(world) {
      const claimRef = { namespace: world.namespace, name: 'c', uid: otherUid };
      const csi = { driver: 'nobody.example.com', volumeHandle: 'h' };
      await world.addVolume({ persistentVolumeReclaimPolicy: 'Delete', claimRef, csi });
      await named(world);
    },
    recorded: phase('Released'),
    verdict: 'stuck',
    cause: 'waits-for-volume',
    says: /which is Released for an earlier claim of the same name\. Its reclaim policy is Delete: its storage is being deleted\.$/,
    advises: /persistentVolumeReclaimPolicy","value":"Retain"\},\{"op":"remove","path":"\/spec\/claimRef\/uid"\}\]'$/,
    cure: (world) =>
      world.patch(volumeOf(world), { spec: { persistentVolumeReclaimPolicy: 'Retain', claimRef: { uid: null } } }),
    ends: 'bound',
  },
  // lost claims
  {
    title: 'a bound claim whose volume is gone',
    async arrange(world) {
      await world.addVolume();
      await named(world);
    },
    recorded: async (world) => {
      await world.remove(volumeOf(world));
      await unheld(world);
      await world.patch(claim, { status: { phase: 'Lost' } });
    },
    async cluster(world) {
      await world.bound();
      await world.remove(volumeOf(world));
      await unheld(world);
    },
    verdict: 'stuck',
    cause: 'lost',
    says: /^The PersistentVolume \S+ to which the claim was bound is gone\.$/,
    advises: /create a PersistentVolume of this name for it/,
    cure: (world) => world.addVolume(),
    ends: 'bound',
  },
  {
    title: 'a bound claim that was restored, so that its volume has the UID of the earlier one',
    async arrange(world) {
      await world.addVolume();
      await named(world);
    },
    recorded: async (world) => {
      const claimRef = { namespace: world.namespace, name: 'c', uid: otherUid };
      await world.patch(volumeOf(world), { spec: { claimRef }, status: { phase: 'Released' } });
      await world.patch(claim, { status: { phase: 'Lost' } });
    },
    async cluster(world) {
      await world.bound();
      await world.patch(volumeOf(world), { spec: { claimRef: { uid: otherUid } } });
    },
    verdict: 'stuck',
    cause: 'lost',
    says: /^PersistentVolume \S+ is bound to an earlier claim of the same name, .*restored/,
    advises: /: kubectl patch pv \S+ -p '\{"spec":\{"claimRef":\{"uid":"[0-9a-f-]+"\}\}\}'$/,
    cure: async (world) => {
      const uid = (await world.read(claim))?.metadata.uid;
      await world.patch(volumeOf(world), { spec: { claimRef: { uid } } });
    },
    ends: 'bound',
  },
  {
    title: 'a bound claim whose volume was given to another claim',
    async arrange(world) {
      await world.addVolume();
      await named(world);
    },
    recorded: async (world) => {
      await world.patch(volumeOf(world), { spec: { claimRef: goneClaim(world) }, status: { phase: 'Released' } });
      await world.patch(claim, { status: { phase: 'Lost' } });
    },
    async cluster(world) {
      await world.bound();
      await world.patch(volumeOf(world), { spec: { claimRef: goneClaim(world) } });
    },
    verdict: 'stuck',
    cause: 'lost',
    says: /^The claim names PersistentVolume \S+, which is bound to claim \S+\/gone: it may be a copy of that claim\.$/,
    advises: /^Delete this claim, and create it again without spec\.volumeName and the annotations /,
  },
  {
    title: 'a claim that was created from the export of a bound one',
    async arrange(world) {
      await world.addClass();
      await world.addClaim({}, { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } });
    },
    recorded: (world) => world.patch(claim, { status: { phase: 'Lost' } }),
    verdict: 'stuck',
    cause: 'lost',
    says: /^The claim has the annotation pv\.kubernetes\.io\/bind-completed and names no volume/,
    advises: /^Remove the annotation: kubectl annotate pvc c --namespace \S+ pv\.kubernetes\.io\/bind-completed-$/,
    cure: (world) => world.patch(claim, { metadata: { annotations: { 'pv.kubernetes.io/bind-completed': null } } }),
    ends: 'bound',
  },
  // claims for which nothing is provisioned
  {
    title: 'a class without a provisioner, of which there is no volume',
    async arrange(world) {
      await world.addClass(staticClass);
      await world.addClaim(requests('5Ti'));
    },
    recorded: nothing,
    verdict: 'stuck',
    cause: 'static-class',
    says: /there is none of its class that is not bound/,
    advises: /^Create a PersistentVolume of this class/,
    cure: (world) => world.addVolume({ capacity: { storage: '5Ti' } }),
    ends: 'bound',
  },
  {
    title: 'a class without a provisioner, whose volume is smaller',
    async arrange(world) {
      await world.addClass(staticClass);
      await world.addVolume();
      await world.addClaim(requests('2Gi'));
    },
    recorded: phase('Available'),
    verdict: 'stuck',
    cause: 'static-class',
    says: /^PersistentVolume \S+-volume would fit the claim, but it has 1Gi, and the claim requests 2Gi\. /,
    advises: /^Recreate the claim with at most 1Gi/,
    cure: enlarged,
    ends: 'bound',
  },
  {
    title: 'a class without a provisioner, whose volume another claim has left',
    async arrange(world) {
      await world.addClass(staticClass);
      await world.addVolume({ claimRef: goneClaim(world) });
      await world.addClaim();
    },
    recorded: phase('Released'),
    verdict: 'stuck',
    cause: 'static-class',
    says: /^PersistentVolume \S+-volume would fit the claim, but it is Released: it is still reserved for claim \S+\/gone, which is gone\. /,
    advises: /"path":"\/spec\/claimRef"\}\]'$/,
    cure: freed,
    ends: 'bound',
  },
  {
    title: 'a class without a provisioner, whose volume was provisioned for another claim',
    async arrange(world) {
      await world.addClass(staticClass);
      await world.addVolume(
        { claimRef: goneClaim(world) },
        { annotations: { 'pv.kubernetes.io/provisioned-by': world.driver } },
      );
      await world.addClaim();
    },
    recorded: phase('Released'),
    cluster: { not: 'the volumes of other rows have classes of nearly the same name' },
    verdict: 'stuck',
    cause: 'static-class',
    says: /of those of its class that are not bound none comes near it/,
    advises: /^Create a PersistentVolume of this class/,
  },
  {
    title: 'a class without a provisioner, whose volume an earlier claim of the same name has left',
    async arrange(world) {
      await world.addClass(staticClass);
      await world.addVolume({ claimRef: { namespace: world.namespace, name: 'c', uid: otherUid } });
      await world.addClaim();
    },
    recorded: phase('Released'),
    verdict: 'stuck',
    cause: 'static-class',
    says: /^PersistentVolume \S+-volume would fit the claim, but it is Released: it is still reserved for an earlier claim of the same name\. /,
    advises: /"path":"\/spec\/claimRef\/uid"\}\]'$/,
    cure: (world) => world.patch(volumeOf(world), { spec: { claimRef: { uid: null } } }),
    ends: 'bound',
  },
  {
    title: 'a class without a provisioner, with a volume that is reserved for the claim and smaller',
    async arrange(world) {
      await world.addClass(staticClass);
      await world.addVolume({ claimRef: { namespace: world.namespace, name: 'c' }, storageClassName: 'another' });
      await world.addClaim(requests('2Gi'));
    },
    recorded: phase('Available'),
    verdict: 'stuck',
    cause: 'static-class',
    says: /^PersistentVolume \S+-volume would fit the claim, but it has 1Gi, and the claim requests 2Gi\. /,
    advises: /^Recreate the claim with at most 1Gi/,
    cure: enlarged,
    ends: 'bound',
  },
  {
    title: 'a class without a provisioner, and a volume of a class that is written a little differently',
    async arrange(world) {
      await world.addClass(staticClass);
      await world.addVolume({ capacity: { storage: '7Ti' }, storageClassName: `${world.name()}s` });
      await world.addClaim(requests('7Ti'));
    },
    recorded: phase('Available'),
    verdict: 'stuck',
    cause: 'static-class',
    says: /^PersistentVolume \S+-volume would fit the claim, but its class is "\S+s", and the claim's is "\S+"\. /,
    advises: /^If the volume is for this claim, give it that class: kubectl patch pv /,
    cure: (world) => world.patch(volumeOf(world), { spec: { storageClassName: world.name() } }),
    ends: 'bound',
  },
  {
    title: 'a class that is only the name of existing volumes, of which the one that there is cannot be shared',
    async arrange(world) {
      await world.addVolume();
      await world.addClaim({ accessModes: ['ReadWriteMany'] });
    },
    recorded: phase('Available'),
    verdict: 'stuck',
    cause: 'static-class',
    says: /would fit the claim, but it does not offer ReadWriteMany\. StorageClass \S+ does not exist, so no volume/,
    advises: /^Recreate the claim with ReadWriteOnce/,
    cure: (world) => world.patch(volumeOf(world), { spec: { accessModes: ['ReadWriteMany'] } }),
    ends: 'bound',
  },
  {
    title: 'a class without a provisioner that waits for a Pod, whose only volume is on a node that is gone',
    async arrange(world) {
      await world.addClass({ ...staticClass, ...late });
      await world.addNode();
      await world.addVolume(onHost(world, 'gone'));
      await world.addClaim();
      await world.addPod();
    },
    recorded: async (world) => {
      await phase('Available')(world);
      const message = "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind.";
      const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }];
      await world.patch({ kind: 'pod', name: 'p' }, { status: { phase: 'Pending', conditions } });
    },
    verdict: 'stuck',
    cause: 'static-class',
    says: /PersistentVolume \S+-volume fits, but is only usable on node \S+-gone, which does not exist\.$/,
    advises: /^Bring the node back under that name\. .*: kubectl delete pv \S+-volume$/,
    cure: (world) => world.addVolume(onHost(world, 'node'), { name: world.name('another') }),
    ends: 'bound',
  },
  {
    title: 'a class without a provisioner, whose only volume is on a node that the Pod may not use',
    async arrange(world) {
      await world.addClass({ ...staticClass, ...late });
      await world.addNode();
      await world.addNode({ name: world.name('another') });
      await world.addVolume(onHost(world, 'another'));
      await world.addClaim();
      await world.addPod({ nodeSelector: { 'kubernetes.io/hostname': world.name('node') } });
    },
    recorded: async (world) => {
      await phase('Available')(world);
      const message =
        "0/2 nodes are available: 1 node(s) didn't find available persistent volumes to bind, 1 node(s) didn't match Pod's node affinity/selector.";
      const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }];
      await world.patch({ kind: 'pod', name: 'p' }, { status: { phase: 'Pending', conditions } });
    },
    verdict: 'stuck',
    cause: 'static-class',
    says: /PersistentVolume \S+-volume fits, but is only usable on node \S+-another, which the Pod's nodeSelector or affinity excludes\.$/,
    advises: /^Let the Pod run on that node /,
    cure: (world) => world.addVolume(onHost(world, 'node'), { name: world.name('second') }),
    ends: 'bound',
  },
  {
    title: 'a class that does not exist, beside a volume of an application with another class',
    async arrange(world) {
      await world.addClass({ ...staticClass, metadata: { name: world.name('local') } });
      await world.addVolume({ storageClassName: world.name('local') });
      await world.addClaim({ storageClassName: 'gp2-gone' });
      const fields = { annotations: { 'pv.kubernetes.io/provisioned-by': world.driver }, name: world.name('former') };
      await world.addVolume({ storageClassName: 'gp2-gone', claimRef: goneClaim(world) }, fields);
    },
    recorded: nothing,
    verdict: 'stuck',
    cause: 'class-not-found',
    says: /^StorageClass gp2-gone does not exist\./,
    advises: /^Create the class, or recreate the claim with another class$/,
  },
  {
    title: 'a selector by which Velero keeps a claim until its data is there',
    async arrange(world) {
      await world.addClass();
      await world.addClaim({ selector: { matchLabels: { 'velero.io/dynamic-pv-restore': 'ns1.c.1' } } });
    },
    recorded: nothing,
    verdict: 'waiting',
    cause: 'selector',
    says: /^Velero has been restoring the claim for \d+ s: /,
    advises:
      /^Nothing yet; without the selector the claim would get an empty volume\. If it lasts: .*: kubectl get datadownloads\.velero\.io -A$/,
  },
  {
    title: 'a selector that the labels of the only volume do not match',
    async arrange(world) {
      await world.addClass();
      await world.addVolume();
      await world.addClaim({ selector: { matchLabels: { row: world.name() } } });
    },
    recorded: phase('Available'),
    verdict: 'stuck',
    cause: 'selector',
    says: /^PersistentVolume \S+-volume would fit the claim, but its labels do not match spec\.selector: row=\S+\. /,
    advises: /^If the volume is for this claim: kubectl label pv \S+-volume row=\S+ --overwrite$/,
    cure: (world) => world.patch(volumeOf(world), { metadata: { labels: { row: world.name() } } }),
    ends: 'bound',
  },
  {
    title: 'a selector that matches a volume which is smaller',
    async arrange(world) {
      await world.addClass();
      await world.addVolume({}, { labels: { row: world.name() } });
      await world.addClaim({ ...requests('2Gi'), selector: { matchLabels: { row: world.name() } } });
    },
    recorded: phase('Available'),
    verdict: 'stuck',
    cause: 'selector',
    says: /^PersistentVolume \S+-volume would fit the claim, but it has 1Gi, and the claim requests 2Gi\. /,
    advises: /^Recreate the claim with at most 1Gi/,
    cure: enlarged,
    ends: 'bound',
  },
  {
    title: 'a volume that fits a claim, and that kube-controller-manager has not bound for minutes',
    async arrange(world) {
      await world.addClass(staticClass);
      await world.addVolume();
      await world.addClaim();
    },
    recorded: phase('Available'),
    cluster: { not: 'kube-controller-manager would have to be stopped for all rows' },
    laterMs: 5 * minute,
    verdict: 'stuck',
    cause: 'volume-made',
    says: /fits the claim, and kube-controller-manager has not bound them for 5 min\.$/,
    advises: /^Check that kube-controller-manager runs: kubectl get lease/,
  },
  // claims that are being deleted
  {
    title: 'a claim that is being deleted and that the finalizer of a program holds which is not part of Kubernetes',
    async arrange(world) {
      await world.addClass();
      await world.addClaim({}, { finalizers: ['backup.example.com/hold'] });
      await world.remove(claim);
    },
    recorded: nothing,
    laterMs: minute,
    verdict: 'stuck',
    cause: 'deleting',
    says: /backup\.example\.com\/hold of a controller of backup\.example\.com/,
    advises:
      /: kubectl patch pvc c --namespace \S+ --type=json -p '\[\{"op":"test","path":"\/metadata\/finalizers\/0","value":"backup\.example\.com\/hold"\},/,
    cure: (world) => world.patch(claim, { metadata: { finalizers: null } }),
    ends: 'gone',
  },
  {
    title: 'a claim that is being deleted, and that the snapshot-controller keeps although no snapshot is being taken',
    async arrange(world) {
      await world.addClass();
      await world.addClaim({}, { finalizers: ['snapshot.storage.kubernetes.io/pvc-as-source-protection'] });
      await world.remove(claim);
    },
    recorded: nothing,
    laterMs: minute,
    verdict: 'stuck',
    cause: 'deleting',
    says: /of the snapshot-controller, which removes it once no snapshot of the claim is being taken; none is\.$/,
    advises: /: kubectl get pods -A -l app\.kubernetes\.io\/name=snapshot-controller$/,
    cure: (world) => world.patch(claim, { metadata: { finalizers: null } }),
    ends: 'gone',
  },
  {
    title: 'a claim that no Pod uses, and whose finalizer kube-controller-manager has not removed for minutes',
    async arrange(world) {
      await world.addClaim({}, { finalizers: ['kubernetes.io/pvc-protection'] });
      await world.remove(claim);
    },
    recorded: nothing,
    cluster: { not: 'kube-controller-manager would have to be stopped for all rows' },
    laterMs: 5 * minute,
    verdict: 'stuck',
    cause: 'deleting',
    says: /No Pod uses it/,
    advises: /^Check that kube-controller-manager runs/,
  },
  // volumes that are being deleted
  {
    title: 'a volume that was never released, is being deleted, and has the finalizer of the provisioner',
    object,
    async arrange(world) {
      await world.addVolume({ persistentVolumeReclaimPolicy: 'Delete' }, { finalizers: [provisionerFinalizer] });
      await world.remove(volumeOf(world));
    },
    recorded: phase('Available'),
    verdict: 'stuck',
    cause: 'deleting',
    says: /nobody removes external-provisioner\S+: .* Released volumes only, and this one is Available\.$/,
    advises: /: kubectl patch pv \S+ -p '\{"spec":\{"persistentVolumeReclaimPolicy":"Retain"\}\}'$/,
    cure: (world) => world.patch(volumeOf(world), { spec: { persistentVolumeReclaimPolicy: 'Retain' } }),
    ends: 'gone',
  },
  {
    title: 'a released volume whose storage is deleted, and that the finalizer of an attacher holds',
    object,
    async arrange(world) {
      await released(world, { finalizers: [attacherFinalizer] });
    },
    recorded: async (world) => {
      await phase('Released')(world);
      await world.remove(volumeOf(world));
    },
    async cluster(world) {
      await world.eventually(async () => {
        const { metadata } = (await world.read(volumeOf(world))) ?? {};
        if (metadata?.deletionTimestamp === undefined) throw new Error('it is not deleted yet');
      });
    },
    laterMs: 5 * minute,
    verdict: 'stuck',
    cause: 'deleting',
    says: /Its provisioner is done with it, and it is only held by external-attacher\/csi-example-com of the driver's external-attacher, .*\.$/,
    advises: /^Check that the driver's external-attacher runs, .*: kubectl patch pv /,
    cure: unheld,
    ends: 'gone',
  },
  {
    title: 'a bound volume that is being deleted while its claim is not',
    object,
    async arrange(world) {
      await world.addVolume();
      await named(world);
    },
    recorded: async (world) => {
      const uid = (await world.read(claim))?.metadata.uid;
      const claimRef = { namespace: world.namespace, name: 'c', uid };
      const finalizers = ['kubernetes.io/pv-protection'];
      await world.patch(volumeOf(world), { metadata: { finalizers }, spec: { claimRef }, status: { phase: 'Bound' } });
      await world.patch(claim, { status: { phase: 'Bound' } });
      await world.remove(volumeOf(world));
    },
    async cluster(world) {
      await world.bound();
      await world.remove(volumeOf(world));
    },
    verdict: 'stuck',
    cause: 'in-use',
    says: /is being deleted, and claim \S+\/c is still bound to it\.$/,
    advises:
      /^A deletion cannot be taken back: the PersistentVolume goes once its claim does, and its storage is kept \(reclaim policy Retain\)/,
    cure: (world) => world.remove(claim),
    ends: 'gone',
  },
  {
    title: 'a bound volume that is being deleted with its storage while its claim is not',
    object: (world) => `pv/${world.volume}`,
    async arrange(world) {
      await world.addClass();
      await world.addClaim();
      await world.bound();
      await world.remove({ kind: 'volume', name: world.volume });
    },
    recorded: nothing,
    verdict: 'stuck',
    cause: 'in-use',
    says: /is being deleted, and claim \S+\/c is still bound to it\.$/,
    advises:
      /its storage with it \(reclaim policy Delete\)\. If the data is not needed, delete the claim\. If it is needed, keep it first: kubectl patch pv \S+ -p .*Retain/,
    cure: (world) => world.remove(claim),
    ends: 'gone',
  },
  {
    title: 'a bound volume that is being deleted, and whose claim is, too',
    object,
    async arrange(world) {
      await world.addVolume();
      await world.addClaim({ volumeName: world.name('volume') }, { finalizers: ['backup.example.com/hold'] });
    },
    recorded: async (world) => {
      const uid = (await world.read(claim))?.metadata.uid;
      const claimRef = { namespace: world.namespace, name: 'c', uid };
      const finalizers = ['kubernetes.io/pv-protection'];
      await world.patch(volumeOf(world), { metadata: { finalizers }, spec: { claimRef }, status: { phase: 'Bound' } });
      await world.remove(volumeOf(world));
      await world.remove(claim);
    },
    async cluster(world) {
      await world.bound();
      await world.remove(volumeOf(world));
      await world.remove(claim);
    },
    laterMs: minute,
    verdict: 'stuck',
    cause: 'deleting',
    says: /^The volume is being deleted and waits for claim \S+\/c: this claim is being deleted and is held by backup\.example\.com\/hold of /,
    advises: /: kubectl patch pvc c /,
    cure: (world) => world.patch(claim, { metadata: { finalizers: null } }),
    ends: 'gone',
  },
  // volumes whose storage is to be deleted
  {
    title: 'a released volume whose annotation names a provisioner of which there is no sign',
    object,
    arrange: (world) => released(world, { annotations: { 'pv.kubernetes.io/provisioned-by': 'old.example.com' } }),
    recorded: phase('Released'),
    verdict: 'stuck',
    cause: 'other-source',
    says: /names old\.example\.com, but its storage is of CSI driver \S+\. There is no sign of old\.example\.com in the cluster\.$/,
    advises: /: kubectl annotate pv \S+ pv\.kubernetes\.io\/provisioned-by=\S+ --overwrite$/,
    cure: (world) =>
      world.patch(volumeOf(world), {
        metadata: { annotations: { 'pv.kubernetes.io/provisioned-by': world.driver } },
      }),
    ends: 'gone',
  },
  {
    title: 'a released volume whose driver says that it is in use',
    object,
    arrange: (world) => undeletable(world, 'FAILED_PRECONDITION'),
    recorded: (world) => failedDeletion(world, 'FailedPrecondition'),
    verdict: 'stuck',
    cause: 'delete-error',
    says: /Last error: rpc error: code = FailedPrecondition desc = no way$/,
    advises: /such as snapshots and clones of the volume/,
    cure: (world) => world.fault(),
    ends: 'gone',
  },
  {
    title: 'a released volume whose directory somebody has moved',
    object,
    arrange: (world) => undeletable(world, 'INTERNAL', {}, movedText),
    recorded: (world) => failedDeletion(world, 'Internal', movedText),
    verdict: 'stuck',
    cause: 'delete-error',
    says: /Last error: rpc error: code = Internal desc = archive subdirectory.*no such file or directory$/,
    advises:
      /^Unless the error says otherwise: the driver does not find what the deletion needs, such as the directory of the volume/,
    cure: (world) => world.fault(),
    ends: 'gone',
  },
  {
    title: 'a released volume that cannot be deleted without its Secret, which is gone',
    object,
    arrange: (world) => released(world, { annotations: secretAnnotations('gone') }),
    recorded: (world) => failedDeletion(world, 'Unauthenticated'),
    cluster: { not: 'the role in docs/why.md may not read Secrets' },
    verdict: 'stuck',
    cause: 'secret-missing',
    says: /^Secret gone\/key, with which the driver is to delete the storage, does not exist, .*desc = no way$/,
    advises:
      /: kubectl annotate pv \S+ --overwrite volume\.kubernetes\.io\/provisioner-deletion-secret-namespace=NAMESPACE /,
  },
  {
    title: 'a released volume that cannot be deleted without its Secret, which may not be read',
    object,
    arrange: (world) => undeletable(world, 'UNAUTHENTICATED', { annotations: secretAnnotations('gone') }),
    verdict: 'stuck',
    cause: 'delete-error',
    says: /code = Unauthenticated desc = no way$/,
    advises: /The driver gets Secret gone\/key, which may have gone with its namespace(\.|$)/,
    cure: (world) => world.fault(),
    ends: 'gone',
  },
  {
    title: 'a released volume of a kind that nobody deletes',
    object,
    arrange: (world) => released(world, {}, { csi: undefined, nfs: { server: 'nfs.example.com', path: '/data' } }),
    recorded: (world) =>
      world.patch(volumeOf(world), {
        status: {
          phase: 'Failed',
          message: 'error getting deleter volume plugin for volume "v": no deletable volume plugin matched',
        },
      }),
    verdict: 'stuck',
    cause: 'delete-error',
    says: /^Nobody deletes storage of this kind: .*plugin matched\)$/,
    advises: /: kubectl patch pv \S+ -p '\{"spec":\{"persistentVolumeReclaimPolicy":"Retain"\}\}'$/,
    cure: async (world) => {
      await world.patch(volumeOf(world), { spec: { persistentVolumeReclaimPolicy: 'Retain' } });
      await world.remove(volumeOf(world));
    },
    ends: 'gone',
  },
  {
    title: 'a volume of a CSI driver that is Failed',
    object,
    arrange: (world) => undeletable(world, 'INTERNAL'),
    recorded: phase('Failed'),
    async cluster(world) {
      await world.eventually(async () => {
        const { status } = (await world.read(volumeOf(world))) ?? {};
        if (status?.['phase'] !== 'Released') throw new Error('it is not released yet');
      });
      await phase('Failed')(world);
    },
    verdict: 'stuck',
    cause: 'delete-error',
    says: /^The volume is Failed, and its provisioner deletes only those that are Released/,
    advises: /: kubectl patch pv \S+ --subresource=status --type=merge -p '\{"status":\{"phase":"Released"\}\}'$/,
    cure: async (world) => {
      await world.fault();
      await phase('Released')(world);
    },
    ends: 'gone',
  },
  {
    title: 'a released volume that the storage still has attached to a machine, while it is attached to no node',
    object,
    arrange: (world) => undeletable(world, 'INTERNAL', {}, attachedThere),
    recorded: async (world) => {
      await phase('Released')(world);
      const message = `rpc error: code = Internal desc = ${attachedThere}`;
      await world.addEvent(volumeOf(world), { reason: 'VolumeFailedDelete', message });
    },
    verdict: 'stuck',
    cause: 'delete-error',
    says: /Last error: .*is currently attached to i-1$/,
    advises: /^No VolumeAttachment names the volume, but the storage reports it as in use: /,
    cure: (world) => world.fault(),
    ends: 'gone',
  },
  {
    title: 'a released volume that is in use at the storage, while it is attached to no node',
    object,
    arrange: (world) => undeletable(world, 'INTERNAL', {}, "The resource 'volume' is in use."),
    recorded: async (world) => {
      await phase('Released')(world);
      const message = "rpc error: code = Internal desc = The resource 'volume' is in use.";
      await world.addEvent(volumeOf(world), { reason: 'VolumeFailedDelete', message });
    },
    verdict: 'stuck',
    cause: 'delete-error',
    says: /Last error: .*The resource 'volume' is in use\.$/,
    advises: /^No VolumeAttachment names the volume, but the storage reports it as in use: /,
    cure: (world) => world.fault(),
    ends: 'gone',
  },
  {
    title: 'a deleted volume of a driver of which there is no sign, and that the finalizer of an attacher holds',
    object,
    async arrange(world) {
      const csi = { driver: 'gone.example.com', volumeHandle: 'v-1' };
      const finalizers = ['external-attacher/gone-example-com'];
      await world.addVolume(
        { persistentVolumeReclaimPolicy: 'Delete', claimRef: goneClaim(world), csi },
        { finalizers },
      );
      await world.remove(volumeOf(world));
    },
    recorded: phase('Released'),
    laterMs: minute,
    verdict: 'stuck',
    cause: 'deleting',
    says: /^The PersistentVolume was deleted \d+ s ago\. It is only held by external-attacher\/gone-example-com .* There is no sign of its driver gone\.example\.com in the cluster: whether its storage was deleted is not known\.$/,
    advises: /^Delete the storage with its own tools if it is not needed\. /,
    cure: unheld,
    ends: 'gone',
  },
  {
    title: 'a released volume that is to be emptied by a Pod which does not start',
    object,
    arrange: (world) =>
      released(
        world,
        {},
        { persistentVolumeReclaimPolicy: 'Recycle', csi: undefined, nfs: { server: '127.0.0.1', path: '/' } },
      ),
    recorded: async (world) => {
      await phase('Released')(world);
      await world.addEvent(volumeOf(world), {
        reason: 'RecyclerPod',
        message: 'Recycler pod: Failed to pull image "busybox": i/o timeout',
        type: 'Warning',
        component: 'persistentvolume-controller',
      });
    },
    cluster: { not: 'its Pod is scheduled to nodes of other rows, on which no kubelet says anything' },
    verdict: 'stuck',
    cause: 'delete-error',
    says: /^kube-controller-manager is to empty the volume .*could not .*Failed to pull image "busybox": i\/o timeout$/,
    advises: /^Only NFS and hostPath volumes can be recycled\./,
  },
  {
    title: 'a released volume that is to be recycled, which its kind of storage cannot be',
    object,
    arrange: (world) => released(world, {}, { persistentVolumeReclaimPolicy: 'Recycle' }),
    recorded: (world) =>
      world.patch(volumeOf(world), {
        status: { phase: 'Failed', message: 'No recycler plugin found for the volume!' },
      }),
    verdict: 'stuck',
    cause: 'delete-error',
    says: /^kube-controller-manager is to empty the volume for another claim .*could not: No recycler plugin found/,
    advises: /^Only NFS and hostPath volumes can be recycled\./,
    cure: async (world) => {
      await world.patch(volumeOf(world), { spec: { persistentVolumeReclaimPolicy: 'Retain' } });
      await world.remove(volumeOf(world));
    },
    ends: 'gone',
  },
  // attachments in the way of a deletion
  {
    title: 'a released volume that is attached to a node which is gone',
    object,
    async arrange(world) {
      await attach(world, world.name('gone'));
      await stillAttached(world);
    },
    recorded: phase('Released'),
    laterMs: 10 * minute,
    verdict: 'stuck',
    cause: 'attached',
    says: /^The volume is still attached to node \S+-gone \(VolumeAttachment \S+\)\. The node does not exist, and kube-controller-manager has not detached the volume/,
    advises: /: kubectl delete volumeattachment \S+-attachment$/,
    cure: (world) => detached(world, world.remove(attachmentOf(world))),
    ends: 'gone',
  },
  {
    title: 'a released volume that is attached to a node which no longer uses it',
    object,
    async arrange(world) {
      await world.addNode();
      await attach(world, world.name('node'));
      await stillAttached(world);
    },
    recorded: phase('Released'),
    laterMs: 10 * minute,
    verdict: 'stuck',
    cause: 'attached',
    says: /The kubelet of the node no longer uses it, and kube-controller-manager has not detached it/,
    advises: /: kubectl delete volumeattachment \S+-attachment$/,
    cure: (world) => detached(world, world.remove(attachmentOf(world))),
    ends: 'gone',
  },
  {
    title: 'a released volume that is attached to a node whose kubelet still uses it',
    object,
    async arrange(world) {
      const node = await addNodeInUse(world);
      await attach(world, node.metadata.name);
      await stillAttached(world);
    },
    recorded: phase('Released'),
    laterMs: 10 * minute,
    verdict: 'stuck',
    cause: 'attached',
    says: /The kubelet of the node says that it still uses the volume/,
    advises: /: kubectl get pods --all-namespaces --field-selector spec\.nodeName=\S+-node$/,
    cure: (world) => detached(world, world.remove(attachmentOf(world))),
    ends: 'gone',
  },
  {
    title: 'a released volume that a Pod still uses, whose claim somebody has torn off',
    object,
    async arrange(world) {
      const node = await addNodeInUse(world);
      await world.addPod({ nodeName: node.metadata.name }, { claim: goneClaim(world).name });
      await attach(world, node.metadata.name);
      await stillAttached(world);
    },
    recorded: phase('Released'),
    verdict: 'stuck',
    cause: 'attached',
    says: /Pod \S+\/p there names its claim \S+, which is gone\.$/,
    advises:
      /^If the data is needed, keep it first: kubectl patch pv \S+ -p .*Retain.* Then end the Pod, .*: kubectl delete pod -n \S+ p$/,
    cure: (world) => detached(world, world.remove(attachmentOf(world))),
    ends: 'gone',
  },
  {
    title: 'a released volume that the driver fails to detach',
    object,
    async arrange(world) {
      await world.addNode();
      const detachError = { message: 'rpc error: code = NotFound desc = no such node', time: '2026-01-01T00:00:00Z' };
      const fields = { finalizers: [attacherFinalizer], status: { attached: true, detachError } };
      await attach(world, world.name('node'), fields);
      await world.remove(attachmentOf(world));
      await stillAttached(world);
    },
    recorded: phase('Released'),
    laterMs: 10 * minute,
    verdict: 'stuck',
    cause: 'attached',
    says: /Detaching it has failed for 10 min, and is tried again\. Last error: .* desc = no such node\.$/,
    advises:
      /Only if the storage itself shows that the volume is attached to no node, .*: kubectl patch volumeattachment \S+-attachment --type=json /,
    cure: (world) => detached(world, world.patch(attachmentOf(world), { metadata: { finalizers: null } })),
    ends: 'gone',
  },
  {
    title: 'a released volume that no external-attacher detaches from a node which is gone',
    object,
    async arrange(world) {
      await attach(world, world.name('gone'), { finalizers: [attacherFinalizer] });
      await world.remove(attachmentOf(world));
      await stillAttached(world);
    },
    recorded: phase('Released'),
    laterMs: 3 * minute,
    verdict: 'stuck',
    cause: 'attached',
    says: /The external-attacher of \S+ has had to detach it for 3 min; node \S+gone does not exist\.$/,
    advises: /^Check that the driver's external-attacher runs .*Only if the storage itself shows/,
    cure: (world) => detached(world, world.patch(attachmentOf(world), { metadata: { finalizers: null } })),
    ends: 'gone',
  },
  {
    title: 'a released volume that no external-attacher detaches',
    object,
    async arrange(world) {
      await world.addNode();
      await attach(world, world.name('node'), { finalizers: [attacherFinalizer] });
      await world.remove(attachmentOf(world));
      await stillAttached(world);
    },
    recorded: phase('Released'),
    laterMs: 10 * minute,
    verdict: 'stuck',
    cause: 'attached',
    says: /The external-attacher of \S+ has had to detach it for 10 min\.$/,
    advises: /^Check that the driver's external-attacher runs/,
    cure: (world) => detached(world, world.patch(attachmentOf(world), { metadata: { finalizers: null } })),
    ends: 'gone',
  },
];

function onHost(world: World, part: string): object {
  const matchExpressions = [{ key: 'kubernetes.io/hostname', operator: 'In', values: [world.name(part)] }];
  return { nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } } };
}

function secretAnnotations(namespace: string): Record<string, string> {
  const key = 'volume.kubernetes.io/provisioner-deletion-secret';
  return { [`${key}-name`]: 'key', [`${key}-namespace`]: namespace };
}
