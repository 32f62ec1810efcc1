/** Which volume waits for which other ones, so that a change of these has it synced again. */

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
