/**
 * `npm test`, `npm run test:slow` and `npm run test:unit`: runs test files, many of them together in one process.
 *
 *   node scripts/test.ts                          all of test/unit, test/integration and test/sandbox
 *   node scripts/test.ts PATH...                  all test files below these folders, such as test/e2e, and single ones
 *   node scripts/test.ts --unit                   unit tests alone, without the model check
 *   node scripts/test.ts --test-name-pattern=TEXT tests with such titles; may be repeated
 *   node scripts/test.ts --cpu                    at the end, also a table of the CPU that each test file took, on Linux
 *   node scripts/test.ts --known-skips            fails if a test is skipped for a reason that is not in test/known-skips.ts
 */
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { parseArgs } from 'node:util';
import { globalSetup as setUpRun } from '../test/support/run-setup.ts';
import { globalSetup as setUpWholeRun } from '../test/support/whole-run-setup.ts';
import { startCpuReport } from './test/cpu-report.ts';
import { isKnownSkip } from './test/known-skips.ts';
import { defaultFolders, planProcesses, quickUnitTests, testsOf } from './test/test-processes.ts';
import { showing, terminalProgress } from './terminal-progress.ts';

const root = path.join(import.meta.dirname, '..');
const support = (name: string): string => path.join(root, 'test/support', name);

/** Four for each core: while one waits, for instance for a timer, another one runs. */
const concurrency = Math.min(4 * availableParallelism(), 12);

const { values: flags, positionals: paths } = parseArgs({
  allowPositionals: true,
  options: {
    unit: { type: 'boolean', default: false },
    cpu: { type: 'boolean', default: false },
    'known-skips': { type: 'boolean', default: false },
    'test-name-pattern': { type: 'string', multiple: true },
  },
});

if (flags.unit && paths.length > 0) throw new Error('--unit takes no paths: it chooses the test files itself');
const chosen = flags.unit
  ? await quickUnitTests(root)
  : await testsOf(root, paths.length === 0 ? defaultFolders : paths);
// Not by `globalSetupPath`, for Node.js starts the first files while an asynchronous one still runs.
if (flags.unit) setUpRun();
else await setUpWholeRun();
const cpu = flags.cpu ? startCpuReport() : undefined;
const files = await planProcesses(root, chosen);
const pattern = flags['test-name-pattern'];
const stop = new AbortController();
for (const [signal, number] of [
  ['SIGINT', 2],
  ['SIGTERM', 15],
] as const) {
  process.once(signal, () => {
    process.exitCode = 128 + number;
    stop.abort();
  });
}
const events = run({
  files,
  cwd: root,
  signal: stop.signal,
  concurrency,
  timeout: 600_000,
  execArgv: ['untracked-promises.ts', 'file-limits.ts', 'bundled-client.ts'].map((name) => `--import=${support(name)}`),
  ...(pattern !== undefined && { testNamePatterns: pattern }),
});
events.on('test:summary', ({ file, success }) => {
  if (file === undefined && !success) process.exitCode ??= 1;
});

/** Tests, and whole suites, which the summary of Node.js does not count. */
const skipped: { title: string; reason: string | true }[] = [];
events.on('test:pass', ({ name, file, skip }) => {
  if (skip === undefined || skip === false) return;
  skipped.push({ title: `${path.relative(root, file ?? '')}: ${name}`, reason: skip === '' ? true : skip });
});

/** A file is done with its process, which is named by its whole path, or, in a group, with its suite, which has the relative one. */
const undone = new Set(chosen);
events.on('test:complete', ({ name }) => undone.delete(path.isAbsolute(name) ? path.relative(root, name) : name));
const state = (): string => `${chosen.length - undone.size} of ${chosen.length} test files done`;
const progress = terminalProgress();
/** Text never follows the line of progress. */
async function* below(report: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const text of report) {
    progress.clear();
    yield text;
  }
}
await showing(state, () => pipeline(events, new spec(), below, process.stdout, { end: false }), progress);

if (cpu !== undefined) console.log(cpu());
if (skipped.length > 0) console.log(`${skipped.length} tests and suites were skipped`);
const unknown = flags['known-skips'] ? skipped.filter(({ reason }) => !isKnownSkip(reason)) : [];
for (const { title, reason } of unknown) {
  console.error(
    `skipped, which scripts/test/known-skips.ts does not permit: ${title} # ${reason === true ? 'no reason' : reason}`,
  );
}
if (unknown.length > 0) process.exitCode ??= 1;
