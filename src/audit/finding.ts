import { compareBytes } from '../base/compare-bytes.ts';
import type { StuckReason } from '../provision/intent-journal/intent-journal.ts';

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
export function compareFindings(a: Finding, b: Finding): number {
  const rank = findingStates.indexOf(a.state) - findingStates.indexOf(b.state);
  return rank || compareBytes(sortText(a), sortText(b));
}

function sortText({ volumeId = '', persistentVolumes = [], record = '' }: Finding): string {
  return [volumeId, ...persistentVolumes, record].join('\0');
}
