import type { JournalEntry } from './journal-entry.ts';

/** Entries of one shard by UID of the claim, with the values that they share, and how large all of it is. */
export class HeldEntries {
  readonly #entries = new Map<string, JournalEntry>();
  readonly byUid: ReadonlyMap<string, JournalEntry> = this.#entries;
  readonly #shared = new Map<string, { text: string; bytes: number; users: number }>();
  #bytes = 0;

  /** Of entries and shared values, as Kubernetes counts the size of annotations. */
  get bytes(): number {
    return this.#bytes;
  }

  /** By how many bytes these would enlarge it. */
  bytesOf(entryBytes: number, shared: ReadonlyMap<string, number>): number {
    let bytes = entryBytes;
    for (const [key, more] of shared) if (!this.#shared.has(key)) bytes += more;
    return bytes;
  }

  /** Replaces the entry of a claim; undefined: there is none. */
  set(uid: string, entry: JournalEntry | undefined): void {
    const old = this.#entries.get(uid);
    if (old === entry) return;
    if (entry !== undefined) {
      this.#entries.set(uid, entry);
      this.#bytes += entry.bytes;
      for (const [key, text] of entry.shared) this.#addShared(key, text);
    } else this.#entries.delete(uid);
    if (old === undefined) return;
    this.#bytes -= old.bytes;
    for (const key of old.shared.keys()) this.#dropShared(key);
  }

  /** Keys and texts of all, the shared values first. */
  *texts(): Iterable<[string, string]> {
    for (const [key, { text }] of this.#shared) yield [key, text];
    for (const { key, text } of this.#entries.values()) yield [key, text];
  }

  #addShared(key: string, text: string): void {
    const known = this.#shared.get(key);
    if (known !== undefined) {
      known.users++;
      return;
    }
    const bytes = key.length + Buffer.byteLength(text);
    this.#shared.set(key, { text, bytes, users: 1 });
    this.#bytes += bytes;
  }

  #dropShared(key: string): void {
    const known = this.#shared.get(key);
    if (known === undefined || --known.users > 0) return;
    this.#shared.delete(key);
    this.#bytes -= known.bytes;
  }
}
