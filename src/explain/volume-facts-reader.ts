/** Reads what is needed to explain why a volume stays. */
import type { KubeObject } from '../kube/kube-object.ts';
import {
  migratedToKey,
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  provisionedByKey,
  type SecretReference,
  volumeFinalizer,
} from '../provision/objects.ts';
import {
  type Attachment,
  attachments,
  type ClusterEvent,
  events,
  type ClusterNode,
  nodes,
  type Pod,
  pods,
  secrets,
  type SnapshotContent,
  snapshotContents,
  usesClaim,
} from './cluster-objects.ts';
import { type ClusterReader, found, type Reading } from './cluster-reader.ts';
import { type DriverPod, readDriverPod } from './driver-log.ts';
import { type ProvisionerFacts, readProvisioner } from './provisioner-facts.ts';
import { deletionHistory } from './provisioning-events.ts';

/** What was read; what the volume's state does not require is absent. */
export interface VolumeFacts {
  /** The time of the API server, in milliseconds since the epoch. */
  nowMs: number;
  volume: PersistentVolume;
  /** To which it is or was bound; of a kept volume read to see whether a later claim has the name. */
  claim?: Reading<PersistentVolumeClaim> | undefined;
  /** Of this volume. */
  attachments?: Reading<Attachment[]> | undefined;
  /** Of its attachments, the first few. */
  attachedNodes?: readonly { name: string; reading: Reading<ClusterNode> }[] | undefined;
  /** Pods with a node that name its former claim, where it is attached. */
  users?: Reading<Pod[]> | undefined;
  /** Snapshots of its storage; read where the driver says that the storage is needed. */
  taken?: Reading<SnapshotContent[]> | undefined;
  events?: Reading<ClusterEvent[]> | undefined;
  provisioner?: ProvisionerFacts | undefined;
  /** The node whose provisioner created the volume, in node deployment. */
  node?: { name: string; reading: Reading<KubeObject> } | undefined;
  /** That the driver gets for a deletion; read once one has failed. */
  secret?: { reference: SecretReference; reading: Reading<KubeObject> } | undefined;
  /** The Pod of the provisioner whose last attempt has failed. */
  driverPod?: DriverPod | undefined;
}

/** The identity of the process that created a volume, which in node deployment ends in the name of its node. */
const identityKey = 'storage.kubernetes.io/csiProvisionerIdentity';
/** On a volume: the Secret that its deletion needs; empty where it needs none. */
const secretKey = 'volume.kubernetes.io/provisioner-deletion-secret';
/** Of in-tree plugins, until their storage is deleted. */
const inTreeFinalizer = 'kubernetes.io/pv-controller';
/** A volume is rarely attached to more. */
const maxNodes = 3;

/** The provisioner that deletes the storage of a volume; empty where the volume names none. */
export function deleterOf({ metadata, spec }: PersistentVolume): string {
  const { annotations = {} } = metadata;
  return annotations[migratedToKey] ?? annotations[provisionedByKey] ?? spec.csi?.driver ?? '';
}

/** Whether the storage is to be deleted now: without its finalizer the provisioner is done with a volume that is being deleted. */
export function isToBeDeleted({ metadata, spec, status }: PersistentVolume): boolean {
  const { deletionTimestamp, finalizers = [] } = metadata;
  const isDone =
    deletionTimestamp !== undefined && ![volumeFinalizer, inTreeFinalizer].some((each) => finalizers.includes(each));
  const isReleased = status?.phase === 'Released' || status?.phase === 'Failed';
  return isReleased && spec.persistentVolumeReclaimPolicy === 'Delete' && !isDone;
}

/**
 * At most twelve requests, and one for each further 2,000 VolumeAttachments of the cluster or Pods of its former namespace; one for a
 * volume that is bound, or kept on purpose.
 */
