/** What is measured of a sidecar, and the goals for it. */

/** One result. */
export interface Measured {
  /**
   * Compared with the goal: seconds, megabytes, a count, a share from 0 to 1, or 1 for yes. NaN: nothing was measured.
   */
  number: number;
  /** As the table shows it. */
  text: string;
}

/** What the sidecar under test has to reach. */
export interface Goal {
  text: string;
  /** @returns undefined when there is nothing to compare. */
  holds(ours: Measured, peer: Measured | undefined): boolean | undefined;
}

/** @param patienceS - how long the result was waited for; `Infinity` is shown as "not within" this time. */
export function seconds(value: number, patienceS?: number): Measured {
  if (Number.isFinite(value)) return { number: rounded(value), text: `${roundedText(value)} s` };
  return { number: Infinity, text: patienceS === undefined ? 'never' : `not within ${patienceS} s` };
}

export function megabytes(value: number): Measured {
  return { number: Math.round(value), text: `${value.toFixed(0)} MB` };
}

export function count(value: number): Measured {
  return { number: value, text: value.toLocaleString('en') };
}

/** A share of all. */
export function share(value: number, all: number): Measured {
  return { number: value / all, text: `${value} of ${all}` };
}

/** @param note - what is worth knowing about it. */
export function yesOrNo(value: boolean, note?: string): Measured {
  const text = value ? 'yes' : 'no';
  return { number: value ? 1 : 0, text: note === undefined ? text : `${text}, ${note}` };
}

/** Nothing that can be compared, for example because this sidecar never makes such a request. */
export function nothing(text: string): Measured {
  return { number: NaN, text };
}

/** A failure instead of a result: it reaches no goal, and the peer's is not compared with. */
export function failed(error: unknown): Measured {
  const line = (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '';
  return { number: Infinity, text: `failed: ${line.length > 60 ? `${line.slice(0, 57)}...` : line}` };
}

/** Compared as it is shown: 25.3 s are shown as 25 s. */
export function atMost(limit: number, unit: string): Goal {
  return {
    text: `${limit} ${unit} at most`,
    holds: ({ number }) => (Number.isNaN(number) ? undefined : number <= limit),
  };
}

/** All of them. */
export const all: Goal = { text: 'all', holds: ({ number }) => number === 1 };

export const yes: Goal = { text: 'yes', holds: ({ number }) => number === 1 };

export const noMoreThanPeer: Goal = {
  text: "no more than the peer's",
  holds: (ours, peer) => {
    if (ours.number === Infinity) return false;
    return peer === undefined || !Number.isFinite(peer.number) ? undefined : ours.number <= peer.number;
  },
};

function rounded(value: number): number {
  return Number(roundedText(value));
}

function roundedText(value: number): string {
  return value.toFixed(value < 10 ? 1 : 0);
}

/** One line of the table. */
export interface TableLine {
  what: string;
  goal: Goal;
  /** Undefined: not measured in this run. */
  ours: Measured | undefined;
  peer: Measured | undefined;
}

/** Whether a goal was missed; without a measurement it was not. */
export function isMissed({ goal, ours, peer }: TableLine): boolean {
  return ours !== undefined && goal.holds(ours, peer) === false;
}

/** The table as text; it has a column for the peer only if there is one. */
export function tableText(lines: readonly TableLine[], { hasPeer }: { hasPeer: boolean }): string {
  const head = ['what happens', 'goal', 'ours', ...(hasPeer ? ['peer'] : [])];
  const rows = lines.map((line) => {
    const { what, goal, ours, peer } = line;
    const result = `${ours?.text ?? '-'}${isMissed(line) ? ' (not reached)' : ''}`;
    return [what, goal.text, result, ...(hasPeer ? [peer?.text ?? '-'] : [])];
  });
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const text = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  return [text(head), text(widths.map((width) => '-'.repeat(width))), ...rows.map(text)].join('\n');
}
