/** Requests of an operator to the sidecar: annotations beside the records. */
import { ConflictError } from '../../kube/api-error.ts';
import type { JournalLocation } from './read-journal.ts';
import { ShardStorage } from './shard-storage.ts';

export interface ShardAnnotations {
  /** UIDs of claims whose records are to be discarded, separated by commas. */
  discard: string;
  /** Since when no new volume is to be begun; empty: new ones are. */
  drain: string;
}

/** Max conflicts in a row: between two writes of a busy sidecar there is room. */
const maxAttempts = 10;

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
  for (let attempt = 1; ; attempt++) {
    const object = await storage.read(shard);
    if (object === undefined) return false;
    const { discard = object.discard, drain = object.drain } = change(object);
    if (discard === object.discard && drain === object.drain) return true;
    try {
      storage.setDrain(object, drain);
      await storage.update(object, Object.fromEntries(object.entries), discard);
      return true;
    } catch (error) {
      if (!(error instanceof ConflictError) || attempt === maxAttempts) throw error;
    }
  }
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
