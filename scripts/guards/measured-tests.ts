import { createHash } from 'node:crypto';
import { glob, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type Executed, readCoverage } from './coverage.ts';
import { runTestFile, type TestRun } from './run-test-file.ts';
import type { WorkingCopy } from './working-copy.ts';

/** A test file as it runs on unchanged sources. */
export interface MeasuredTest {
  outcome: TestRun['outcome'];
  ms: number;
  executed: Executed;
}

export interface MeasuredTestsOptions {
  root: string;
  /** As of `hashOfSources`: what is measured is kept for it. */
  sources: string;
  /** Test files that take longer are ended. */
  limitMs: number;
}

/** Test files, measured when they are first asked for, and kept in `.cache` for the next run on the same sources. */
export class MeasuredTests {
  readonly #options: MeasuredTestsOptions;
  readonly #known = new Map<string, MeasuredTest>();
  readonly #underWay = new Map<string, Promise<MeasuredTest>>();

  constructor(options: MeasuredTestsOptions) {
    this.#options = options;
  }

  /** Reads what earlier runs have kept. */
  async load(tests: readonly string[]): Promise<void> {
    for (const test of tests) {
      const text = await readFile(await this.#keptIn(test), 'utf8').catch(() => undefined);
      if (text === undefined) continue;
      const kept = JSON.parse(text) as MeasuredTest;
      if (kept.outcome !== 'timeout' || kept.ms >= this.#options.limitMs) this.#known.set(test, kept);
    }
  }

  /** @returns undefined while it has not been measured. */
  known(test: string): MeasuredTest | undefined {
    return this.#known.get(test);
  }

  /** Measures it once, also if another job asks for it meanwhile. */
  async measure(test: string, copy: WorkingCopy, signal: AbortSignal): Promise<MeasuredTest> {
    const known = this.#known.get(test) ?? this.#underWay.get(test);
    if (known !== undefined) return known;
    const measured = this.#measure(test, copy, signal).finally(() => this.#underWay.delete(test));
    this.#underWay.set(test, measured);
    return measured;
  }

  async #measure(test: string, copy: WorkingCopy, signal: AbortSignal): Promise<MeasuredTest> {
    const { limitMs } = this.#options;
    const folder = await mkdtemp(path.join(path.dirname(copy.folder), 'coverage-'));
    try {
      const { outcome, ms } = await runTestFile(copy, test, { limitMs, coverage: folder, signal });
      const executed = outcome === 'passed' ? await readCoverage(folder, copy.folder) : {};
      const measured = { outcome, ms, executed };
      this.#known.set(test, measured);
      await this.#keep(test, measured);
      return measured;
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async #keep(test: string, measured: MeasuredTest): Promise<void> {
    const file = await this.#keptIn(test);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(`${file}.${process.pid}`, JSON.stringify(measured));
    await rename(`${file}.${process.pid}`, file);
  }

  async #keptIn(test: string): Promise<string> {
    const { root, sources } = this.#options;
    const hash = createHash('sha256')
      .update(sources)
      .update(await readFile(path.join(root, test)));
    return path.join(root, '.cache/guards', `${hash.update(test).digest('hex').slice(0, 32)}.json`);
  }
}

/** @param folders - such as `test/unit`. */
export async function testsIn(root: string, folders: readonly string[]): Promise<string[]> {
  const files: string[] = [];
  for (const folder of folders) {
    const found: string[] = [];
    for await (const file of glob(`${folder}/**/*.test.ts`, { cwd: root })) found.push(file);
    files.push(...found.toSorted());
  }
  return files;
}
