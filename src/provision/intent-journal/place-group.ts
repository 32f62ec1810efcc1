import { type JournalEntry, sharedBytes } from './journal-entry.ts';
import type { Shard } from './shard.ts';

/** Max size of a shard, in bytes; the API server refuses annotations of more than 256 KiB. */
export const maxShardBytes = 200 * 1024;
/** What may be written for each new record, in bytes. */
const maxBytesPerRecord = 8 * 1024;

/** Size up to which a shard takes new records where shards are filled in order, in bytes. */
const orderedShardBytes = 64 * 1024;

/** What a group of new records needs. */
interface Need {
  entryBytes: number;
  shared: Map<string, number>;
}

/**
 * Where a group of new records goes.
 *
 * - a shard, and how many of the group, from its beginning.
 * - `wait`: a shard that is being written will do.
 * - `grow`: a new shard is needed.
 */
export type Place = { shard: Shard; count: number } | 'wait' | 'grow';

/**
 * Chooses the smallest shard, unless a new one means less to write.
 *
 * @param options.inOrder - chooses the first with room: processes that write side by side choose the same, and learn from the
 * conflict of their writes that both have a record of one claim.
 * @param options.isFull - there can be no more shards: each takes as much as it can hold.
 */
export function placeGroup(
  group: readonly JournalEntry[],
  shards: Iterable<Shard>,
  { inOrder, isFull = false }: { inOrder: boolean; isFull?: boolean },
): Place {
  let count = group.length;
  let need = needOf(group);
  while (count > 1 && aloneBytes(need) > maxShardBytes) {
    count = Math.ceil(count / 2);
    need = needOf(group.slice(0, count));
  }
  const alone = aloneBytes(need);
  const goal = inOrder ? orderedShardBytes : maxBytesPerRecord * count;
  const limit = isFull ? maxShardBytes : Math.min(maxShardBytes, Math.max(goal, 2 * alone));
  let best: Shard | undefined;
  let bestBytes = Infinity;
  let canWait = false;
  for (const shard of shards) {
    const bytes = shard.bytesWith(need.entryBytes, need.shared);
    if (bytes > limit && shard.wanted.size + shard.kept.size > 0) continue;
    if (inOrder) return shard.busy ? 'wait' : { shard, count };
    if (shard.busy) canWait = true;
    else if (bytes < bestBytes) [best, bestBytes] = [shard, bytes];
  }
  if (best !== undefined) return { shard: best, count };
  return canWait ? 'wait' : 'grow';
}

/** Size of a shard with nothing but this record. */
export function loneBytes(entry: JournalEntry): number {
  return aloneBytes(needOf([entry]));
}

function needOf(group: readonly JournalEntry[]): Need {
  return { entryBytes: group.reduce((sum, { bytes }) => sum + bytes, 0), shared: sharedBytes(group) };
}

const emptyShardBytes = 2048;

function aloneBytes({ entryBytes, shared }: Need): number {
  return emptyShardBytes + entryBytes + [...shared.values()].reduce((sum, bytes) => sum + bytes, 0);
}
