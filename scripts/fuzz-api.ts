/** `npm run fuzz:api`: see `npm run fuzz:api -- --help`. */
import { readFile, writeFile } from 'node:fs/promises';
import { ApiServer } from '../sandbox/api/api-server.ts';
import { ApiUnderComparison } from '../test/support/api-verdicts/api-under-comparison.ts';
import { kindNames, type ComparedKind, type WriteCase } from '../test/support/api-verdicts/kinds.ts';
import { startControlPlane } from '../test/support/control-plane/control-plane.ts';
import { everyField, writeCases } from './fuzz-api/cases.ts';
import { type Compare, comparison, type Difference, groupOf, minimal } from './fuzz-api/differences.ts';
import { intended } from './fuzz-api/intended.ts';
import { record } from './fuzz-api/record.ts';
import { scriptCommand, wholeNumber } from './script-command.ts';

interface Options {
  cases: number;
  everyField: boolean;
  seed: string;
  kind: ComparedKind[];
  out?: string;
  record?: string[] | true;
}

/** Differences of one kind, of which one is kept. */
interface Group {
  count: number;
  difference: Difference;
}

const inFlight = 12;
let sent = 0;
/** Features that the sandbox has although they are off in a cluster by default. */
const sandboxGates = '--feature-gates=CrossNamespaceVolumeDataSource=true';

const options = scriptCommand(
  'npm run fuzz:api --',
  'Sends mutated storage objects as dry runs to the sandbox and to a real API server, and compares what they say.',
)
  .option('--cases <N>', 'number of objects', wholeNumber(0), 20_000)
  .option('--every-field', 'before these, every field by itself: without it, empty, of other types, each text', false)
  .option('--seed <TEXT>', 'the same seed, kinds and number give the same objects', '1')
  .option('--kind <KIND...>', `only these kinds, by default ${kindNames.join(', ')}`, [...kindNames])
  .option('--out <FILE>', 'writes a minimal object for each difference to a file')
  .option('--record [FILE...]', 'records the verdicts for npm test anew, those on objects of these --out files as well')
  .parse()
  .opts<Options>();

function* chosenCases(): Generator<WriteCase> {
  if (options.everyField) yield* everyField(options.kind);
  yield* writeCases({ kinds: options.kind, cases: options.cases, seed: options.seed });
}

/** Compares every case and keeps the shortest of each group of differences. */
async function fuzz(compare: Compare): Promise<Group[]> {
  const groups = new Map<string, Group>();
  const cases = chosenCases();
  const work = async (): Promise<void> => {
    for (const write of cases) {
      sent++;
      const difference = await compare(write);
      if (difference !== undefined) add(groups, difference);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, work));
  return [...groups.values()].toSorted((a, b) => b.count - a.count);
}

function add(groups: Map<string, Group>, difference: Difference): void {
  const key = groupOf(difference).join('|');
  const known = groups.get(key);
  if (known === undefined) groups.set(key, { count: 1, difference });
  else {
    known.count++;
    if (length(difference) < length(known.difference)) known.difference = difference;
  }
}

function length({ write }: Difference): number {
  return JSON.stringify(write).length;
}

/** @returns whether no group is without a reason. */
async function report(groups: readonly Group[], compare: Compare): Promise<boolean> {
  const known = groups.filter(({ difference }) => intended.some(({ fits }) => fits(difference)));
  const open = groups.filter((group) => !known.includes(group));
  for (const { count, difference } of open) console.log(line(count, difference));
  console.log(`${open.length} differences in ${total(open)} cases; ${total(known)} cases have a reason:`);
  for (const { reason, fits } of intended) {
    console.log(`${String(total(known.filter(({ difference }) => fits(difference)))).padStart(7)}  ${reason}`);
  }
  if (options.out !== undefined) {
    const smallest: Difference[] = [];
    for (const { difference } of open) smallest.push(await minimal(difference, compare));
    await writeFile(options.out, `${JSON.stringify(smallest, undefined, 1)}\n`);
  }
  return open.length === 0;
}

function total(groups: readonly Group[]): number {
  return groups.reduce((sum, { count }) => sum + count, 0);
}

function line(count: number, difference: Difference): string {
  const [kind = '', operation = '', fields = '', ours = '', theirs = ''] = groupOf(difference);
  return [String(count).padStart(7), kind.padEnd(21), operation, `${theirs}, not ${ours}:`, fields].join('  ');
}

async function recorded(kubernetes: ApiUnderComparison): Promise<void> {
  const files = Array.isArray(options.record) ? options.record : [];
  const found = await Promise.all(files.map(async (file) => JSON.parse(await readFile(file, 'utf8')) as Difference[]));
  console.log(`recorded ${await record(found.flat(), kubernetes)} verdicts`);
}

async function main(): Promise<number> {
  await using plane = await startControlPlane({ extraArgs: { 'kube-apiserver': [sandboxGates] } });
  await plane.stopControllerManager(); // nobody changes the objects that updates replace
  await using server = new ApiServer();
  const { url } = await server.start();
  await using sandbox = await ApiUnderComparison.prepare(url);
  await using kubernetes = await ApiUnderComparison.prepare(plane.url, { ca: plane.ca, token: plane.adminToken });
  const compare = comparison(sandbox, kubernetes);
  const started = performance.now();
  const groups = await fuzz(compare);
  console.log(`${sent} cases, seed ${options.seed}: ${((performance.now() - started) / 1000).toFixed(0)} s`);
  const isEqual = await report(groups, compare);
  if (options.record !== undefined) await recorded(kubernetes);
  return isEqual ? 0 : 1;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
process.exitCode = await main();
