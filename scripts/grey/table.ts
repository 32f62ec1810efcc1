import type { Goal, Measured } from './goals.ts';

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
