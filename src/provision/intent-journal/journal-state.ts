import { type JournalEntry, sharedBytes } from './journal-entry.ts';
import { maxShards } from './shard-contents.ts';
import { type Shard, ShardState, type Waiter } from './shard.ts';

/** A journal grows by at most so many shards at once. */
export const numbersAtOnce = 8;

/** Records may grow a little after they were placed; with the prefixes of the keys this stays below the server's 256 KiB. */
const maxGrownBytes = 230 * 1024;

/** A new record that has no shard yet. */
interface Unplaced {
  entry: JournalEntry;
  waiters: Waiter[];
}

/** The shards of a journal, where each claim's record is, and who waits for it. Sends nothing, and starts no write. */
export class JournalState {
  readonly #shards = new Map<number, Shard>();
  readonly #leftAlone = new Set<number>();
  readonly #home = new Map<string, Shard>();
  readonly #unplaced = new Map<string, Unplaced>();
  /** By number; the numbers in another format are left out. */
  readonly byNumber: ReadonlyMap<number, Shard> = this.#shards;
  /** Numbers in another format: never written. */
  readonly leftAlone: ReadonlySet<number> = this.#leftAlone;
  /** The shard of each claim's record, also while its removal is not written yet. */
  readonly home: ReadonlyMap<string, Shard> = this.#home;
  /** New records that have no shard yet, by UID of the claim. */
  readonly unplaced: ReadonlyMap<string, Readonly<Unplaced>> = this.#unplaced;
  #count = 1;
  #rootNumber = 0;

  /** How many numbers are in use, once the first shard's next write is done. */
  get count(): number {
    return this.#count;
  }

  /** The first shard that can be used: it says how many there are. */
  get root(): Shard {
    const root = this.#shards.get(this.#rootNumber);
    if (root === undefined) throw new Error('the journal was not read yet');
    return root;
  }

  setRoot(number: number): void {
    this.#rootNumber = number;
    this.countAtLeast(Math.max(this.root.header?.shards ?? 0, number + 1));
  }

  countAtLeast(count: number): void {
    this.#count = Math.max(this.#count, count);
  }

  add(number: number): Shard {
    const shard = new ShardState(number);
    this.#shards.set(number, shard);
    return shard;
  }

  leaveAlone(number: number): void {
    this.#leftAlone.add(number);
  }

  /** The record that the shards are to hold for a claim. */
  entryOf(uid: string): JournalEntry | undefined {
    return this.#home.get(uid)?.wanted.get(uid);
  }

  /** The name of another provisioner that has a record of the claim. */
  otherProvisionerOf(uid: string): string | undefined {
    for (const { ofOtherProvisioners } of this.all()) {
      const name = ofOtherProvisioners.get(uid);
      if (name !== undefined) return name;
    }
    return undefined;
  }

  /** Whether there is room for a record, which stays in the shard where it is. */
  hasRoom(entry: JournalEntry): boolean {
    const shard = this.#home.get(entry.uid);
    if (shard === undefined) return loneBytes(entry) <= maxShardBytes;
    const grownBytes = entry.bytes - (shard.wanted.get(entry.uid)?.bytes ?? 0);
    return shard.bytesWith(grownBytes, sharedBytes([entry])) <= maxGrownBytes;
  }

  /** A new record, or a changed one, which is written at once. */
  put(entry: JournalEntry, waiters: Waiter[], nowMs: number): void {
    const shard = this.#home.get(entry.uid);
    if (shard === undefined) this.#unplaced.set(entry.uid, { entry, waiters });
    else shard.put(entry, waiters, nowMs);
  }

  /** Changes a record where there is room for it. */
  revise(entry: JournalEntry, nowMs: number): void {
    const unplaced = this.#unplaced.get(entry.uid);
    if (unplaced !== undefined) unplaced.entry = entry;
    else if (this.hasRoom(entry)) this.#home.get(entry.uid)?.want(entry.uid, entry, nowMs);
  }

  /** Drops a new record that has no shard yet. @returns who has waited for it. */
  dropUnplaced(uid: string): Waiter[] {
    const waiters = this.#unplaced.get(uid)?.waiters ?? [];
    this.#unplaced.delete(uid);
    return waiters;
  }

