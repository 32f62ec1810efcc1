/** `npm run guards`: see `npm run guards -- --help`. */
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Random } from './chaos/random.ts';
import { breakGuard, type Verdict } from './guards/break-guard.ts';
import { broken, chooseGuards, findGuards, type Guard, typeCheck } from './guards/find-guards.ts';
import { MeasuredTests, testsIn } from './guards/measured-tests.ts';
import { changeText, table, textOf } from './guards/report.ts';
import { filesOf, hashOfSources, makeCopy, type WorkingCopy } from './guards/working-copy.ts';
import { scriptCommand, wholeNumber } from './script-command.ts';

interface Options {
  seed: string;
  count: number;
  only?: string;
  tests: string[];
  list: boolean;
  jobs: number;
  testSeconds: number;
  guardSeconds: number;
}

const root = path.join(import.meta.dirname, '..');
/** As that of `nice`: the runs take long, and nobody waits for them. */
const niceness = 15;

const options = scriptCommand(
  'npm run guards --',
  'Breaks guards of src one by one in a copy of the checkout, and runs the tests that reach them until one fails. ' +
    'Exit code 1 if a broken guard fails no test.',
)
  .option('--seed <TEXT>', 'the same seed, number and sources give the same guards', '1')
  .option('--count <N>', 'number of guards, of all folders in turn', wholeNumber(), 60)
  .option('--only <TEXT>', 'only guards whose FILE:LINE contains this text, such as src/csi/driver.ts:41')
  .option('--tests <FOLDER...>', 'where tests are taken from', ['test/unit', 'test/integration'])
  .option('--list', 'prints the guards and breaks none', false)
  .option('--jobs <N>', 'test files that run at a time', wholeNumber(), 1)
  .option('--test-seconds <N>', 'test files that take longer on unchanged sources are left out', wholeNumber(), 60)
  .option('--guard-seconds <N>', 'no further test file is run for a guard after that time', wholeNumber(), 300)
  .parse()
  .opts<Options>();

const texts = new Map<string, string>();
for (const file of (await filesOf(root)).toSorted()) {
  if (!/^src\/.*\.ts$/.test(file) || file.startsWith('src/csi/generated/')) continue;
  texts.set(file, await readFile(path.join(root, file), 'utf8'));
}

function brokenText(guard: Guard): string {
  return broken(texts.get(guard.file) ?? '', guard);
}

/** Those whose change the compiler accepts: nobody can break the others without an error. */
function chosenGuards(): Guard[] {
  const { seed, count, only = '' } = options;
  const isValid = typeCheck(root);
  const guards = Array.from(texts, ([file, text]) => findGuards(file, text)).flat();
  return chooseGuards(
    guards.filter(({ file, line }) => `${file}:${line} `.includes(only)),
    { count, random: new Random(seed), isAccepted: (guard) => isValid(guard.file, brokenText(guard)) },
  );
}

/** Does something for each item, in as many copies as there are. */
async function inCopies<T, R>(
  copies: readonly WorkingCopy[],
  items: readonly T[],
  work: (copy: WorkingCopy, item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const queue = items.entries();
  await Promise.all(
    copies.map(async (copy) => {
      for (const [index, item] of queue) results[index] = await work(copy, item);
    }),
  );
  return results;
}

async function run(guards: readonly Guard[], folder: string, signal: AbortSignal): Promise<Verdict[]> {
  const copies: WorkingCopy[] = [];
  for (let number = 0; number < options.jobs; number++) {
    const parent = path.join(folder, String(number));
    await mkdir(parent);
    copies.push(await makeCopy(root, parent, signal));
  }
  const tests = await testsIn(root, options.tests);
  const sources = await hashOfSources(root);
  const measured = new MeasuredTests({ root, sources, limitMs: options.testSeconds * 1000 });
  await measured.load(tests);
  const limitMs = options.guardSeconds * 1000;
  const verdicts = await inCopies(copies, guards, async (copy, guard) => {
    const verdict = await breakGuard(guard, { copy, tests, measured, limitMs, signal });
    console.log(textOf(verdict, texts.get(guard.file) ?? ''));
    return verdict;
  });
  for (const test of tests) {
    const outcome = measured.known(test)?.outcome ?? 'passed';
    if (outcome !== 'passed') console.log(`left out     ${test}: ${outcome} on unchanged sources`);
  }
  return verdicts;
}

async function main(): Promise<number> {
  os.setPriority(niceness);
  const guards = chosenGuards();
  if (options.list) {
    for (const guard of guards) console.log(changeText(guard, texts.get(guard.file) ?? ''));
    return 0;
  }
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort(new Error(signal)));
  const folder = await mkdtemp(path.join(os.tmpdir(), 'guards-'));
  try {
    const verdicts = await run(guards, folder, stop.signal);
    console.log(`\n${table(verdicts)}`);
    return verdicts.every(({ outcome }) => outcome === 'caught') ? 0 : 1;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    return 1;
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

process.exitCode = await main();
