/** Storage that the driver has and no PersistentVolume names: whose it is, or may be. */
import { nextSlice, sliceSpent } from '../base/event-loop.ts';
import type { ControllerGetVolumeResponse__Output } from '../csi/generated/csi/v1/ControllerGetVolumeResponse.ts';
import type { StoredRecord } from '../provision/intent-journal/read-journal.ts';
import { isNameUnique } from '../provision/revoke/deletion-guard.ts';
import type { ClusterVolume, ClusterVolumes } from './cluster-volumes.ts';

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

/** A record or a PersistentVolume whose claim or name an id mentions. */
export interface PossibleOwner {
  /** UID of the claim; empty: none is known. */
  readonly uid: string;
  /** The name that the volume was created under. */
  readonly volumeName: string;
  /** Absent: it is a PersistentVolume. */
  readonly record?: IndexedRecord;
}

const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
const uuidInText = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/i;
/** Hexadecimal digits of a UID. */
const uidDigits = 32;
const longHex = /[0-9a-f]{32,}/g;
/** What stands between the groups of a UID, as drivers write it: many replace what their storage system does not allow. */
const joints = /[-_.]/g;
/** More owners than that say nothing more: names without UIDs may all be the same. */
const maxOwners = 4;

/**
 * Finds UIDs of claims anywhere in a text, with or without dashes and in any letter case, and names of volumes that contain no
 * whole UID (`--volume-name-uuid-length`) where no letter or digit continues them: `pvc-1` is in `vol-pvc-1`, not in `pvc-12`. In
 * doubt it finds too many: nothing is deleted because of what it finds, and what it finds is not deleted.
 */
export class OwnerIndex {
  readonly #byUid = new Map<string, PossibleOwner[]>();
  readonly #byName = new Map<string, PossibleOwner[]>();
  readonly #lengths = new Set<number>();

  add(owner: PossibleOwner): void {
    const uid = uidKey(owner.uid);
    if (uid !== undefined) push(this.#byUid, uid, owner);
    const name = owner.volumeName.toLowerCase();
    if (name === '' || (uid !== undefined && isNameUnique(name, owner.uid.toLowerCase()))) return;
    this.#lengths.add(name.length);
    push(this.#byName, name, owner);
  }

  /** The first few possible owners of storage with these texts. */
  mentionedIn(texts: Iterable<string>): PossibleOwner[] {
    const found = new Set<PossibleOwner>();
    for (const text of texts) {
      for (const owner of this.#mentioned(text.toLowerCase())) {
        found.add(owner);
        if (found.size === maxOwners) return [...found];
      }
    }
    return [...found];
  }

  *#mentioned(text: string): Iterable<PossibleOwner> {
    for (const digits of uidDigitsIn(text)) yield* this.#byUid.get(digits) ?? [];
    for (const length of this.#lengths) {
      for (let start = 0; start + length <= text.length; start++) {
        if (isWhole(text, start, start + length)) yield* this.#byName.get(text.slice(start, start + length)) ?? [];
      }
    }
  }
}

/** The claim's UID in the name of a volume, as it is by default; empty: none. */
export function uidInName(name: string): string {
  return uuidInText.exec(name)?.[0] ?? '';
}

/** Whether a text may contain the UID of a claim. */
function mayMentionUid(text: string): boolean {
  return text.toLowerCase().replaceAll(joints, '').search(longHex) >= 0;
}

/** Every run of digits that is as long as a UID: one may be within a longer run, and two may overlap. */
function* uidDigitsIn(text: string): Iterable<string> {
  for (const [run] of text.replaceAll(joints, '').matchAll(longHex)) {
    for (let start = 0; start + uidDigits <= run.length; start++) yield run.slice(start, start + uidDigits);
  }
}

/** Undefined for what Kubernetes does not give as a UID. */
function uidKey(uid: string): string | undefined {
  return uuid.test(uid) ? uid.toLowerCase().replaceAll('-', '') : undefined;
}

/** Neither end is within a word. */
function isWhole(text: string, start: number, end: number): boolean {
  return !isWithinWord(text, start) && !isWithinWord(text, end);
}

function isWithinWord(text: string, at: number): boolean {
  return isWordAt(text, at - 1) && isWordAt(text, at);
}

function isWordAt(text: string, at: number): boolean {
  const code = text.charCodeAt(at); // NaN outside
  return (code >= 97 && code <= 122) || (code >= 48 && code <= 57);
}

function push(map: Map<string, PossibleOwner[]>, key: string, owner: PossibleOwner): void {
  const others = map.get(key);
  if (others === undefined) map.set(key, [owner]);
  else if (others.length < maxOwners) others.push(owner);
}

/** A record, and the storage that was found for it. */
export interface IndexedRecord extends StoredRecord {
  /** Ids that the driver has, and no PersistentVolume. Of a record with a handle at most that one. */
  readonly listedIds: string[];
  /** Ids of other such storage, which may be the record's. */
  readonly candidateIds: string[];
}

/** Characters that Kubernetes allows in no object's name: drivers join the parts of their ids with them. */
const separators = /[^A-Za-z0-9._-]+/;

/**
 * Which records name which storage: by the handle or, where that is not known, by the volume's name, which many drivers use
 * as the id, or as a part of it.
 */
export class RecordIndex {
  readonly all: readonly IndexedRecord[];
  readonly #byHandle: ReadonlyMap<string, IndexedRecord[]>;
  readonly #byName: ReadonlyMap<string, IndexedRecord[]>;

  constructor(records: readonly StoredRecord[]) {
    this.all = records.map((each) => ({ ...each, listedIds: [], candidateIds: [] }));
    this.#byHandle = Map.groupBy(this.all, ({ record }) => record.handle ?? '');
    this.#byName = Map.groupBy(this.#byHandle.get('') ?? [], ({ record }) => record.volume.name);
  }

  /** The records that name the storage by its id. */
  withHandle(id: string): readonly IndexedRecord[] {
    return (id === '' ? undefined : this.#byHandle.get(id)) ?? [];
  }

  /** The records that name the storage. */
  naming(id: string): readonly IndexedRecord[] {
    const known = this.withHandle(id);
    if (known.length > 0 || this.#byName.size === 0) return known;
    const parts = new Set([id, ...id.split(separators)]);
    return [...parts].flatMap((part) => this.#byName.get(part) ?? []);
  }
}

/** What the driver says about a volume, in a list or by itself. */
export interface DriverVolume {
  /** To how many nodes it is attached. */
  readonly publishedNodes: number;
  /** Undefined: the driver does not say. */
  readonly capacityBytes: number | undefined;
  /** Texts of the context that may say whose it is. */
  readonly texts: readonly string[];
}

const maxTextLength = 256;
const maxTexts = 4;

/** Reads a response of ControllerGetVolume, or an entry of ListVolumes, which has the same fields. */
export function driverVolume({ volume, status }: ControllerGetVolumeResponse__Output): DriverVolume {
  const capacityBytes = Number(volume?.capacity_bytes ?? 0);
  return {
    publishedNodes: status?.published_node_ids?.length ?? 0,
    capacityBytes: capacityBytes > 0 ? capacityBytes : undefined,
    texts: tellingTexts(volume?.volume_context),
  };
}

/** Drivers keep in the context what `--extra-create-metadata` passes them. */
function tellingTexts(context: Readonly<Record<string, string>> = {}): string[] {
  const telling = Object.entries(context).filter(
    ([key, value]) => value.length <= maxTextLength && (/name$/i.test(key) || mayMentionUid(value)),
  );
  return telling.slice(0, maxTexts).map(([, value]) => value);
}