export async function readVolumeFacts(
  volume: PersistentVolume,
  { reader, now }: { reader: ClusterReader; now: () => number },
): Promise<VolumeFacts> {
  const { claimRef, persistentVolumeReclaimPolicy } = volume.spec;
  const readClaim = async (): Promise<Pick<VolumeFacts, 'claim'>> => {
    const { namespace = '', name = '' } = claimRef ?? {};
    return { claim: await reader.get<PersistentVolumeClaim>(persistentVolumeClaims, { namespace, name }) };
  };
  if (volume.status?.phase === 'Bound') return { volume, ...(await readClaim()), nowMs: now() };
  if (!isToBeDeleted(volume) && volume.metadata.deletionTimestamp === undefined) {
    const isRecycled = persistentVolumeReclaimPolicy === 'Recycle' && claimRef !== undefined;
    if (isRecycled) return { volume, events: await readEvents(volume, reader), nowMs: now() };
    const isReleased = volume.status?.phase === 'Released' && claimRef !== undefined;
    return { volume, ...(isReleased && (await readClaim())), nowMs: now() };
  }
  const node = nodeOf(volume);
  const [attached, about, provisioner, reading] = await Promise.all([
    readAttachments(volume.metadata.name, reader),
    readEvents(volume, reader),
    readDeleter(volume, reader),
    node === undefined ? undefined : reader.exists(nodes, { name: node }),
  ]);
  const { failed } = deletionHistory(found(about) ?? []);
  const [attachedNodes, users, taken, secret, driverPod] = await Promise.all([
    readNodes(found(attached) ?? [], reader),
    found(attached)?.length === 0 ? undefined : readUsers(volume, reader),
    failed !== undefined && stillNeeded.test(failed.text) ? readTaken(volume, reader) : undefined,
    failed && readSecret(volume, reader),
    failed && readDriverPod(failed, provisioner, reader),
  ]);
  return {
    volume,
    nowMs: now(),
    attachments: attached,
    attachedNodes,
    users,
    taken,
    events: about,
    provisioner,
    node: node === undefined || reading === undefined ? undefined : { name: node, reading },
    secret,
    driverPod,
  };
}

function readEvents({ metadata }: PersistentVolume, reader: ClusterReader): Promise<Reading<ClusterEvent[]>> {
  return reader.list<ClusterEvent>(events, {
    namespace: 'default', // where events about cluster-wide objects are
    fieldSelector: `involvedObject.uid=${metadata.uid ?? ''}`,
  });
}

async function readDeleter(volume: PersistentVolume, reader: ClusterReader): Promise<ProvisionerFacts | undefined> {
  const deleter = deleterOf(volume);
  return deleter === '' ? undefined : await readProvisioner(deleter, reader);
}

/** With what drivers refuse to delete storage on which other storage depends (CSI specification, "DeleteVolume Errors": `FAILED_PRECONDITION`). */
export const stillNeeded =
  /code = FailedPrecondition |code = (?:Internal|Unknown) .*\b(?:in use|still attached|busy)\b|(?:code = (?:Internal|Unknown) |^(?!.*code = \w+ desc = )).*\b(?:has|have|with|dependent) (?:\d+ )?(?:existing )?(?:snapshots?|clones?|children)\b/is;

/** Dynamically taken ones: those that were imported do not name a volume. */
function readTaken({ spec }: PersistentVolume, reader: ClusterReader): Promise<Reading<SnapshotContent[]>> {
  const { driver, volumeHandle } = spec.csi ?? {};
  return reader.select<SnapshotContent>(
    snapshotContents,
    ({ spec }) =>
      spec?.driver === driver && spec?.source?.volumeHandle !== undefined && spec.source.volumeHandle === volumeHandle,
  );
}

/** The API server selects attachments by nothing but their name. */
export function readAttachments(volumeName: string, reader: ClusterReader): Promise<Reading<Attachment[]>> {
  return reader.select<Attachment>(attachments, ({ spec }) => spec?.source?.persistentVolumeName === volumeName);
}

async function readNodes(
  attached: readonly Attachment[],
  reader: ClusterReader,
): Promise<{ name: string; reading: Reading<ClusterNode> }[]> {
  const names = [...new Set(attached.map(({ spec }) => spec?.nodeName ?? ''))].slice(0, maxNodes);
  return await Promise.all(
    names.map(async (name) => ({ name, reading: await reader.get<ClusterNode>(nodes, { name }) })),
  );
}

/** Pods that name a claim of the name to which the volume was bound. */
async function readUsers({ spec }: PersistentVolume, reader: ClusterReader): Promise<Reading<Pod[]> | undefined> {
  const { namespace = '', name = '' } = spec.claimRef ?? {};
  if (name === '') return undefined;
  return await reader.select<Pod>(pods, (pod) => usesClaim(pod, name), { namespace, fieldSelector: 'spec.nodeName!=' });
}

/** Of a volume that an administrator created, the class names it, which is not read. */
async function readSecret({ metadata }: PersistentVolume, reader: ClusterReader): Promise<VolumeFacts['secret']> {
  const { [`${secretKey}-name`]: name = '', [`${secretKey}-namespace`]: namespace = '' } = metadata.annotations ?? {};
  if (name === '' || namespace === '') return undefined;
  return { reference: { name, namespace }, reading: await reader.exists(secrets, { name, namespace }) };
}

/** The node whose provisioner alone may delete the volume; undefined where any may. */
function nodeOf({ spec }: PersistentVolume): string | undefined {
  const identity = spec.csi?.volumeAttributes?.[identityKey] ?? '';
  const end = `-${spec.csi?.driver ?? ''}-`;
  const at = identity.indexOf(end);
  return at === -1 ? undefined : identity.slice(at + end.length);
}
