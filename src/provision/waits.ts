/** Which claims and volumes wait for a change of which object, so that the change has them synced again. */

/**
 * What an attempt depended on when it ended without a volume.
 *
 * - `class/NAME`: that StorageClass is created, replaced or edited.
 * - `gone/NAME`: that PersistentVolume is deleted.
 * - `volume/NAME`: that PersistentVolume is deleted, or its owner or phase changes.
 * - `name/NAME`: the last open record for a volume of that name is closed.
 */
type ClaimWait = `${'class' | 'gone' | 'volume' | 'name'}/${string}`;

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

/** A volume that waits. */
export interface Waiter {
  name: string;
  uid: string;
}

interface Wait {
  readonly uid: string;
  /** Names of the volumes whose change has it synced again. */
  readonly on: Set<string>;
  /** What was recorded last, and when. */
  cause: string;
  recordedMs: number;
  /** What it waits for, in words; empty: nothing was settled yet. */
  text: string;
}

/** Time after which a cause is recorded again, in milliseconds: the API server deletes events after an hour. */
const repeatMs = 30 * 60_000;

export class DeletionWaits {
  /** By the name of the volume that waits. */
  readonly #waits = new Map<string, Wait>();
  /** Names of the volumes that wait, by the name of the other one. */
  readonly #waiters = new Map<string, Set<string>>();

  /** The volume waits for another one as well, from now on. */
  add(volume: Waiter, other: string): void {
    this.#of(volume).on.add(other);
    const waiters = this.#waiters.get(other);
    if (waiters === undefined) this.#waiters.set(other, new Set([volume.name]));
    else waiters.add(volume.name);
  }

  /** The volume waits for this one alone. @returns whether the cause is to be recorded: it is new, or was recorded long ago. */
  settle(
    volume: Waiter,
    other: string,
    { cause, text, nowMs }: { cause: string; text: string; nowMs: number },
  ): boolean {
    const wait = this.#of(volume);
    wait.text = text;
    for (const each of wait.on) if (each !== other) this.#unlink(volume.name, each);
    wait.on.clear();
    this.add(volume, other);
    const isDue = wait.cause !== cause || nowMs - wait.recordedMs >= repeatMs;
    if (isDue) Object.assign(wait, { cause, recordedMs: nowMs });
    return isDue;
  }

  /** What was settled last for a volume that waits, in words. */
  text(name: string): string | undefined {
    const { text = '' } = this.#waits.get(name) ?? {};
    return text === '' ? undefined : text;
  }

  /** What a volume waits for. */
  on(name: string): ReadonlySet<string> {
    return this.#waits.get(name)?.on ?? none;
  }

  /** The volumes that wait for this one. */
  waiters(other: string): Waiter[] {
    const names = this.#waiters.get(other);
    return names === undefined ? [] : [...names].map((name) => ({ name, uid: this.#waits.get(name)?.uid ?? '' }));
  }

  /** The volume waits for none. Safe to repeat. */
  delete(name: string): void {
    for (const other of this.on(name)) this.#unlink(name, other);
    this.#waits.delete(name);
  }

  /** A volume of the same name, but another one, waits for something of its own. */
  #of({ name, uid }: Waiter): Wait {
    const known = this.#waits.get(name);
    if (known?.uid === uid) return known;
    this.delete(name);
    const wait = { uid, on: new Set<string>(), cause: '', recordedMs: -Infinity, text: '' };
    this.#waits.set(name, wait);
    return wait;
  }

  #unlink(name: string, other: string): void {
    const waiters = this.#waiters.get(other);
    waiters?.delete(name);
    if (waiters?.size === 0) this.#waiters.delete(other);
  }
}

const none: ReadonlySet<string> = new Set();
