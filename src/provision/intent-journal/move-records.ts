/** Moves the records of a journal that nobody works on any more into another one, whose holder takes them over. */
import { editShard } from './edit-shard.ts';
import { entryOf, type JournalEntry, sharedBytes } from './journal-entry.ts';
import { maxShardBytes } from './place-group.ts';
import { PlanWriter } from './plan-text.ts';
import type { JournalLocation, StoredRecord } from './read-journal.ts';
import { headerKey, parseHeader } from './shard-header.ts';
import { ShardStorage } from './shard-storage.ts';

/** The journal that takes the records has no room for more of them now. */
export class JournalFullError extends Error {
  override readonly name = 'JournalFullError';
}

export interface MoveOptions {
  from: JournalLocation;
  to: JournalLocation & { /** Numbers of its shards that exist. */ shards: readonly number[] };
  /** UIDs of claims that have a record in the other journal already: theirs stay where they are. */
  known: ReadonlySet<string>;
  /** A name for the records' owner that no process has: the holder takes over what is not its own. */
  writer: string;
}

/**
 * Moves one record: it is written to the new journal first, and then removed from the old one, which names another writer from then on:
 * a former holder that comes back knows that the record is not its own any more. After an interruption it may be in both; the old one is
 * then left where it is. What it says of itself, such as when it was renewed, stays.
 *
 * @returns whether it was moved; false for one that the new journal has already.
 * @throws {JournalFullError} when no shard has room, {ApiError} and {TransportError}.
 */
export async function moveRecord(stored: StoredRecord, { from, to, known, writer }: MoveOptions): Promise<boolean> {
  const { record, renewedAt, reportOnly, shard } = stored;
  const { uid } = record.claim;
  if (known.has(uid)) return false;
  await add(to, entryOf(record, { writer, renewedAt, reportOnly, plans: new PlanWriter() }));
  await editShard(new ShardStorage(from), shard, ({ entries }) => {
    if (!entries.delete(uid)) return false;
    setWriter(entries, writer);
    return true;
  });
  return true;
}

async function add(to: MoveOptions['to'], entry: JournalEntry): Promise<void> {
  const storage = new ShardStorage(to);
  const shared = [...sharedBytes([entry]).values()].reduce((sum, bytes) => sum + bytes, 0);
  for (const shard of to.shards) {
    const outcome = await editShard(storage, shard, ({ entries }) => {
      if (sizeOf(entries) + entry.bytes + shared > maxShardBytes) return false;
      for (const [key, text] of entry.shared) entries.set(key, text);
      entries.set(entry.key, entry.text);
      return true;
    });
    if (outcome === 'written') return;
  }
  throw new JournalFullError('the journal has no room for more records now: repeat this once it has fewer');
}

function setWriter(entries: Map<string, string>, writer: string): void {
  const read = parseHeader(entries.get(headerKey));
  if (read !== 'newer' && read.header !== undefined) {
    entries.set(headerKey, JSON.stringify({ ...read.header, writer }));
  }
}

function sizeOf(entries: ReadonlyMap<string, string>): number {
  let bytes = 0;
  for (const [key, text] of entries) bytes += key.length + Buffer.byteLength(text);
  return bytes;
}
