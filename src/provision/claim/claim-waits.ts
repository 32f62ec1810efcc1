/** Which claims wait for a change of which object, so that the change has them synced again. */

/**
 * What an attempt depended on when it ended without a volume.
 *
 * - `class/NAME`: that StorageClass is created, replaced or edited.
 * - `gone/NAME`: that PersistentVolume is deleted.
 * - `volume/NAME`: that PersistentVolume is deleted, or its owner or phase changes.
 * - `name/NAME`: the last open record for a volume of that name is closed.
 */
export type ClaimWait = `${'class' | 'gone' | 'volume' | 'name'}/${string}`;

/** Indexed by claim UID and by what is waited for: a change costs one look-up, however many claims wait for something else. */
export class ClaimWaits<Wait extends string = ClaimWait> {
  readonly #onWake: (uid: string) => void;
  readonly #ofClaim = new Map<string, Set<Wait>>();
  readonly #claims = new Map<Wait, Set<string>>();

  /** @param onWake - has the claim synced again. */
  constructor(onWake: (uid: string) => void) {
    this.#onWake = onWake;
  }

  /** How many things are waited for. */
  get size(): number {
    return this.#claims.size;
  }

  /** The claim waits for this as well. To be called before it is read, so that no later change is missed. Safe to repeat. */
  add(uid: string, wait: Wait): void {
    addTo(this.#ofClaim, uid, wait);
    addTo(this.#claims, wait, uid);
  }

  /** The claim no longer waits for this; without `wait`, for anything. Safe to repeat. */
  delete(uid: string, wait?: Wait): void {
    for (const each of wait === undefined ? [...(this.#ofClaim.get(uid) ?? [])] : [wait]) {
      deleteFrom(this.#ofClaim, uid, each);
      deleteFrom(this.#claims, each, uid);
    }
  }

  /** It has changed: each claim that waits for it is synced again, once. */
  changed(wait: Wait): void {
    for (const uid of [...(this.#claims.get(wait) ?? [])]) {
      this.delete(uid, wait);
      this.#onWake(uid);
    }
  }
}

function addTo<K, V>(sets: Map<K, Set<V>>, key: K, value: V): void {
  const set = sets.get(key);
  if (set === undefined) sets.set(key, new Set([value]));
  else set.add(value);
}

function deleteFrom<K, V>(sets: Map<K, Set<V>>, key: K, value: V): void {
  const set = sets.get(key);
  set?.delete(value);
  if (set?.size === 0) sets.delete(key);
}