  /** Moves new records to the shard that, as was read meanwhile, has a record of their claim. */
  placeKnown(nowMs: number): void {
    for (const [uid, { entry, waiters }] of this.#unplaced) {
      if (!this.#home.has(uid)) continue;
      this.#unplaced.delete(uid);
      this.put(entry, waiters, nowMs);
    }
  }

  /** Gives new records a shard, in the order of their arrival. */
  place({ shard, count }: Exclude<Place, string>, nowMs: number): void {
    for (const { entry, waiters } of [...this.#unplaced.values()].slice(0, count)) {
      this.#home.set(entry.uid, shard);
      this.#unplaced.delete(entry.uid);
      this.put(entry, waiters, nowMs);
    }
  }

  /** A record of another process was read: the shard is its home, unless the claim has one elsewhere. @returns whether it is. */
  tryHome(shard: Shard, uid: string): boolean {
    if ((this.#home.get(uid) ?? shard) !== shard) return false;
    this.#home.set(uid, shard);
    return true;
  }

  /** The shard has no record of the claim any more. */
  forget(shard: Shard, uid: string): void {
    if (this.#home.get(uid) === shard) this.#home.delete(uid);
  }

  /** Takes everybody who waits. */
  takeWaiters(): Waiter[] {
    return [...this.takeUnplacedWaiters(), ...this.all().flatMap((shard) => shard.takeWaiters())];
  }

  /** Takes those who wait for a record that has no shard yet. */
  takeUnplacedWaiters(): Waiter[] {
    return [...this.#unplaced.values()].flatMap(({ waiters }) => waiters.splice(0));
  }

  /** There can be no more shards. */
  get isFull(): boolean {
    return this.count >= maxShards;
  }

  isRoot(shard: Shard): boolean {
    return shard.index === this.#rootNumber;
  }

  /** Numbers in use that were not read yet. */
  get unread(): number[] {
    return this.#unknown(this.count);
  }

  /** Enters more numbers in the first shard; they can be used when that is written. */
  grow(nowMs: number): void {
    const { root } = this;
    if (this.isFull || this.count > (root.header?.shards ?? 0) || root.busy) return; // else growth is on its way, or the first shard is being written
    this.#count = Math.min(maxShards, this.count + Math.max(1, Math.min(numbersAtOnce, this.count >> 1)));
    root.touch(nowMs);
  }

  /** The first shard is written: what is entered in it may be used. */
  addEntered(): void {
    for (const number of this.#unknown(this.root.header?.shards ?? 0)) this.add(number);
  }

  /** Drops the last numbers without an object that no journal can have entered: somebody has edited how many there are. */
  dropExcess(nowMs: number): void {
    const used = this.all().filter(({ object, wanted }) => object !== undefined || wanted.size > 0);
    const last = Math.max(this.#rootNumber, ...this.#leftAlone, ...used.map(({ index }) => index));
    const count = last + 1 + 2 * numbersAtOnce;
    if (count >= this.count) return;
    this.#count = count;
    for (const number of [...this.#shards.keys()]) if (number >= count) this.#shards.delete(number);
    this.root.touch(nowMs);
  }

  all(): Shard[] {
    return [...this.#shards.values()];
  }

  /** An operator wants no new volume to be begun. */
  get isDraining(): boolean {
    return this.all().some((shard) => shard.isDraining);
  }

  entries(): JournalEntry[] {
    return this.all().flatMap((shard) => [...shard.wanted.values()]);
  }

  #unknown(count: number): number[] {
    const numbers = Array.from({ length: count }, (_, number) => number);
    return numbers.filter((number) => !this.#shards.has(number) && !this.#leftAlone.has(number));
  }
}

/** Max size of a shard, in bytes; the API server refuses annotations of more than 256 KiB. */
export const maxShardBytes = 200 * 1024;
/** What may be written for each new record, in bytes. */
const maxBytesPerRecord = 8 * 1024;

/** Size up to which a shard takes new records where shards are filled in order, in bytes. */
const orderedShardBytes = 64 * 1024;

/** What a group of new records needs. */
interface Need {
  entryBytes: number;
  shared: Map<string, number>;
}

/**
 * Where a group of new records goes.
 *
 * - a shard, and how many of the group, from its beginning.
 * - `wait`: a shard that is being written will do.
 * - `grow`: a new shard is needed.
 */
type Place = { shard: Shard; count: number } | 'wait' | 'grow';

/**
 * Chooses the smallest shard, unless a new one means less to write.
 *
 * @param options.inOrder - chooses the first with room: processes that write side by side choose the same, and learn from the
 * conflict of their writes that both have a record of one claim.
 * @param options.isFull - there can be no more shards: each takes as much as it can hold.
 */
export function placeGroup(
  group: readonly JournalEntry[],
  shards: Iterable<Shard>,
  { inOrder, isFull = false }: { inOrder: boolean; isFull?: boolean },
): Place {
  let count = group.length;
  let need = needOf(group);
  while (count > 1 && aloneBytes(need) > maxShardBytes) {
    count = Math.ceil(count / 2);
    need = needOf(group.slice(0, count));
  }
  const alone = aloneBytes(need);
  const goal = inOrder ? orderedShardBytes : maxBytesPerRecord * count;
  const limit = isFull ? maxShardBytes : Math.min(maxShardBytes, Math.max(goal, 2 * alone));
  let best: Shard | undefined;
  let bestBytes = Infinity;
  let canWait = false;
  for (const shard of shards) {
    const bytes = shard.bytesWith(need.entryBytes, need.shared);
    if (bytes > limit && shard.wanted.size + shard.kept.size > 0) continue;
    if (inOrder) return shard.busy ? 'wait' : { shard, count };
    if (shard.busy) canWait = true;
    else if (bytes < bestBytes) [best, bestBytes] = [shard, bytes];
  }
  if (best !== undefined) return { shard: best, count };
  return canWait ? 'wait' : 'grow';
}

/** Size of a shard with nothing but this record. */
export function loneBytes(entry: JournalEntry): number {
  return aloneBytes(needOf([entry]));
}

function needOf(group: readonly JournalEntry[]): Need {
  return { entryBytes: group.reduce((sum, { bytes }) => sum + bytes, 0), shared: sharedBytes(group) };
}

const emptyShardBytes = 2048;

function aloneBytes({ entryBytes, shared }: Need): number {
  return emptyShardBytes + entryBytes + [...shared.values()].reduce((sum, bytes) => sum + bytes, 0);
}
