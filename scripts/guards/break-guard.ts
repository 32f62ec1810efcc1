import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { wasExecuted } from './coverage.ts';
import { broken, type Guard } from './find-guards.ts';
import type { MeasuredTests } from './measured-tests.ts';
import { runTestFile, type TestRun } from './run-test-file.ts';
import type { WorkingCopy } from './working-copy.ts';

export interface Verdict {
  guard: Guard;
  /** `undecided`: there was no time for all tests. */
  outcome: 'caught' | 'survived' | 'undecided';
  /** What caught it. */
  by?: { test: string; how: Exclude<TestRun['outcome'], 'passed'> };
  /** How many test files reached it and passed. */
  passed: number;
  /** Test files that failed without the change, too. */
  unsteady: string[];
}

export interface BreakOptions {
  copy: WorkingCopy;
  tests: readonly string[];
  measured: MeasuredTests;
  /** No further test file is run after that time. */
  limitMs: number;
  signal: AbortSignal;
}

/** A file that hangs is ended after that many times its usual time, in milliseconds at least. */
const patience = { factor: 4, leastMs: 30_000 };

/** Where the time of a test file is not known: after those that are known to be fast. */
const unknownMs = 10_000;

/** Unit tests first, then the closest, then the fastest. */
export function inOrder(file: string, tests: readonly string[], measured: Pick<MeasuredTests, 'known'>): string[] {
  const rank = (test: string): number[] => [
    test.startsWith('test/unit/') ? 0 : 1,
    -closeness(file, test),
    measured.known(test)?.ms ?? unknownMs,
  ];
  return tests
    .map((test) => ({ test, rank: rank(test) }))
    .toSorted((a, b) => compare(a.rank, b.rank))
    .map(({ test }) => test);
}

function compare(a: readonly number[], b: readonly number[]): number {
  return a.map((each, index) => each - (b[index] ?? 0)).find((difference) => difference !== 0) ?? 0;
}

/** How many folders and names the paths share, below `src` and below `test/unit`: tests mirror the sources. */
function closeness(file: string, test: string): number {
  const words = (text: string): string[] => text.replace(/(\.test)?\.ts$/, '').split('/');
  const ofTest = words(test).slice(2);
  const ofFile = words(file).slice(1);
  const differing = ofFile.findIndex((word, index) => word !== ofTest[index]);
  return differing === -1 ? ofFile.length : differing;
}

/** Breaks a guard in the copy, runs the tests that reach it until one fails, and restores the file. */
export async function breakGuard(guard: Guard, options: BreakOptions): Promise<Verdict> {
  const { copy, tests, measured, limitMs, signal } = options;
  const file = path.join(copy.folder, guard.file);
  const text = await readFile(file, 'utf8');
  const verdict: Verdict = { guard, outcome: 'survived', passed: 0, unsteady: [] };
  const endsAt = performance.now() + limitMs;
  try {
    for (const test of inOrder(guard.file, tests, measured)) {
      if (performance.now() > endsAt) return { ...verdict, outcome: 'undecided' };
      const { outcome: usual, ms, executed } = await measured.measure(test, copy, signal);
      if (usual !== 'passed' || !wasExecuted(executed, guard.file, guard.reachedAt)) continue;
      const run = { limitMs: Math.max(patience.leastMs, patience.factor * ms), signal };
      await writeFile(file, broken(text, guard));
      const { outcome: how } = await runTestFile(copy, test, run);
      await writeFile(file, text);
      if (how === 'passed') verdict.passed++;
      else if ((await runTestFile(copy, test, run)).outcome !== 'passed') verdict.unsteady.push(test);
      else return { ...verdict, outcome: 'caught', by: { test, how } };
    }
    return verdict;
  } finally {
    await writeFile(file, text);
  }
}
