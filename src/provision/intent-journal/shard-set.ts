import type { JournalEntry } from './journal-entry.ts';
import { Shard } from './shard.ts';
import { maxShards } from './shard-header.ts';

/** A journal grows by at most so many numbers at once. */
export const numbersAtOnce = 8;

/** The shards of a journal, and where each claim's record is. */
export class ShardSet {
  /** By number; the numbers in a newer format are left out. */
  readonly byNumber = new Map<number, Shard>();
  /** Numbers in a newer format: never written. */
  readonly newer = new Set<number>();
  /** The shard of each claim's record, also while its removal is not written yet. */
  readonly home = new Map<string, Shard>();
  /** How many numbers are in use, once the first shard's next write is done. */
  count = 1;
  #rootNumber = 0;

  /** The first shard that can be used: it says how many there are. */
  get root(): Shard {
    const root = this.byNumber.get(this.#rootNumber);
    if (root === undefined) throw new Error('the journal was not read yet');
    return root;
  }

  setRoot(number: number): void {
    this.#rootNumber = number;
    this.count = Math.max(this.count, this.root.header?.shards ?? 0, number + 1);
  }

  /** There can be no more. */
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
    if (this.isFull || this.count > (root.header?.shards ?? 0) || root.busy) return; // else on its way
    this.count = Math.min(maxShards, this.count + Math.max(1, Math.min(numbersAtOnce, this.count >> 1)));
    root.touch(nowMs, { urgent: true });
  }

  /** The first shard is written: what is entered in it may be used. */
  addEntered(): void {
    for (const number of this.#unknown(this.root.header?.shards ?? 0)) this.byNumber.set(number, new Shard(number));
  }

  /** Drops the last numbers without an object that no journal can have entered: somebody has edited how many there are. */
  dropExcess(nowMs: number): void {
    const used = this.all().filter(({ object, wanted }) => object !== undefined || wanted.size > 0);
    const last = Math.max(this.#rootNumber, ...this.newer, ...used.map(({ index }) => index));
    const count = last + 1 + 2 * numbersAtOnce;
    if (count >= this.count) return;
    this.count = count;
    for (const number of [...this.byNumber.keys()]) if (number >= count) this.byNumber.delete(number);
    this.root.touch(nowMs, { urgent: true });
  }

  all(): Shard[] {
    return [...this.byNumber.values()];
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
    return numbers.filter((number) => !this.byNumber.has(number) && !this.newer.has(number));
  }
}
