/**
 * `npm run bench:builds`: the same load for several builds or settings of the sidecar, in turns in one run, each beside the first of
 * them. It finds what a change cost, also among commits of months; docs/development.md has the last table.
 */
import { cpus } from 'node:os';
import { Argument, InvalidArgumentError, Option } from 'commander';
import { scriptCommand, wholeNumber } from '../scripts/script-command.ts';
import { openBenchStage } from './bench-stage.ts';
import { median } from './statistics.ts';
import { type LoadOptions, measure, type Result } from './sidecar-load.ts';

interface Build {
  name: string;
  command: string;
}

const programs = new Argument(
  '<NAME=CMD...>',
  'sidecars, such as before="node --disable-sigusr1 ../before/dist/csi-provisioner.js --leader-election"; ratios are to the first',
).argParser((text: string, earlier: Build[] | undefined) => [...(earlier ?? []), buildOf(text)]);
const command = scriptCommand('npm run bench:builds --', 'What several builds of the sidecar cost, side by side.')
  .addArgument(programs)
  .option('--claims <N>', 'claims in the larger of two runs, the other has a quarter of them', wholeNumber(2), 400)
  .option('--turns <N>', 'runs of each that count, after a warm-up', wholeNumber(1), 3)
  .addOption(new Option('--target <T>', 'cluster').choices(['kubernetes', 'sandbox']).default('kubernetes'))
  .parse();
const {
  claims: claimCount,
  turns,
  target,
} = command.opts<{
  claims: number;
  turns: number;
  target: 'kubernetes' | 'sandbox';
}>();
const builds = command.processedArgs[0] as readonly Build[];

/** The rows of the table: what is better is less of it, but for the volumes per second. */
const rows = {
  'CPU per claim': ({ cpuMsPerClaim }) => cpuMsPerClaim,
  'CPU per further claim': ({ cpuMsPerFurtherClaim }) => cpuMsPerFurtherClaim,
  'CPU per delete': ({ cpuMsPerDelete }) => cpuMsPerDelete,
  'saved per second': ({ volumesPerSecond }) => volumesPerSecond,
  'requests per claim': ({ createRequests }) =>
    [...(createRequests?.values() ?? [])].reduce((sum, each) => sum + each, 0) / claimCount,
} satisfies Record<string, (result: Result) => number>;

async function main(): Promise<void> {
  await using stage = await openBenchStage(target);
  console.log(`${claimCount} claims on ${stage.place}, hostpath driver, ${cpus().length} CPUs, ${process.version}`);
  print(await inTurns({ stage, claimCount, fewerCount: Math.max(1, Math.floor(claimCount / 4)) }));
}

/** Every other turn goes backwards: who comes later finds a warmer, fuller cluster. */
async function inTurns(options: LoadOptions): Promise<Map<string, Result[]>> {
  const results = new Map<string, Result[]>(builds.map(({ name }) => [name, []]));
  await measure(options, 'warm-up', builds[0]?.command ?? '');
  for (let turn = 0; turn < turns; turn++) {
    for (const { name, command: program } of turn % 2 === 0 ? builds : builds.toReversed()) {
      const result = await measure(options, `turn-${turn}-${name}`, program);
      results.get(name)?.push(result);
      const figures = Object.entries(rows).map(([row, of]) => `${row} ${of(result).toFixed(2)}`);
      console.log(`turn ${turn + 1}, ${name}: ${figures.join(', ')}`);
    }
  }
  return results;
}

/** The median of each build, and in brackets the least and the greatest ratio to the first one in the same turn. */
function print(results: ReadonlyMap<string, Result[]>): void {
  const [first = []] = results.values();
  console.log(
    `\n| build | ${Object.keys(rows).join(' | ')} |\n| --- | ${Object.keys(rows)
      .map(() => '---')
      .join(' | ')} |`,
  );
  for (const [name, own] of results) {
    const cells = Object.values(rows).map((of) => {
      const ratios = own.map((result, turn) => of(result) / of(first[turn] ?? result));
      const spread = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
      return `${median(own.map(of)).toFixed(2)}, ×${median(ratios).toFixed(2)} (${spread})`;
    });
    console.log(`| ${name} | ${cells.join(' | ')} |`);
  }
}

function buildOf(text: string): Build {
  const [, name, program] = /^([a-z0-9-]+)=(.+)$/.exec(text) ?? [];
  if (name === undefined || program === undefined) {
    throw new InvalidArgumentError(
      "NAME=CMD is expected, and NAME of a-z, 0-9 and -, since it is part of claims' names.",
    );
  }
  return { name, command: program };
}

await main();
