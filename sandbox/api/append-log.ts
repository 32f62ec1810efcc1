import {
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from 'node:fs';
import type { SandboxObject, Subscription } from './client.ts';
import { isObject } from './json.ts';
import type { Store } from './store.ts';

/** Where the objects outlive the process. */
export interface PersistenceOptions {
  readonly path: string;
}

/** One change, one line. */
interface Entry {
  readonly rv: number;
  readonly op: 'put' | 'remove';
  readonly storage: string;
  readonly key: string;
  readonly object?: SandboxObject;
}

/** Below this size a rewrite is not worth it. */
const smallestRewriteBytes = 1024 * 1024;

/**
 * Keeps a store in an append-only file, one JSON line per commit. Opening it fills the store with what an
 * earlier process left; a line that its crash cut short is dropped. The history is not kept: older watches get 410.
 */
export class AppendLog implements Disposable {
  readonly #store: Store;
  readonly #path: string;
  readonly #subscription: Subscription;
  /** Bytes of the newest line of each object. */
  readonly #live = new Map<string, number>();
  #liveBytes = 0;
  #fileBytes = 0;
  #file: number;

  /** @throws if the file cannot be read or written, or if anything but its last line is no entry. */
  constructor(options: PersistenceOptions & { store: Store }) {
    this.#store = options.store;
    this.#path = options.path;
    this.#restore();
    this.#file = openSync(this.#path, 'a', 0o600);
    this.#subscription = this.#store.onEveryCommit(({ type, rv, storage, revision: { key, object } }) => {
      if (type === 'DELETED') this.#append({ rv, op: 'remove', storage, key });
      else this.#append({ rv, op: 'put', storage, key, object });
    });
  }

  /** Closes the file; safe to repeat. */
  [Symbol.dispose](): void {
    this.#subscription.close();
    if (this.#file === -1) return;
    closeSync(this.#file);
    this.#file = -1;
  }

  #restore(): void {
    if (!existsSync(this.#path)) return;
    const bytes = readFileSync(this.#path);
    const end = bytes.lastIndexOf(0x0a) + 1;
    if (end < bytes.length) cutFile(this.#path, end);
    const objects = new Map<string, { storage: string; object: SandboxObject }>();
    let rv = 0;
    for (const [index, line] of bytes.subarray(0, end).toString('utf8').split('\n').slice(0, -1).entries()) {
      const entry = parseEntry(line, `${this.#path}:${index + 1}`);
      const id = `${entry.storage} ${entry.key}`;
      if (entry.object === undefined) objects.delete(id);
      else objects.set(id, { storage: entry.storage, object: entry.object });
      this.#count(id, entry.object === undefined ? 0 : Buffer.byteLength(line) + 1);
      rv = Math.max(rv, entry.rv);
    }
    this.#fileBytes = end;
    this.#store.restore(objects.values(), rv);
  }

  #append(entry: Entry): void {
    const line = `${JSON.stringify(entry)}\n`;
    this.#fileBytes += writeSync(this.#file, line);
    this.#count(`${entry.storage} ${entry.key}`, entry.op === 'put' ? Buffer.byteLength(line) : 0);
    if (this.#fileBytes > Math.max(2 * this.#liveBytes, smallestRewriteBytes)) this.#rewrite();
  }

  #count(id: string, bytes: number): void {
    this.#liveBytes += bytes - (this.#live.get(id) ?? 0);
    if (bytes === 0) this.#live.delete(id);
    else this.#live.set(id, bytes);
  }

  /** Writes only what lives into a new file and puts it in place of the old one. */
  #rewrite(): void {
    const temporary = `${this.#path}.new`;
    const file = openSync(temporary, 'w', 0o600);
    this.#fileBytes = 0;
    let lastRv = 0;
    for (const { storage, revision } of this.#store.everything()) {
      const { rv, key, object } = revision;
      lastRv = Math.max(lastRv, rv);
      const entry: Entry = { rv, op: 'put', storage, key, object };
      this.#fileBytes += writeSync(file, `${JSON.stringify(entry)}\n`);
    }
    // A removal may have been the last change; its RV must not be given out again.
    const last: Entry = { rv: Math.max(lastRv, this.#store.rv), op: 'remove', storage: '', key: '' };
    this.#fileBytes += writeSync(file, `${JSON.stringify(last)}\n`);
    fsyncSync(file);
    renameSync(temporary, this.#path);
    closeSync(this.#file);
    this.#file = file;
  }
}

function parseEntry(line: string, where: string): Entry {
  try {
    const entry: unknown = JSON.parse(line);
    if (isObject(entry) && typeof entry['rv'] === 'number' && typeof entry['storage'] === 'string') {
      return entry as unknown as Entry;
    }
  } catch {
    // The same response as for JSON that is no entry.
  }
  throw new Error(`${where} is not an entry of an object log`);
}

function cutFile(path: string, bytes: number): void {
  const file = openSync(path, 'r+');
  ftruncateSync(file, bytes);
  closeSync(file);
}
