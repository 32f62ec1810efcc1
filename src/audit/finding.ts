/** Findings, and how they follow from what one look has found. Pure: sends no requests. */
import { compareBytes } from '../base/compare-bytes.ts';
import { nameList } from '../base/name-list.ts';
import { quantityBytes, QuantityError } from '../base/quantity.ts';
import type { StuckReason } from '../provision/intent-journal/intent-journal.ts';
import { recordState } from '../provision/intent-journal/read-journal.ts';
import type { ClusterVolume, ClusterVolumes } from './cluster-volumes.ts';
import type { Existence } from './driver-volumes.ts';
import type { DriverVolume, IndexedRecord, PossibleOwner, RecordIndex, Stranger } from './strangers.ts';

/**
 * What an audit says about one volume or record, the worst first.
 *
 * - `lost`: a PersistentVolume whose storage the driver does not have.
 * - `leaked`: storage without a PersistentVolume, named by a record that only an operator can close.
 * - `stuck`: such a record whose storage is not known, or may be kept on purpose as a PersistentVolume may have had it (`unproved`).
 * - `unverified`: a PersistentVolume whose storage was not found, which does not prove that it is gone.
 * - `shared`: storage that several PersistentVolumes have.
 * - `candidate`: storage without a PersistentVolume whose id mentions the claim of a record or of a PersistentVolume: it may be theirs.
 * - `unexplained`: storage without a PersistentVolume and without a record. It may belong to another cluster, or have been created by hand.
 * - `being-deleted`, `being-made`: the sidecar is working on it, according to the record.
 * - `foreign`: storage of a PersistentVolume that this provisioner did not create.
 */
const findingStates = [
  'lost',
  'leaked',
  'stuck',
  'unverified',
  'shared',
  'candidate',
  'unexplained',
  'being-deleted',
  'being-made',
  'foreign',
] as const;

export type FindingState = (typeof findingStates)[number];

export interface Finding {
  state: FindingState;
  /** Why the record is stuck. Absent: there is none, or it is not. */
  reason?: StuckReason;
  /** The driver's id. Absent where it is not known. */
  volumeId?: string;
  /** Names of the PersistentVolumes that have it. */
  persistentVolumes?: readonly string[];
  /** The name that the volume of a record was created under, and that its PersistentVolume would get. */
  volumeName?: string;
  /** `namespace/name`. */
  claim?: string;
  /** UID of the claim, which names the record. Absent where there is none. */
  record?: string;
  /** Since when the record is open, or the PersistentVolume is there, RFC 3339. Absent: unknown. */
  since?: string;
  /** As the driver says, or of the PersistentVolume. Absent: unknown. */
  capacityBytes?: number;
  detail: string;
}

/** States that need an operator. */
export const troubles: ReadonlySet<FindingState> = new Set<FindingState>(['lost', 'leaked', 'stuck']);

/** Findings of two looks with the same key are the same. */
export function findingKey({ state, volumeId, persistentVolumes, record }: Finding): string {
  return JSON.stringify([state, volumeId, persistentVolumes, record]);
}

/** The worst first, and within a state by id and name. */
function compareFindings(a: Finding, b: Finding): number {
  const rank = findingStates.indexOf(a.state) - findingStates.indexOf(b.state);
  return rank || compareBytes(sortText(a), sortText(b));
}

function sortText({ volumeId = '', persistentVolumes = [], record = '' }: Finding): string {
  return [volumeId, ...persistentVolumes, record].join('\0');
}

export interface Sighting {
  volumes: ClusterVolumes;
  records: RecordIndex;
  /** What the driver has and no PersistentVolume, by id. */
  strangers: ReadonlyMap<string, Stranger>;
  /** The driver lists its volumes; else nothing is known of those without a PersistentVolume. */
  isListed: boolean;
  /** How many volumes that list repeats: its pages overlap, so others may be missing from it. */
  repeated: number;
  /** What the driver said about single volumes, by id. */
  existence: ReadonlyMap<string, Existence>;
}

