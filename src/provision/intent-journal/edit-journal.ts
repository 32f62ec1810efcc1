/** Changes to a journal from outside of the sidecar: requests of an operator, and records that are moved into another journal. */
import type { Clock } from '../../base/clock.ts';
import { ConflictError, NotFoundError } from '../../kube/client/api-error.ts';
import { type Lease, leases } from '../../kube/election/lease-record.ts';
import { entryOf, type JournalEntry, sharedBytes } from './journal-entry.ts';
import { maxShardBytes } from './journal-state.ts';
import { PlanWriter } from './plan-text.ts';
import { type ReadJournal, readJournal, type ReadJournalOptions, type StoredRecord } from './read-journal.ts';
import { headerKey, parseHeader } from './shard-contents.ts';
import { type JournalLocation, type ShardObject, ShardStorage } from './shard-storage.ts';

/** Max conflicts in a row: even a busy sidecar leaves time between two writes. */
const maxAttempts = 10;

/**
 * Changes a shard while the sidecar may be working on it.
 *
 * @param edit - changes what is there, and says whether to write it. May be called again, with what is there after a conflict.
 * @throws {ApiError} and {TransportError} when it cannot be read or written.
 */
async function editShard(
  storage: ShardStorage,
  shard: number,
  edit: (object: ShardObject) => boolean,
): Promise<'gone' | 'unchanged' | 'written'> {
  for (let attempt = 1; ; attempt++) {
    const object = await storage.read(shard);
    if (object === undefined) return 'gone';
    if (!edit(object)) return 'unchanged';
    try {
      await storage.update(object, Object.fromEntries(object.entries), object.discard);
      return 'written';
    } catch (error) {
      if (!(error instanceof ConflictError) || attempt === maxAttempts) throw error;
    }
  }
}

/**
 * Marks the journal as drained, or removes the mark. While it is marked the sidecar begins no new volume. Each shard has a mark, so
 * that a process that writes the record of a new volume reads it, whichever shard it writes. Safe to repeat.
 *
 * @param numbers - of all shards.
 * @param since - RFC 3339; a mark that exists already stays. Undefined removes the marks.
 * @throws {ApiError} and {TransportError} when one cannot be written: others may be marked then.
 */
export async function markDrained(
  journal: JournalLocation,
  numbers: readonly number[],
  since: string | undefined,
): Promise<void> {
  const storage = new ShardStorage(journal);
  for (const shard of numbers) {
    await editShard(storage, shard, (object) => {
      const drain = since === undefined ? '' : object.drain || since;
      if (drain === object.drain) return false;
      storage.setDrain(object, drain);
      return true;
    });
  }
}

/**
 * Asks the sidecar to discard a record, with the annotation that an operator would set by hand. The entries stay as they are:
 * the sidecar removes the record, within a minute. Safe to repeat.
 *
 * @returns false when the shard is gone, and the record with it.
 * @throws {ApiError} and {TransportError} when it cannot be written.
 */
export async function discardRecord(
  journal: JournalLocation,
  { shard, uid }: { shard: number; uid: string },
): Promise<boolean> {
  const outcome = await editShard(new ShardStorage(journal), shard, (object) => {
    const uids = object.discard.split(',').filter((each) => each.trim() !== '');
    if (uids.some((each) => each.trim() === uid)) return false;
    object.discard = [...uids, uid].join(',');
    return true;
  });
  return outcome !== 'gone';
}

/** A process works on the journal, or may do so. */
export class JournalInUseError extends Error {
  override readonly name = 'JournalInUseError';
}

/**
 * Reads a journal of which nobody holds the Lease, and which nobody writes for some time: a process without leader election shows
 * every ten seconds that it is alive while it has open records.
 *
 * @throws {JournalInUseError} when somebody does, {ApiError} and {TransportError}, and the signal's reason.
 */
export async function readSilentJournal(
  options: Omit<ReadJournalOptions, 'clock'> & { clock: Clock },
  { silenceMs, signal }: { silenceMs: number; signal: AbortSignal },
): Promise<ReadJournal> {
  const { clock } = options;
  await checkLease(options, clock);
  const { shards } = await readJournal(options);
  const before = await versions(options, shards);
  await clock.sleep(silenceMs, { signal });
  await checkLease(options, clock);
  const journal = await readJournal(options);
  if ((await versions(options, journal.shards)) === before) return journal;
  throw new JournalInUseError(
    `${options.namespace}/${options.lockName} is still written: end the sidecar that works on it first`,
  );
}

async function versions(location: JournalLocation, shards: readonly number[]): Promise<string> {
  const storage = new ShardStorage(location);
  const read: string[] = [];
  for (const shard of [...shards].sort((a, b) => a - b)) {
    const object = await storage.read(shard);
    read.push(`${shard} ${object?.uid ?? ''} ${object?.rest.metadata.resourceVersion ?? ''}`);
  }
  return read.join('\n');
}

/** @throws {JournalInUseError} when the Lease of the leader election is held. */
async function checkLease(
  { client, namespace, lockName }: JournalLocation,
  clock: Pick<Clock, 'wallMs'>,
): Promise<void> {
  let lease: Lease;
  try {
    lease = await client.get<Lease>(leases, { namespace, name: lockName });
  } catch (error) {
    if (error instanceof NotFoundError) return;
    throw error;
  }
  const { holderIdentity, renewTime, leaseDurationSeconds } = lease.spec ?? {};
  const holder = holderIdentity ?? '';
  const endMs = Date.parse(renewTime ?? '') + (leaseDurationSeconds ?? 0) * 1000;
  if (holder === '' || endMs < clock.wallMs()) return;
  throw new JournalInUseError(`${holder} holds the Lease ${namespace}/${lockName}: end that sidecar first`);
}

/** The journal that takes the records has no room for more of them now. */
export class JournalFullError extends Error {
  override readonly name = 'JournalFullError';
}

interface MoveOptions {
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
      entries.set(entry.uid, entry.text);
      return true;
    });
    if (outcome === 'written') return;
  }
  throw new JournalFullError('the journal has no room for more records now: repeat this once it has fewer');
}

function setWriter(entries: Map<string, string>, writer: string): void {
  const { header } = parseHeader(entries.get(headerKey));
  if (header !== undefined) entries.set(headerKey, JSON.stringify({ ...header, writer }));
}

function sizeOf(entries: ReadonlyMap<string, string>): number {
  let bytes = 0;
  for (const [key, text] of entries) bytes += key.length + Buffer.byteLength(text);
  return bytes;
}
