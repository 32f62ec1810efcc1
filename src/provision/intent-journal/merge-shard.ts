/** Merges what others have changed in a shard since this process last read or wrote it. */
import type { JournalEntry } from './journal-entry.ts';
import type { Shard } from './shard.ts';
import type { ShardContents } from './shard-contents.ts';

/** What a merge has found, by UID of the claim. */
export interface Merged {
  /** Records of other processes that were not known, or have changed. */
  foreign: JournalEntry[];
  /** Records that others have closed, or taken over from this process. */
  gone: string[];
  /** Records that this process wanted to write, and that another one works on now. */
  lost: string[];
  /** Processes that were seen to change something. */
  writers: Set<string>;
}

/**
 * Updates a shard to what was read. What this process has changed itself is still to be written.
 *
 * @param options.isRewound - it is older than what was known: our own records that it lacks were not closed by others.
 */
export function mergeShard(
  shard: Shard,
  read: ShardContents,
  { me, nowMs, isRewound }: { me: string; nowMs: number; isRewound: boolean },
): Merged {
  const merged: Merged = { foreign: [], gone: [], lost: [], writers: new Set() };
  const { header, records } = read;
  const lastWriter = header?.writer ?? '';
  if (lastWriter !== me && lastWriter !== '' && header?.sequence !== shard.header?.sequence)
    merged.writers.add(lastWriter);
  shard.adoptObject(read);
  for (const [uid, theirs] of records) mergeRecord(shard, uid, theirs, { merged, me, nowMs });
  for (const [uid, base] of shard.stored) {
    if (records.has(uid)) continue;
    shard.setStored(uid, undefined);
    const isOurs = base.writer === me;
    const wanted = shard.wanted.get(uid);
    if (header === undefined || header.uid === '') {
      if (wanted !== undefined) shard.want(uid, wanted, nowMs); // a new object, or an edited one: nobody has closed it
      continue;
    }
    if (!isOurs) merged.writers.add(base.writer);
    if (wanted === undefined || (shard.changed.has(uid) && !shard.adopting.has(uid) && !isOurs)) continue;
    if (isOurs && (lastWriter === me || isRewound)) {
      shard.want(uid, wanted, nowMs); // somebody edited the object, or restored an older one
      continue;
    }
    if (isOurs && shard.changed.has(uid)) merged.lost.push(uid);
    shard.adoptStored(uid, undefined);
    merged.gone.push(uid);
  }
  return merged;
}

function mergeRecord(
  shard: Shard,
  uid: string,
  theirs: JournalEntry,
  { merged, me, nowMs }: { merged: Merged; me: string; nowMs: number },
): void {
  const base = shard.stored.get(uid);
  if (theirs.text === base?.text) return;
  shard.setStored(uid, theirs);
  const mine = shard.wanted.get(uid);
  if (theirs.writer === me) {
    if (!shard.changed.has(uid) && mine?.text !== theirs.text) shard.want(uid, mine, nowMs); // edited, or our response was lost
    return;
  }
  merged.writers.add(theirs.writer);
  const isPut = shard.changed.has(uid) && mine !== undefined && !shard.adopting.has(uid);
  // only what was known may be taken over: a record of our own begun meanwhile stands for another volume, or another plan
  if (base !== undefined && base.writer !== me && isPut && theirs.phase !== 'delete') return;
  if (isPut) merged.lost.push(uid);
  if (base?.writer === me) merged.gone.push(uid);
  if (mine === undefined && shard.changed.has(uid) && base?.writer !== me) return;
  shard.adoptStored(uid, theirs);
  merged.foreign.push(theirs);
}
