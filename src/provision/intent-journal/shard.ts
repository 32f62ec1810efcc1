import { orderOf } from '../../kube/kube-object.ts';
import type { Protection } from './intent-journal.ts';
import { HeldEntries, type JournalEntry, withHead } from './journal-entry.ts';
import { headerKey, type ShardContents, type ShardHeader } from './shard-contents.ts';
import type { ShardObject } from './shard-storage.ts';

/** Somebody who waits until a record is durable. */
export interface Waiter {
  uid: string;
  resolve(how: Protection): void;
  reject(error: Error): void;
}

/** One write: what it changes, and who waits for it. */
export interface ShardWrite {
  sequence: number;
  entries: Record<string, string>;
  discard: string;
  bytes: number;
  changes: Map<string, JournalEntry | undefined>;
  waiters: Waiter[];
  adopted: string[];
  discarded: string[];
}

/** Room for the header, and for what others add, in bytes. */
const reservedBytes = 2048;

/**
 * One shard: what it is to hold, and what the server is known to have of it. Only its methods change it: all others see a `Shard`.
 */
export class ShardState {
  readonly index: number;
  readonly #held = new HeldEntries();
  readonly #stored = new Map<string, JournalEntry>();
  readonly #changed = new Set<string>();
  readonly #adopting = new Set<string>();
  /** What it is to hold, by UID of the claim. */
  readonly wanted = this.#held.byUid;
  /** What the server has, as far as is known. */
  readonly stored: ReadonlyMap<string, JournalEntry> = this.#stored;
  /** UIDs whose wanted state is not stored yet. */
  readonly changed: ReadonlySet<string> = this.#changed;
  /** Changed UIDs whose records are taken over from a process that has been silent. */
  readonly adopting: ReadonlySet<string> = this.#adopting;
  /** Changed UIDs whose records an operator discards. */
  readonly #discarding = new Set<string>();
  #waiters: Waiter[] = [];
  /** The object as last read or written; undefined where there is none. */
  object: ShardObject | undefined;
  header: ShardHeader | undefined;
  /** The value of the operator's annotation after the next write. */
  discard = '';
  /** Entries that are not ours, or cannot be read: they stay as they are. */
  kept: ReadonlyMap<string, string> = new Map();
  /** Names of other provisioners with a record here, by the UID of its claim. */
  ofOtherProvisioners: ReadonlyMap<string, string> = new Map();
  /** A request for it is under way. */
  busy = false;
  /** It was written, or created, by this process. */
  isOwn = false;
  /** Its object was just created by this process, which may have been overtaken by another one meanwhile. */
  isNew = false;
  /** To be written although no record has changed. */
  #touched = false;
  /** To be written at once. */
  urgent = false;
  /** Since when it differs from what is stored, in monotonic milliseconds. */
  dirtySinceMs = 0;
  /** In monotonic milliseconds. */
  writtenAtMs = 0;
  /** Bytes of stored records that are no longer wanted. */
  deadBytes = 0;
  /** Of the last write of this process that is known to be carried out. */
  #written = { sequence: 0, version: NaN };
  #keptBytes = 0;

  constructor(index: number) {
    this.index = index;
  }

  /** Of everything that it is to hold, as Kubernetes counts the size of annotations. */
  get bytes(): number {
    return reservedBytes + this.#held.bytes + this.#keptBytes;
  }

  /** An operator wants no new volume to be begun. */
  get isDraining(): boolean {
    return (this.object?.drain ?? '') !== '';
  }

  get isDirty(): boolean {
    return this.#touched || this.#changed.size > 0;
  }

  /** Its size with these as well. */
  bytesWith(entryBytes: number, shared: ReadonlyMap<string, number>): number {
    return this.bytes + this.#held.bytesOf(entryBytes, shared);
  }

  /** Sets what is to be held for a claim; the server does not know it yet. */
  want(uid: string, entry: JournalEntry | undefined, nowMs: number): void {
    if (!this.isDirty) this.dirtySinceMs = nowMs;
    if (entry === undefined && this.wanted.has(uid)) this.deadBytes += this.#stored.get(uid)?.bytes ?? 0;
    this.#held.set(uid, entry);
    this.#changed.add(uid);
  }

  /** Holds a record of this process, which is written at once. */
  put(entry: JournalEntry, waiters: readonly Waiter[], nowMs: number): void {
    this.want(entry.uid, entry, nowMs);
    this.#adopting.delete(entry.uid);
    this.#discarding.delete(entry.uid);
    this.#waiters.push(...waiters);
    this.urgent = true;
  }

  /** Takes over the record of another process. */
  adopt(entry: JournalEntry, nowMs: number): void {
    this.want(entry.uid, entry, nowMs);
    this.#adopting.add(entry.uid);
    this.urgent = true;
  }

  /** A record of this process is closed. */
  remove(uid: string, nowMs: number): void {
    this.want(uid, undefined, nowMs);
    this.#adopting.delete(uid);
  }

  /** An operator has a record closed. */
  discardRecord(uid: string, nowMs: number): void {
    this.want(uid, undefined, nowMs);
    this.#discarding.add(uid);
    this.urgent = true;
  }

  /** Changes the operator's annotation. */
  setDiscard(uids: string, nowMs: number): void {
    this.discard = uids;
    this.touch(nowMs);
  }

  /** Has it written at once. */
  touch(nowMs: number): void {
    if (!this.isDirty) this.dirtySinceMs = nowMs;
    this.#touched = true;
    this.urgent = true;
  }

