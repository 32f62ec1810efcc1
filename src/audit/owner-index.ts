/** The possible owners of storage that no record or PersistentVolume names exactly. */
import { isNameUnique } from '../provision/revoke/deletion-guard.ts';
import type { IndexedRecord } from './record-index.ts';

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
  /** Lengths of the names. */
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
export function mayMentionUid(text: string): boolean {
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
