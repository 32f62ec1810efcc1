/** Requests of an operator to the sidecar: annotations beside the records. */
import { editShard } from './edit-shard.ts';
import type { JournalLocation } from './read-journal.ts';
import { ShardStorage } from './shard-storage.ts';

export interface ShardAnnotations {
  /** UIDs of claims whose records are to be discarded, separated by commas. */
  discard: string;
  /** Since when no new volume is to be begun; empty: new ones are. */
  drain: string;
}

/**
 * Changes annotations of a shard; its entries stay as they are.
 *
 * @param change - called with what is there; an empty result changes nothing. May be called again after a conflict.
 * @returns false when the shard is gone.
 * @throws {ApiError} and {TransportError} when it cannot be written.
 */
export async function annotateShard(
  journal: JournalLocation,
  shard: number,
  change: (annotations: ShardAnnotations) => Partial<ShardAnnotations>,
): Promise<boolean> {
  const storage = new ShardStorage(journal);
  const outcome = await editShard(storage, shard, (object) => {
    const { discard = object.discard, drain = object.drain } = change(object);
    if (discard === object.discard && drain === object.drain) return false;
    object.discard = discard;
    storage.setDrain(object, drain);
    return true;
  });
  return outcome !== 'gone';
}

/**
 * Marks the journal as drained, or removes the mark. While it is marked the sidecar begins no new volume. Each shard has a mark, so
 * that a process that writes the record of a new volume meets it, whichever shard that is. Safe to repeat.
 *
 * @param numbers - of all shards.
 * @param since - RFC 3339, the first mark stays; undefined removes it.
 * @throws {ApiError} and {TransportError} when one cannot be written: others may be marked then.
 */
export async function markDrained(
  journal: JournalLocation,
  numbers: readonly number[],
  since: string | undefined,
): Promise<void> {
  for (const shard of numbers) {
    await annotateShard(journal, shard, ({ drain }) => ({ drain: since === undefined ? '' : drain || since }));
  }
}
