/** The table of `npm run bench -- --peer`: medians of alternating turns, their ratios, and whether a goal is reached. */
import { textTable } from '../src/base/text-table.ts';
import { median } from './statistics.ts';
import type { Result } from './sidecar-load.ts';

/** A figure of the table, with the ratio of ours to the peer's that we want. */
interface Row {
  name: string;
  of: (result: Result) => number;
  unit: string;
  digits: number;
  /** Undefined: the row only explains others. */
  goal?: number;
  /** Larger figures are better. Default: smaller ones. */
  larger?: boolean;
}

const rows: readonly Row[] = [
  { name: 'volumes saved per second', of: (r) => r.volumesPerSecond, unit: '', digits: 0, goal: 1, larger: true },
  { name: 'CPU until all were saved', of: (r) => r.savedCpuMs / 1000, unit: ' s', digits: 1 },
  { name: 'the same of all other processes', of: (r) => r.savedOtherCpuMs / 1000, unit: ' s', digits: 1 },
  { name: 'all bound after', of: (r) => r.boundSeconds, unit: ' s', digits: 1, goal: 1 },
  { name: 'deletes per second', of: (r) => r.deletesPerSecond, unit: '', digits: 1, goal: 1, larger: true },
  { name: 'CPU per claim, average', of: (r) => r.cpuMsPerClaim, unit: ' ms', digits: 2, goal: 1.2 },
  { name: 'CPU per claim, further ones', of: (r) => r.cpuMsPerFurtherClaim, unit: ' ms', digits: 2, goal: 1.2 },
  { name: 'CPU per delete, average', of: (r) => r.cpuMsPerDelete, unit: ' ms', digits: 2, goal: 1.1 },
  { name: 'CPU per delete, further ones', of: (r) => r.cpuMsPerFurtherDelete, unit: ' ms', digits: 2, goal: 1.1 },
  { name: 'memory at the peak', of: (r) => r.peakMb, unit: ' MB', digits: 0, goal: 1.2 },
  { name: 'memory after the load', of: (r) => r.after.residentMb, unit: ' MB', digits: 0, goal: 1.2 },
  { name: 'memory idle', of: (r) => r.idle.residentMb, unit: ' MB', digits: 0, goal: 1.2 },
  { name: 'first volume after the start', of: (r) => r.firstVolumeMs / 1000, unit: ' s', digits: 2, goal: 1 },
  { name: 'CPU of the start', of: (r) => r.startCpuMs, unit: ' ms', digits: 0, goal: 1.2 },
];

/** @param turns - of each sidecar, in the order in which they ran: equal positions are neighbours. */
export function ratioTable(ours: readonly Result[], peer: readonly Result[]): string {
  const lines = textTable([
    ['', 'ours', 'peer', 'ratio', 'of the turns', 'goal', ''],
    ...rows.map(({ name, of, unit, digits, goal, larger = false }) => {
      const [own, other] = [ours.map(of), peer.map(of)];
      const ratios = own.map((value, turn) => value / (other[turn] ?? Number.NaN));
      return [
        name,
        `${median(own).toFixed(digits)}${unit}`,
        `${median(other).toFixed(digits)}${unit}`,
        median(ratios).toFixed(2),
        `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`,
        ...(goal === undefined
          ? ['', '']
          : [`${larger ? 'at least' : 'at most'} ${goal.toFixed(1)}`, verdict(ratios, goal, larger)]),
      ];
    }),
  ]);
  return lines.join('\n');
}

/**
 * Whether the median of the ratios reaches the goal: never where the turns differ from each other by more than the median does from
 * the goal, since the next run may say something else. A goal that every turn misses is not met, however they differ.
 *
 * @param larger - the ratio is to be at least the goal; else at most.
 */
export function verdict(ratios: readonly number[], goal: number, larger: boolean): 'met' | 'not met' | 'unclear' {
  const reaches = (ratio: number): boolean => (larger ? ratio >= goal : ratio <= goal);
  if (ratios.some((ratio) => Number.isNaN(ratio))) return 'unclear';
  if (!ratios.some(reaches)) return 'not met';
  const middle = median(ratios);
  const spread = Math.max(...ratios) - Math.min(...ratios);
  if (spread > Math.abs(middle - goal)) return 'unclear';
  return reaches(middle) ? 'met' : 'not met';
}
