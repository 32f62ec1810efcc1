/** The differences to the Go sidecar that are meant: each has a row, or a paragraph, in docs/differences.md. */
import type { Difference } from './compare.ts';

export interface Intended {
  /** Number of the row `X…`; undefined: a paragraph below the table. */
  row?: number;
  what: string;
  matches: (difference: Difference) => boolean;
}

const intended: readonly Intended[] = [
  {
    row: 12,
    what: 'the Leases of the intent journal',
    matches: ({ aspect, path, peer }) => aspect === 'leases' && /-journal-\d+$/.test(path) && peer === undefined,
  },
  {
    row: 12,
    what: 'a volume whose claim is gone is deleted after a crash',
    matches: ({ step, aspect, ours, peer }) =>
      (aspect === 'storage' && ours === 'deleted' && peer === 'left behind') ||
      (step === 'calls: <volume of gone>' && (aspect === 'counts' || peer === undefined)),
  },
  {
    row: 2,
    what: 'SIGTERM ends the process with code 0, and the lease is released',
    matches: ({ step, ours }) => step === 'stopped' && (ours === 'exit code 0' || ours === 'released'),
  },
  {
    row: 4,
    what: 'one DeleteVolume',
    matches: ({ aspect, path, ours, peer }) => aspect === 'counts' && path === 'DeleteVolume' && isFewer(ours, peer),
  },
  {
    row: 5,
    what: 'no second CreateVolume after success',
    matches: ({ aspect, path, ours, peer }) => aspect === 'counts' && path === 'CreateVolume' && isFewer(ours, peer),
  },
];

/** The first entry that explains a difference. */
export function intendedAs(difference: Difference): Intended | undefined {
  return intended.find(({ matches }) => matches(difference));
}

function isFewer(ours: unknown, peer: unknown): boolean {
  return typeof ours === 'number' && typeof peer === 'number' && ours >= 1 && ours < peer;
}

/** Numbers of all rows that are named. */
export function intendedRows(): number[] {
  return intended.flatMap(({ row }) => row ?? []);
}
