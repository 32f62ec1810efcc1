import type { Deletion, OpenRecord } from '../chaos/count.ts';

/** A volume that was set to Retain, and whose claim and PersistentVolume were deleted. */
export interface KeptVolume {
  claimUid: string;
  handle: string;
}

export interface KeptCounts {
  /** Storage that was kept, and that the driver deleted. */
  destroyed: number;
  /** Records of kept storage that are stuck as unproved. */
  unproved: number;
  /** Those that are stuck for another reason. */
  stuck: number;
  /** Those about which nothing is decided yet. */
  open: number;
}

/** Compares what was kept with what the driver was asked for and has, and with the records that are left. */
export function tally(
  kept: readonly KeptVolume[],
  {
    records,
    deletions,
    stored,
  }: { records: readonly OpenRecord[]; deletions: readonly Deletion[]; stored: ReadonlySet<string> },
): KeptCounts {
  const deleted = new Set(deletions.map(({ handle }) => handle));
  const byClaim = new Map(records.map((record) => [record.claimUid, record]));
  const number = (is: (volume: KeptVolume) => boolean): number => kept.filter(is).length;
  return {
    destroyed: number(({ handle }) => deleted.has(handle) || !stored.has(handle)),
    unproved: number(({ claimUid }) => byClaim.get(claimUid)?.reason === 'unproved'),
    stuck: number(({ claimUid }) => {
      const record = byClaim.get(claimUid);
      return record?.phase === 'stuck' && record.reason !== 'unproved';
    }),
    open: number(({ claimUid }) => (byClaim.get(claimUid)?.phase ?? 'stuck') !== 'stuck'),
  };
}