/** The findings, the worst first, and how much was compared. */
export interface Classified {
  findings: Finding[];
  /** PersistentVolumes whose storage is there. */
  inUse: number;
  /** PersistentVolumes of other nodes, about which the driver of this one says nothing. */
  elsewhere: number;
  /** PersistentVolumes about which a driver without LIST_VOLUMES and GET_VOLUME says nothing. */
  unchecked: number;
}

export function classify(sighting: Sighting): Classified {
  const { volumes, records, strangers } = sighting;
  const result: Classified = { findings: [], inUse: 0, elsewhere: 0, unchecked: 0 };
  for (const first of volumes.handles()) {
    const all = chain(first);
    for (const volume of all) addVolume(volume, sighting, result);
    if (all.length > 1 && first.handle !== '') result.findings.push(shared(all));
  }
  const named = new Set(records.all.flatMap(({ listedIds }) => listedIds));
  for (const [id, stranger] of strangers) {
    if (!named.has(id)) result.findings.push(unnamed(id, stranger));
  }
  for (const record of records.all) result.findings.push(...recordFindings(record, sighting));
  result.findings.sort(compareFindings);
  return result;
}

function addVolume(volume: ClusterVolume, sighting: Sighting, result: Classified): void {
  if (volume.home === 'elsewhere') {
    result.elsewhere++;
    return;
  }
  const known = volume.isListed ? 'there' : sighting.existence.get(volume.handle);
  if (known === 'there') {
    result.inUse++;
    if (!volume.isOurs) result.findings.push(about(volume, 'foreign', notOurs));
    return;
  }
  if (!sighting.isListed && known === undefined && volume.handle !== '') {
    result.unchecked++;
    return;
  }
  const doubt = known === 'gone' && volume.home === 'here' ? undefined : doubtAbout(volume, sighting);
  if (doubt !== undefined) result.findings.push(about(volume, 'unverified', doubt));
  else
    result.findings.push(about(volume, 'lost', `the driver does not have it; the PersistentVolume is ${volume.phase}`));
}

/** Why it proves nothing that the driver does not list a volume; undefined: it does. */
function doubtAbout(volume: ClusterVolume, { isListed, repeated }: Sighting): string | undefined {
  if (volume.handle === '') return 'the in-tree volume has no id that the driver knows';
  if (volume.home === 'unknown')
    return 'not listed; it may be on another node: run the audit there with --node-deployment';
  if (!isListed) return 'the driver gave no clear response about it';
  if (repeated > 0) return 'not listed; the driver listed others twice, so its list may be incomplete';
  if (volume.isInTree) return 'not listed; the driver may list an in-tree volume under another id';
  return volume.isOurs
    ? undefined
    : 'not listed; it is a static PersistentVolume, and the driver may not list such volumes';
}

function about(volume: ClusterVolume, state: Finding['state'], detail: string): Finding {
  const { name, handle, claim, createdAtSeconds } = volume;
  const capacityBytes = bytesOf(volume.capacity);
  return {
    state,
    ...(handle !== '' && { volumeId: handle }),
    persistentVolumes: [name],
    ...(claim !== '' && { claim }),
    ...(!Number.isNaN(createdAtSeconds) && { since: new Date(createdAtSeconds * 1000).toISOString() }),
    ...(capacityBytes !== undefined && { capacityBytes }),
    detail,
  };
}

/** Undefined: there is none, or it is invalid. */
function bytesOf(quantity: string): number | undefined {
  try {
    return quantity === '' ? undefined : Number(quantityBytes(quantity));
  } catch (error) {
    if (error instanceof QuantityError) return undefined;
    throw error;
  }
}

function shared(all: readonly ClusterVolume[]): Finding {
  return {
    state: 'shared',
    volumeId: all[0]?.handle ?? '',
    persistentVolumes: all.map(({ name }) => name).sort(),
    detail: 'several PersistentVolumes have this storage: when one with reclaim policy Delete is deleted, all lose it',
  };
}

