/** What a shard says about itself, in its entry `shard`. */
export const headerKey = 'shard';
/** The format that this version writes, and the newest that it reads. */
export const journalFormat = 1;
/** Without a renewal for this long nobody can say what became of the records, in milliseconds. */
const maxQuietMs = 24 * 3_600_000;

export interface ShardHeader {
  format: number;
  /** Of the shard's object: differs in a copy, such as a restored backup. */
  uid: string;
  /** The process that has written the shard last. */
  writer: string;
  /** Counts the writes of that process. */
  sequence: number;
  /** RFC 3339. */
  renewedAt: string;
  /** In the first shard: how many numbers are in use. */
  shards?: number;
  /** In the first shard, without leader election: a counter of each process with open records. */
  renewals?: Record<string, number>;
}

/**
 * @param text - absent where nothing was written yet.
 * @returns undefined where there is none; `unknown` for one that only a newer version can read.
 */
export function parseHeader(text: string | undefined): ShardHeader | 'unknown' | undefined {
  if (text === undefined) return undefined;
  try {
    const header = JSON.parse(text) as ShardHeader;
    return Number.isInteger(header.format) && header.format <= journalFormat ? header : 'unknown';
  } catch {
    return 'unknown';
  }
}

/** Why nothing may be deleted because of a shard's records; empty: it may. */
export function reportOnlyReason(header: ShardHeader | undefined, uid: string, wallMs: number): string {
  if (header === undefined) return 'the journal has lost its header';
  if (header.uid !== uid) return 'the journal is a copy, such as a restored backup';
  const quietMs = Math.abs(wallMs - Date.parse(header.renewedAt));
  return quietMs <= maxQuietMs ? '' : 'the journal was not renewed for 24 hours';
}
