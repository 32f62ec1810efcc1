/** Storage that the driver has and no PersistentVolume names. */
import { nextSlice, sliceSpent } from '../base/event-loop.ts';
import type { ClusterVolume, ClusterVolumes } from './cluster-volumes.ts';
import type { DriverVolume } from './driver-volume.ts';
import { OwnerIndex, type PossibleOwner, uidInName } from './owner-index.ts';
import type { RecordIndex } from './record-index.ts';

export interface Stranger extends DriverVolume {
  /** Its possible owners; empty where exactly one record names it. With possible owners it is neither called leaked nor deleted. */
  owners: readonly PossibleOwner[];
}

/** Of a volume that is listed twice, the entry that forbids its deletion counts. */
export function asStranger(volume: DriverVolume, before?: Stranger): Stranger {
  const publishedNodes = Math.max(volume.publishedNodes, before?.publishedNodes ?? 0);
  return { ...volume, publishedNodes, owners: before?.owners ?? [] };
}

/**
 * Finds the record of each volume, or else its possible owners, and notes it there. A record names a volume by the handle, or by
 * the volume's name if the volume mentions nothing else. In slices.
 */
export async function findOwners(
  strangers: ReadonlyMap<string, Stranger>,
  records: RecordIndex,
  volumes: () => Iterable<Omit<PossibleOwner, 'record'>>,
): Promise<void> {
  if (strangers.size === 0) return;
  const index = new OwnerIndex();
  for (const record of records.all) {
    if (sliceSpent()) await nextSlice();
    index.add({ uid: record.record.claim.uid, volumeName: record.record.volume.name, record });
  }
  for (const volume of volumes()) {
    if (sliceSpent()) await nextSlice();
    index.add(volume);
  }
  for (const [id, stranger] of strangers) {
    if (sliceSpent()) await nextSlice();
    noteOwners(id, stranger, { records, index });
  }
}

function noteOwners(
  id: string,
  stranger: Stranger,
  { records, index }: { records: RecordIndex; index: OwnerIndex },
): void {
  const byHandle = records.withHandle(id);
  if (byHandle.length > 0) {
    for (const record of byHandle) record.listedIds.push(id);
    return;
  }
  const [named, ...alsoNamed] = records.naming(id);
  const mentioned = index.mentionedIn([id, ...stranger.texts]);
  const others = mentioned.filter(({ record }) => record === undefined || record !== named);
  if (named !== undefined && alsoNamed.length === 0 && others.length === 0) {
    named.listedIds.push(id);
    return;
  }
  stranger.owners = mentioned;
  for (const { record } of mentioned) record?.candidateIds.push(id);
}

/** The PersistentVolumes of the list, as possible owners. */
export function* volumeOwners(volumes: ClusterVolumes): Iterable<Omit<PossibleOwner, 'record'>> {
  for (const first of volumes.handles()) {
    for (let each: ClusterVolume | undefined = first; each !== undefined; each = each.next) {
      yield volumeOwner(each);
    }
  }
}

/** Anybody may have chosen the name of a volume that was created by hand: only its claim counts. */
function volumeOwner({ name, claimUid, isOurs }: ClusterVolume): Omit<PossibleOwner, 'record'> {
  return { uid: claimUid === '' ? uidInName(name) : claimUid, volumeName: isOurs ? name : '' };
}
