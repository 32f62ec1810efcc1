import type { Clock } from '../../src/base/clock.ts';
import type { SandboxObject, Subscription } from './client.ts';
import { Revision, storeKey } from './revision.ts';

/** A reader of commits: called inside the commit, so it must only take note. */
type CommitListener = (change: Change) => void;

interface Shelf {
  readonly revisions: Map<string, Revision>;
  /** Sorted keys of `revisions`. */
  readonly keys: string[];
  readonly listeners: Set<CommitListener>;
  /** All revisions in order, until the next change. */
  sorted: Revision[] | undefined;
}

/** How many past lists are kept ready for the next page. */
const snapshotsKept = 16;

/**
 * All objects of the cluster under one revision counter, with the history of the latest changes. It knows no rules:
 * what comes in is stored as it is. Comparison and commit of a write are one synchronous step of the caller.
 */
export class Store {
  readonly #clock: Clock;
  readonly #history: History;
  readonly #shelves = new Map<string, Shelf>();
  readonly #allListeners = new Set<CommitListener>();
  readonly #snapshots = new Map<string, Revision[]>();
  #rv: number;

  constructor(options: { clock: Clock; historyLimit: number; historyAgeMs: number; firstRv: number }) {
    this.#clock = options.clock;
    this.#rv = options.firstRv;
    this.#history = new History({
      limit: options.historyLimit,
      maxAgeMs: options.historyAgeMs,
      firstRv: options.firstRv,
    });
  }

  /** The RV of the latest commit. */
  get rv(): number {
    return this.#rv;
  }

  /** Reads and watches below this RV are refused as expired. */
  get compactedRv(): number {
    this.#history.trim(this.#clock.monotonicMs());
    return this.#history.compactedRv;
  }

  get(storage: string, namespace: string, name: string): Revision | undefined {
    return this.#shelf(storage).revisions.get(storeKey(namespace, name));
  }

  /** How many objects a storage holds. */
  count(storage: string): number {
    return this.#shelf(storage).revisions.size;
  }

  /** The current objects by namespace and name; do not change the array. */
  list(storage: string, namespace?: string): readonly Revision[] {
    const shelf = this.#shelf(storage);
    if (namespace === undefined) return (shelf.sorted ??= shelf.keys.map((key) => found(shelf, key)));
    const start = lowerBound(shelf.keys, storeKey(namespace, ''));
    const end = lowerBound(shelf.keys, `${namespace}\x01`);
    return shelf.keys.slice(start, end).map((key) => found(shelf, key));
  }

  /**
   * The objects as they were at `rv`, or `undefined` if that is no longer known; `rv` must not lie ahead. The response
   * is kept, so that the pages of one list do not each undo the history.
   */
  listAt(storage: string, rv: number): readonly Revision[] | undefined {
    if (rv < this.compactedRv) return undefined;
    const id = `${storage}@${rv}`;
    const kept = this.#snapshots.get(id);
    if (kept !== undefined) return kept;
    const changes = this.#history.since(rv).filter((change) => change.storage === storage);
    let snapshot: Revision[];
    if (changes.length === 0) snapshot = [...this.list(storage)];
    else {
      const revisions = new Map(this.#shelf(storage).revisions);
      for (const { revision, previous } of changes.reverse()) {
        if (previous === undefined) revisions.delete(revision.key);
        else revisions.set(revision.key, previous);
      }
      snapshot = [...revisions.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
    }
    this.#snapshots.set(id, snapshot);
    for (const oldest of this.#snapshots.keys()) {
      if (this.#snapshots.size <= snapshotsKept) break;
      this.#snapshots.delete(oldest);
    }
    return snapshot;
  }

  /** The changes of one storage after `rv`, oldest first, or `undefined` if some of them are no longer known. */
  changesSince(storage: string, rv: number): Change[] | undefined {
    if (rv < this.compactedRv) return undefined;
    return this.#history.since(rv).filter((change) => change.storage === storage);
  }

  /** Stores the object under a new RV, which it gets written into. The object belongs to the store afterwards. */
  put(storage: string, object: SandboxObject): Revision {
    const shelf = this.#shelf(storage);
    const rv = ++this.#rv;
    object.metadata.resourceVersion = String(rv);
    const revision = new Revision(rv, object);
    const previous = shelf.revisions.get(revision.key);
    if (previous === undefined) {
      const last = shelf.keys.at(-1);
      if (last === undefined || last < revision.key) shelf.keys.push(revision.key);
      else shelf.keys.splice(lowerBound(shelf.keys, revision.key), 0, revision.key);
    }
    shelf.revisions.set(revision.key, revision);
    this.#commit(shelf, storage, { type: previous === undefined ? 'ADDED' : 'MODIFIED', revision, previous });
    return revision;
  }

  /** Removes an object; `final` is its last state and gets the RV of the deletion. */
  remove(storage: string, final: SandboxObject): Revision {
    const shelf = this.#shelf(storage);
    const rv = ++this.#rv;
    final.metadata.resourceVersion = String(rv);
    const revision = new Revision(rv, final);
    const previous = shelf.revisions.get(revision.key);
    if (previous === undefined) throw new Error(`nothing to remove under ${JSON.stringify(revision.key)}`);
    shelf.revisions.delete(revision.key);
    shelf.keys.splice(lowerBound(shelf.keys, revision.key), 1);
    this.#commit(shelf, storage, { type: 'DELETED', revision, previous });
    return revision;
  }

  /** Calls `listener` inside each commit of the storage, in the order of RVs. */
  onCommit(storage: string, listener: CommitListener): Subscription {
    const { listeners } = this.#shelf(storage);
    listeners.add(listener);
    return { close: () => listeners.delete(listener) };
  }

  /** As `onCommit`, for every storage. */
  onEveryCommit(listener: CommitListener): Subscription {
    this.#allListeners.add(listener);
    return { close: () => this.#allListeners.delete(listener) };
  }

  /** Forgets the history up to `rv`, by default all of it. */
  compact(rv = this.#rv): void {
    this.#history.compact(Math.min(rv, this.#rv));
  }

  /** Puts back what an earlier process stored, without history and without notifying anyone. */
  restore(objects: Iterable<{ storage: string; object: SandboxObject }>, rv: number): void {
    for (const { storage, object } of objects) {
      const shelf = this.#shelf(storage);
      const revision = new Revision(Number(object.metadata.resourceVersion), object);
      if (!shelf.revisions.has(revision.key)) shelf.keys.push(revision.key);
      shelf.revisions.set(revision.key, revision);
      shelf.sorted = undefined;
    }
    for (const shelf of this.#shelves.values()) shelf.keys.sort((a, b) => (a < b ? -1 : 1));
    this.#rv = Math.max(this.#rv, rv);
    this.#history.compact(this.#rv);
  }

  /** Everything stored, with the name of its storage. */
  *everything(): Generator<{ storage: string; revision: Revision }> {
    for (const [storage, shelf] of this.#shelves) {
      for (const revision of shelf.revisions.values()) yield { storage, revision };
    }
  }

  #commit(shelf: Shelf, storage: string, what: Pick<Change, 'type' | 'revision' | 'previous'>): void {
    shelf.sorted = undefined;
    const change: Change = { ...what, rv: what.revision.rv, storage, atMs: this.#clock.monotonicMs() };
    this.#history.push(change);
    for (const listener of shelf.listeners) listener(change);
    for (const listener of this.#allListeners) listener(change);
  }

  #shelf(storage: string): Shelf {
    let shelf = this.#shelves.get(storage);
    if (shelf === undefined) {
      shelf = { revisions: new Map(), keys: [], listeners: new Set(), sorted: undefined };
      this.#shelves.set(storage, shelf);
    }
    return shelf;
  }
}

function found(shelf: Shelf, key: string): Revision {
  const revision = shelf.revisions.get(key);
  if (revision === undefined) throw new Error(`the index names ${JSON.stringify(key)}, which is not stored`);
  return revision;
}

function lowerBound(keys: readonly string[], key: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((keys[middle] ?? '') < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** One committed change. */
export interface Change {
  readonly rv: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** Which storage it belongs to, such as `persistentvolumes`. */
  readonly storage: string;
  /** The state after the change; for `DELETED` the last state under the RV of the deletion. */
  readonly revision: Revision;
  /** The state before the change. */
  readonly previous: Revision | undefined;
  readonly atMs: number;
}

/**
 * The latest changes of all resources in the order of their RVs, bounded by number and age. What has left it
 * can be neither watched nor listed any more.
 */
class History {
  readonly #limit: number;
  readonly #maxAgeMs: number;
  #changes: Change[] = [];
  #start = 0;
  #compactedRv: number;

  constructor(options: { limit: number; maxAgeMs: number; firstRv: number }) {
    this.#limit = options.limit;
    this.#maxAgeMs = options.maxAgeMs;
    this.#compactedRv = options.firstRv;
  }

  /** The smallest RV from which every later change is still known. */
  get compactedRv(): number {
    return this.#compactedRv;
  }

  push(change: Change): void {
    this.#changes.push(change);
    if (this.#changes.length - this.#start > this.#limit) this.#drop(this.#start + 1);
    this.trim(change.atMs);
  }

  /** Forgets what is older than the age limit. */
  trim(nowMs: number): void {
    let end = this.#start;
    for (let change = this.#changes[end]; change && change.atMs < nowMs - this.#maxAgeMs; change = this.#changes[end]) {
      end++;
    }
    if (end > this.#start) this.#drop(end);
  }

  /** Forgets every change up to and including `rv`. */
  compact(rv: number): void {
    let end = this.#start;
    for (let change = this.#changes[end]; change && change.rv <= rv; change = this.#changes[end]) end++;
    this.#drop(end);
    this.#compactedRv = Math.max(this.#compactedRv, rv);
  }

  /** The changes after `rv`, oldest first; `rv` must not be below `compactedRv`. */
  since(rv: number): Change[] {
    let low = this.#start;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#changes[middle]?.rv ?? 0) <= rv) low = middle + 1;
      else high = middle;
    }
    return this.#changes.slice(low);
  }

  #drop(end: number): void {
    const last = this.#changes[end - 1];
    if (end > this.#start && last !== undefined) this.#compactedRv = last.rv;
    const dropped = this.#start;
    this.#start = end;
    // Slicing at each change would cost the whole ring each time; once per half ring is cheap.
    if (this.#start > 64 && this.#start * 2 > this.#changes.length) {
      this.#changes = this.#changes.slice(this.#start);
      this.#start = 0;
    } else {
      this.#changes.fill(undefined as unknown as Change, dropped, end);
    }
  }
}
