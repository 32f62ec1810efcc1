/** Reads what is needed to explain why a volume stays. */
import type { KubeObject } from '../kube/kube-object.ts';
import { migratedToKey, provisionedByKey } from '../provision/keys.ts';
import type { PersistentVolume } from '../provision/objects.ts';
import { type Attachment, attachments, type ClusterEvent, events, nodes } from './cluster-objects.ts';
import type { ClusterReader, Reading } from './cluster-reader.ts';
import { type ProvisionerFacts, readProvisioner } from './provisioner-facts.ts';

/** What was read; what the volume's state does not require is absent. */
export interface VolumeFacts {
  /** The time of the API server, in milliseconds since the epoch. */
  nowMs: number;
  volume: PersistentVolume;
  /** Of this volume. */
  attachments?: Reading<Attachment[]> | undefined;
  events?: Reading<ClusterEvent[]> | undefined;
  provisioner?: ProvisionerFacts | undefined;
  /** The node whose provisioner created the volume, in node deployment. */
  node?: { name: string; reading: Reading<KubeObject> } | undefined;
}

/** The identity of the process that created a volume, which in node deployment ends in the name of its node. */
const identityKey = 'storage.kubernetes.io/csiProvisionerIdentity';

/** The provisioner that deletes the storage of a volume; empty where the volume names none. */
export function deleterOf({ metadata, spec }: PersistentVolume): string {
  const { annotations = {} } = metadata;
  return annotations[migratedToKey] ?? annotations[provisionedByKey] ?? spec.csi?.driver ?? '';
}

/** Whether the storage is to be deleted now. */
export function isToBeDeleted({ spec, status }: PersistentVolume): boolean {
  return (
    (status?.phase === 'Released' || status?.phase === 'Failed') && spec.persistentVolumeReclaimPolicy === 'Delete'
  );
}

/** At most seven requests, and one for each further 2,000 VolumeAttachments of the cluster; none for a volume that is in use or kept on purpose. */
export async function readVolumeFacts(
  volume: PersistentVolume,
  { reader, now }: { reader: ClusterReader; now: () => number },
): Promise<VolumeFacts> {
  if (!isToBeDeleted(volume)) {
    const isHeld = volume.metadata.deletionTimestamp !== undefined && volume.status?.phase !== 'Bound';
    if (!isHeld) return { volume, nowMs: now() };
    const [attached, about, provisioner] = await Promise.all([
      readAttachments(volume, reader),
      readEvents(volume, reader),
      readDeleter(volume, reader),
    ]);
    return { volume, nowMs: now(), attachments: attached, events: about, provisioner };
  }
  const node = nodeOf(volume);
  const [attached, about, provisioner, reading] = await Promise.all([
    readAttachments(volume, reader),
    readEvents(volume, reader),
    readDeleter(volume, reader),
    node === undefined ? undefined : reader.exists(nodes, { name: node }),
  ]);
  return {
    volume,
    nowMs: now(),
    attachments: attached,
    events: about,
    provisioner,
    node: node === undefined || reading === undefined ? undefined : { name: node, reading },
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

/** The API server selects attachments by nothing but their name. */
function readAttachments({ metadata }: PersistentVolume, reader: ClusterReader): Promise<Reading<Attachment[]>> {
  return reader.select<Attachment>(attachments, ({ spec }) => spec?.source?.persistentVolumeName === metadata.name);
}

/** The node whose provisioner alone may delete the volume; undefined where any may. */
function nodeOf({ spec }: PersistentVolume): string | undefined {
  const identity = spec.csi?.volumeAttributes?.[identityKey] ?? '';
  const end = `-${spec.csi?.driver ?? ''}-`;
  const at = identity.indexOf(end);
  return at === -1 ? undefined : identity.slice(at + end.length);
}