  /** Has it written at once. Resolves when that is done, or not possible. */
  written(nowMs: number): PromiseWithResolvers<Protection> {
    const waiting = Promise.withResolvers<Protection>();
    this.touch(nowMs);
    this.#waiters.push({ uid: '', ...waiting });
    return waiting;
  }

  /** What is to be written is written at once. */
  hurry(): void {
    if (this.isDirty) this.urgent = true;
  }

  /** A request for it begins; `release` ends it. */
  acquire(): void {
    this.busy = true;
  }

  release(): void {
    this.busy = false;
  }

  /** Records what the server has of a claim. */
  setStored(uid: string, entry: JournalEntry | undefined): void {
    if (entry === undefined) this.#stored.delete(uid);
    else this.#stored.set(uid, entry);
  }

  /** Records what was read of a claim, where nothing of ours is to be written. */
  adoptStored(uid: string, entry: JournalEntry | undefined): void {
    this.#held.set(uid, entry);
    this.#changed.delete(uid);
    this.#adopting.delete(uid);
    this.#discarding.delete(uid);
  }

  /** Records the object that was read, without its records. */
  adoptObject({ object, header, ofOtherProvisioners, kept, keptBytes }: ShardContents): void {
    this.object = object;
    this.header = header;
    this.discard = object.discard;
    this.ofOtherProvisioners = new Map([...ofOtherProvisioners].map(([uid, { provisioner }]) => [uid, provisioner]));
    this.kept = kept;
    this.#keptBytes = keptBytes;
    object.entries.clear(); // parsed, and large
  }

  /** Renews what a process owns once something of it is older than `dueMs`, in milliseconds; `wallMs` is the time now. */
  renew(writer: string, { dueMs, wallMs, nowMs }: { dueMs: number; wallMs: number; nowMs: number }): void {
    const isOlder = (entry: JournalEntry, ms: number): boolean =>
      entry.writer === writer && !(Math.abs(wallMs - Date.parse(entry.renewedAt)) < ms);
    const entries = [...this.wanted.values()];
    if (!entries.some((entry) => isOlder(entry, dueMs))) return;
    const renewedAt = new Date(wallMs).toISOString();
    for (const entry of entries)
      if (isOlder(entry, dueMs / 2)) this.want(entry.uid, withHead(entry, { renewedAt }), nowMs);
    this.urgent = true;
  }

  /** Takes everything that is to be written. */
  begin(sequence: number, header: ShardHeader): ShardWrite {
    const entries: Record<string, string> = { [headerKey]: JSON.stringify(header) };
    for (const [key, text] of this.kept) entries[key] = text;
    for (const [key, text] of this.#held.texts()) entries[key] = text;
    const write: ShardWrite = {
      sequence,
      entries,
      discard: this.discard,
      bytes: this.bytes,
      changes: new Map([...this.#changed].map((uid) => [uid, this.wanted.get(uid)])),
      waiters: this.#waiters,
      adopted: [...this.#adopting],
      discarded: [...this.#discarding],
    };
    this.#waiters = [];
    for (const set of [this.#changed, this.#adopting, this.#discarding]) set.clear();
    this.#touched = this.urgent = this.isNew = false;
    this.deadBytes = 0;
    this.header = header;
    return write;
  }

  /** Its object was created, by this process. */
  created(object: ShardObject, header: ShardHeader): void {
    this.object = object;
    this.header = header;
    this.isOwn = this.isNew = true;
  }

  /** Its object turned out to be one of this process. */
  recognized(): void {
    this.isOwn = true;
  }

  /** A request that writes it has succeeded. */
  answered(nowMs: number): void {
    this.writtenAtMs = nowMs;
  }

  /** The write created a new object: it is to be written again, as its header has the UID of the old one. */
  recreated(write: ShardWrite): void {
    this.undo(write);
    this.isNew = true;
  }

  /** Its object is gone. */
  vanished(): void {
    this.object = undefined;
  }

  /** The write was carried out. */
  complete({ sequence, changes }: ShardWrite): void {
    for (const [uid, entry] of changes) this.setStored(uid, entry);
    this.isOwn = true;
    this.#written = { sequence, version: orderOf(this.object?.rest.metadata.resourceVersion) };
  }

  /** Whether what was read is older than what this process has written: the API server has gone back to an earlier state. */
  isRewound({ object, header }: ShardContents, writer: string): boolean {
    const { sequence, version } = this.#written;
    const isEarlier = header?.writer === writer && header.sequence < sequence;
    return isEarlier || orderOf(object.rest.metadata.resourceVersion) < version;
  }

  /** The write was not carried out, or nobody knows: all of it is to be written again, unless it has changed since. */
  undo(write: ShardWrite): void {
    for (const uid of write.changes.keys()) this.#changed.add(uid);
    for (const uid of write.adopted) this.#adopting.add(uid);
    for (const uid of write.discarded) this.#discarding.add(uid);
    this.#waiters = [...write.waiters, ...this.#waiters];
    this.#touched = true;
  }

  /** Takes those who wait for a claim's record, or for anything. */
  takeWaiters(uid?: string): Waiter[] {
    const taken = this.#waiters.filter((waiter) => uid === undefined || waiter.uid === uid);
    this.#waiters = this.#waiters.filter((waiter) => !taken.includes(waiter));
    return taken;
  }
}

/** A shard as everything outside of `ShardState` sees it. */
export type Shard = Readonly<ShardState>;
