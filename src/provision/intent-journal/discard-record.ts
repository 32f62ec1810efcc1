import { annotateShard, type ShardAnnotations } from './annotate-shards.ts';
import type { JournalLocation } from './read-journal.ts';

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
  return annotateShard(journal, shard, ({ discard }): Partial<ShardAnnotations> => {
    const uids = discard.split(',').filter((each) => each.trim() !== '');
    return uids.some((each) => each.trim() === uid) ? {} : { discard: [...uids, uid].join(',') };
  });
}
