import path from 'node:path';
import { textTable } from '../../src/base/text-table.ts';
import type { Verdict } from './break-guard.ts';
import { broken, type Guard } from './find-guards.ts';

/** A guard, with the code before and after. */
export function changeText(guard: Guard, text: string): string {
  const end = guard.start + guard.replacement.length;
  return `${nameOf(guard)}
  before: ${linesAt(text, guard.start, guard.end)}
  after:  ${linesAt(broken(text, guard), guard.start, end)}`;
}

/** What became of a guard; with the code before and after if no test failed. */
export function textOf({ guard, outcome, by, passed, unsteady }: Verdict, text: string): string {
  const what = outcome.padEnd(12);
  const notes = unsteady.map((test) => `\n  fails on unchanged sources, too: ${test}`).join('');
  if (by !== undefined) {
    return `${what} ${nameOf(guard)}, by ${by.test}${by.how === 'timeout' ? ' (timeout)' : ''}${notes}`;
  }
  return `${what} ${changeText(guard, text)}${notes}\n  test files that reach it and passed: ${passed}`;
}

function nameOf({ file, line, kind }: Guard): string {
  return `${file}:${line} ${kind}`;
}

/** The whole lines of a piece of text, as one. */
function linesAt(text: string, start: number, end: number): string {
  const from = text.lastIndexOf('\n', start - 1) + 1;
  const to = text.indexOf('\n', end);
  return text
    .slice(from, to === -1 ? undefined : to)
    .trim()
    .replaceAll(/\s+/g, ' ');
}

/** By folder, with the sum in the last row. */
export function table(verdicts: readonly Verdict[]): string {
  const folders = Map.groupBy(verdicts, ({ guard }) => path.dirname(guard.file));
  const rows = [...folders].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return textTable([
    ['folder', 'guards', 'caught', 'survived', 'undecided'],
    ...[...rows, ['all', verdicts] as const].map(([folder, each]) => rowOf(folder, each)),
  ]).join('\n');
}

function rowOf(folder: string, verdicts: readonly Verdict[]): string[] {
  const count = (outcome: Verdict['outcome']): string =>
    String(verdicts.filter((each) => each.outcome === outcome).length);
  return [folder, String(verdicts.length), count('caught'), count('survived'), count('undecided')];
}
