import { orderOf } from '../../kube/client/resource-version.ts';
import { type JournalEntry, withHead } from './journal-entry.ts';
import type { ShardContents } from './shard-contents.ts';
import { headerKey, type ShardHeader } from './shard-header.ts';
import { damagedHeaderKey, type ShardObject } from './shard-storage.ts';

/** Somebody who waits until a record is durable. */
export interface Waiter {
  uid: string;
  resolve(how: 'durable' | 'unprotected'): void;
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

/** How much of a damaged header is kept, in characters; one that is not damaged is much shorter. */
const maxDamagedLength = 4096;

/** One shard: what it is to hold, and what the server is known to have of it. */
export class Shard {
  readonly index: number;
  /** What it is to hold, by UID of the claim. */
  readonly wanted = new Map<string, JournalEntry>();
  /** What the server has, as far as is known. */
  readonly stored = new Map<string, JournalEntry>();
  /** UIDs whose wanted state is not stored yet. */
  readonly changed = new Set<string>();
  /** Changed UIDs whose records are taken over from a process that has been silent. */
  readonly adopting = new Set<string>();
  /** Changed UIDs whose records an operator discards. */
  readonly discarding = new Set<string>();
  waiters: Waiter[] = [];
  /** The object as last read or written; undefined where there is none. */
  object: ShardObject | undefined;
  header: ShardHeader | undefined;
  /** What the operator's annotation is to be after the next write. */
  discard = '';
  /** Entries that are not ours, or cannot be read: they stay as they are. */
  kept = new Map<string, string>();
  /** When entries were renewed that do not say so themselves, by key. */
  #times: ReadonlyMap<string, string> = new Map();
  /** UIDs of claims for which another provisioner has a record here. */
  foreign: ReadonlySet<string> = new Set();
  /** A request for it is under way. */
  busy = false;
  /** It was written, or created, by this process. */
  isOwn = false;
  /** Its object was just created by this process, which may have been overtaken by another one meanwhile. */
  isNew = false;
  /** To be written although no record has changed. */
  touched = false;
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
  #entryBytes = 0;
  #sharedBytes = 0;
  #keptBytes = 0;
  readonly #shared = new Map<string, { text: string; bytes: number; users: number }>();

  constructor(index: number) {
    this.index = index;
  }

  /** Of everything that it is to hold, as Kubernetes counts the size of annotations. */
  get bytes(): number {
    return reservedBytes + this.#entryBytes + this.#sharedBytes + this.#keptBytes;
  }

  /** An operator wants no new volume to be begun. */
  get isDraining(): boolean {
    return (this.object?.drain ?? '') !== '';
  }

  get isDirty(): boolean {
    return this.touched || this.changed.size > 0;
  }