function unnamed(volumeId: string, stranger: Stranger): Finding {
  const { publishedNodes, owners } = stranger;
  const attached = publishedNodes === 0 ? '' : `, and it is attached to ${publishedNodes} node(s)`;
  const facts = driverFacts(stranger);
  if (owners.length === 0) {
    const detail = `no PersistentVolume and no record refers to it${attached}`;
    return { state: 'unexplained', volumeId, ...facts, detail };
  }
  const names = owners.flatMap(({ record, volumeName }) => (record === undefined ? [volumeName] : []));
  const record = owners.find((owner) => owner.record !== undefined)?.record?.record;
  return {
    state: 'candidate',
    volumeId,
    ...(names.length > 0 && { persistentVolumes: names }),
    ...(record !== undefined && {
      volumeName: record.volume.name,
      claim: `${record.claim.namespace}/${record.claim.name}`,
      record: record.claim.uid,
      since: record.createdAt,
    }),
    ...facts,
    detail: `it may belong to ${owners.map(ownerText).join(', or to ')}${attached}`,
  };
}

function ownerText({ volumeName, record }: PossibleOwner): string {
  if (record === undefined) return `PersistentVolume ${volumeName}, which has other storage`;
  const { claim } = record.record;
  const { phase } = recordState(record);
  return `the record of claim ${claim.namespace}/${claim.name}, which is in phase ${phase}`;
}

function driverFacts({ capacityBytes }: Pick<DriverVolume, 'capacityBytes'>): Pick<Finding, 'capacityBytes'> {
  return capacityBytes === undefined ? {} : { capacityBytes };
}

/** One finding for each id that the record names, or one without. */
function recordFindings(indexed: IndexedRecord, sighting: Sighting): Finding[] {
  const { record, listedIds, candidateIds } = indexed;
  const factsOf = (id: string): Partial<Finding> => driverFacts(sighting.strangers.get(id) ?? unknownFacts);
  const common = {
    volumeName: record.volume.name,
    claim: `${record.claim.namespace}/${record.claim.name}`,
    record: record.claim.uid,
    since: record.createdAt,
  };
  const { handle = '' } = record;
  const { reason, waitsFor: why } = recordState(indexed);
  if (reason === undefined) {
    const isDeleted = record.phase === 'delete' || record.phase === 'revoke';
    const state = isDeleted ? 'being-deleted' : 'being-made';
    const volumeId = handle || listedIds[0];
    const named = volumeId === undefined ? {} : { volumeId, ...factsOf(volumeId) };
    return [{ state, ...named, ...common, detail: why }];
  }
  const detail = `${reason}: ${why}`;
  if (listedIds.length > 0) {
    const state = reason === 'unproved' ? 'stuck' : 'leaked';
    return listedIds.map((volumeId) => ({ state, reason, volumeId, ...common, ...factsOf(volumeId), detail }));
  }
  const rest = candidateIds.length > 0 ? candidatesText(candidateIds) : whereIsIt(handle, sighting);
  return [
    {
      state: 'stuck',
      reason,
      ...(handle !== '' && { volumeId: handle }),
      ...common,
      detail: `${detail}; ${rest}`,
    },
  ];
}

const unknownFacts = { capacityBytes: undefined };
const notOurs = 'the PersistentVolume was not created by this provisioner';
/** More ids do not help. */
const maxNamed = 3;

function candidatesText(ids: readonly string[]): string {
  return `these volumes may be its storage: ${nameList(ids, maxNamed)}`;
}

function whereIsIt(handle: string, { volumes, isListed, existence }: Sighting): string {
  const holder = volumes.with(handle);
  if (holder !== undefined) return `PersistentVolume ${holder.name} has its storage`;
  if (existence.get(handle) === 'gone') return 'the driver does not have its storage';
  if (!isListed) return 'whether its storage exists is not known';
  return handle === '' ? 'no listed id contains its name' : 'the driver does not list its storage';
}

function chain(first: ClusterVolume): ClusterVolume[] {
  const all: ClusterVolume[] = [];
  for (let each: ClusterVolume | undefined = first; each !== undefined; each = each.next) all.push(each);
  return all;
}
