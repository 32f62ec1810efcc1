/** The intents that are open, or were closed a moment ago, by claim and by the name of the volume. */
import type { Clock } from '../../base/clock.ts';
import { type IntentRecord, isUnproved } from '../intent-journal/intent-journal.ts';
import { ProvisionError } from '../provisioner.ts';
import type { Intent } from './intent.ts';

/** The volume's name is in use by the intent of another claim. */
export class NameInUseError extends Error {
  override readonly name = 'NameInUseError';
}

/** The intents that are open, by claim and by the volume's name. */
export class IntentIndex {
  /** By claim UID. */
  readonly #open = new Map<string, Intent>();
  /** Claim UIDs by volume name; the first of them may work, the others wait. */
  readonly #byName = new Map<string, Set<string>>();

  /** Called with the name of a volume that `checkName` may allow from now on. */
  onNameFree: (volumeName: string) => void = () => undefined;

  get(uid: string): Intent | undefined {
    return this.#open.get(uid);
  }

  list(): IterableIterator<Intent> {
    return this.#open.values();
  }

  /** Those whose volume has this name, the one that may work first. */
  named(volumeName: string): Intent[] {
    return [...(this.#byName.get(volumeName) ?? [])].flatMap((uid) => this.#open.get(uid) ?? []);
  }

  has(intent: Intent): boolean {
    return this.#open.get(intent.record.claim.uid) === intent;
  }

  /** @throws {NameInUseError} when another claim's intent has the name, and came first. An unproved one does not count. */
  checkName(uid: string, name: string): void {
    const first = this.named(name).find(({ record }) => !isUnproved(record) || record.claim.uid === uid);
    if (first === undefined || first.record.claim.uid === uid) return;
    const { claim } = first.record;
    throw new NameInUseError(
      `the volume name ${JSON.stringify(name)} is in use for claim ${claim.namespace}/${claim.name} with UID ${claim.uid}`,
    );
  }

  add(intent: Intent): void {
    const { claim, volume } = intent.record;
    this.#open.set(claim.uid, intent);
    const holders = this.#byName.get(volume.name);
    if (holders === undefined) this.#byName.set(volume.name, new Set([claim.uid]));
    else holders.add(claim.uid);
  }

  /** @returns whether it was open. */
  remove(intent: Intent): boolean {
    const { claim, volume } = intent.record;
    if (!this.has(intent)) return false;
    this.#open.delete(claim.uid);
    const holders = this.#byName.get(volume.name);
    holders?.delete(claim.uid);
    if (holders?.size === 0) this.#byName.delete(volume.name);
    this.onNameFree(volume.name);
    return true;
  }

  /** Gives an intent another record of the same claim and volume. @returns whether it is open. */
  change(intent: Intent, record: IntentRecord): boolean {
    intent.record = record;
    const isOpen = this.has(intent);
    if (isOpen && isUnproved(record)) this.onNameFree(record.volume.name);
    return isOpen;
  }
}

/** Longer than the journal lets a removed record wait for its write, in milliseconds. */
const lifeMs = 120_000;

/** Names of volumes whose intents were closed lately, with the claims that they were for: their records may not be removed yet. */
export class RecentlyClosed {
  readonly #clock: Clock;
  /** In the order in which they were closed. */
  readonly #names = new Map<string, { uid: string; atMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(name: string, uid: string): void {
    const nowMs = this.#clock.monotonicMs();
    this.#names.delete(name);
    this.#names.set(name, { uid, atMs: nowMs });
    for (const [each, { atMs }] of this.#names) {
      if (nowMs - atMs < lifeMs) break;
      this.#names.delete(each);
    }
  }

  /** The claim that had the name last. */
  uidOf(name: string): string | undefined {
    return this.#names.get(name)?.uid;
  }

  /** The record of the claim that had the name is removed. */
  forget(name: string): void {
    this.#names.delete(name);
  }
}

/** This process sends nothing for the volume any more: its record is closed or another process's, or its claim is served or gone. */
export class VolumeAbandonedError extends ProvisionError {
  constructor(volumeName: string, why: string) {
    super(`volume ${JSON.stringify(volumeName)} is not worked on here any more: ${why}`, { state: 'no-change' });
  }
}