  /** Its size once it held these as well. */
  bytesWith(entryBytes: number, shared: ReadonlyMap<string, number>): number {
    let bytes = this.bytes + entryBytes;
    for (const [key, more] of shared) if (!this.#shared.has(key)) bytes += more;
    return bytes;
  }

  /** Sets what is to be held for a claim; the server does not know it yet. */
  want(uid: string, entry: JournalEntry | undefined, nowMs: number): void {
    if (!this.isDirty) this.dirtySinceMs = nowMs;
    if (entry === undefined && this.wanted.has(uid)) this.deadBytes += this.stored.get(uid)?.bytes ?? 0;
    this.#hold(uid, entry);
    this.changed.add(uid);
  }

  touch(nowMs: number, options: { urgent: boolean }): void {
    if (!this.isDirty) this.dirtySinceMs = nowMs;
    this.touched = true;
    this.urgent ||= options.urgent;
  }

  /** Records what was read of a claim, where nothing of ours is to be written. */
  adoptStored(uid: string, entry: JournalEntry | undefined): void {
    this.#hold(uid, entry);
    this.changed.delete(uid);
    this.adopting.delete(uid);
    this.discarding.delete(uid);
  }

  /** Records the object that was read, without its records. */
  adoptObject({ object, header, damage, foreign, unreadable, shared, times }: ShardContents): void {
    if (damage !== undefined) {
      object.rest.metadata.annotations = {
        ...object.rest.metadata.annotations,
        [damagedHeaderKey]: damage.text.slice(0, maxDamagedLength),
      };
    }
    this.object = object;
    this.header = header;
    this.discard = object.discard;
    this.foreign = new Set(foreign.keys());
    this.#times = times;
    // what cannot be read may need any shared value
    this.kept = new Map(unreadable.size === 0 ? [] : [...unreadable, ...shared]);
    for (const { key, text, shared: used } of foreign.values()) {
      this.kept.set(key, text);
      for (const [sharedKey, value] of used) this.kept.set(sharedKey, value);
    }
    this.#keptBytes = [...this.kept, ...Object.entries(object.rest.metadata.annotations ?? {})].reduce(
      (sum, [key, text]) => sum + Buffer.byteLength(key) + Buffer.byteLength(text),
      0,
    );
    for (const [key, time] of times) this.#keptBytes += key.length + time.length + 6; // in the header
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
  begin(sequence: number, given: ShardHeader): ShardWrite {
    const times = [...this.#times].filter(([key]) => this.kept.has(key) || this.wanted.get(key)?.renewedAt === '');
    const header = times.length === 0 ? given : { ...given, times: Object.fromEntries(times) };
    const entries: Record<string, string> = { [headerKey]: JSON.stringify(header) };
    for (const [key, text] of this.kept) entries[key] = text;
    for (const [key, { text }] of this.#shared) entries[key] = text;
    for (const { key, text } of this.wanted.values()) entries[key] = text;
    const write: ShardWrite = {
      sequence,
      entries,
      discard: this.discard,
      bytes: this.bytes,
      changes: new Map([...this.changed].map((uid) => [uid, this.wanted.get(uid)])),
      waiters: this.waiters,
      adopted: [...this.adopting],
      discarded: [...this.discarding],
    };
    this.waiters = [];
    for (const set of [this.changed, this.adopting, this.discarding]) set.clear();
    this.touched = this.urgent = false;
    this.deadBytes = 0;
    this.header = header;
    return write;
  }

  /** The write was carried out. */
  complete({ sequence, changes }: ShardWrite): void {
    for (const [uid, entry] of changes) {
      if (entry === undefined) this.stored.delete(uid);
      else this.stored.set(uid, entry);
    }
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
    for (const uid of write.changes.keys()) this.changed.add(uid);
    for (const uid of write.adopted) this.adopting.add(uid);
    for (const uid of write.discarded) this.discarding.add(uid);
    this.waiters = [...write.waiters, ...this.waiters];
    this.touched = true;
  }

  /** Takes those who wait for a claim's record, or for anything. */
  takeWaiters(uid?: string): Waiter[] {
    const taken = this.waiters.filter((waiter) => uid === undefined || waiter.uid === uid);
    this.waiters = this.waiters.filter((waiter) => !taken.includes(waiter));
    return taken;
  }

  #hold(uid: string, entry: JournalEntry | undefined): void {
    const old = this.wanted.get(uid);
    if (old === entry) return;
    if (entry !== undefined) {
      this.wanted.set(uid, entry);
      this.#entryBytes += entry.bytes;
      for (const [key, text] of entry.shared) this.#addShared(key, text);
    } else this.wanted.delete(uid);
    if (old === undefined) return;
    this.#entryBytes -= old.bytes;
    for (const key of old.shared.keys()) this.#dropShared(key);
  }

  #addShared(key: string, text: string): void {
    const known = this.#shared.get(key);
    if (known !== undefined) {
      known.users++;
      return;
    }
    const bytes = key.length + Buffer.byteLength(text);
    this.#shared.set(key, { text, bytes, users: 1 });
    this.#sharedBytes += bytes;
  }

  #dropShared(key: string): void {
    const known = this.#shared.get(key);
    if (known === undefined || --known.users > 0) return;
    this.#shared.delete(key);
    this.#sharedBytes -= known.bytes;
  }
}
