/** Changes to a shard from outside of the sidecar, above all the requests of an operator. */
import { ConflictError } from '../../kube/client/api-error.ts';
import type { JournalLocation } from './read-journal.ts';
import { type ShardObject, ShardStorage } from './shard-storage.ts';

/** Max conflicts in a row: even a busy sidecar leaves time between two writes. */
const maxAttempts = 10;

/**
 * Changes a shard while the sidecar may be working on it.
 *
 * @param edit - changes what is there, and says whether to write it. May be called again, with what is there after a conflict.
 * @throws {ApiError} and {TransportError} when it cannot be read or written.
 */
export async function editShard(
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
