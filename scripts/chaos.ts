/** `npm run chaos`: see `npm run chaos -- --help`. */
import { bundled } from '../bench/bench-cluster.ts';
import { isClean, reasons } from './chaos/count.ts';
import { parseOptions, usage } from './chaos/options.ts';
import { type ChaosReport, runChaos } from './chaos/run.ts';

async function main(): Promise<number> {
  const options = readOptions();
  if (options === undefined) return 2;
  if (options === 'help') {
    process.stdout.write(usage);
    return 0;
  }
  // What is started as the sidecar, here and in the end-to-end tests.
  if (options.bundle) process.env['E2E_SIDECAR'] = bundled;
  const { claims, kills, cluster, election, journal, disturbances } = options;
  console.log(`${claims} claims and ${kills} kills on ${cluster}, ${election ? 'with' : 'without'} election, \
journal ${journal ?? 'as by default'}, seed ${JSON.stringify(options.seed)}
disturbances: ${[...disturbances].join(', ')}`);
  const report = await runChaos(options, console.log);
  print(report);
  return isClean(report.findings) ? 0 : 1;
}

/** @returns undefined for invalid ones, after a line on standard error. */
function readOptions(): ReturnType<typeof parseOptions> | undefined {
  try {
    return parseOptions(process.argv.slice(2));
  } catch (error) {
    console.error(`${(error as Error).message.replace(/\.$/, '')}. See npm run chaos -- --help`);
    return undefined;
  }
}

function print({ findings, claims, unwanted, kills, endings, chaosMs, settledMs }: ChaosReport): void {
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(0)} s`;
  const rows = [
    ['claims', `${claims}, of which ${unwanted} were deleted`],
    ['kills', `${kills}; ends of the sidecar: ${[...endings].map(([how, times]) => `${how} ${times}`).join(', ')}`],
    ['time', `${seconds(chaosMs)}, settled after ${seconds(settledMs)}`],
    ...Object.entries(findings).map(([name, list]: [string, string[]]) => [name, String(list.length)]),
  ];
  console.log('');
  for (const [name = '', value = ''] of rows) console.log(`${name.padEnd(10)}${value}`);
  for (const [name, list] of Object.entries(findings) as [string, string[]][]) {
    const shown = list.slice(0, 10);
    if (shown.length > 0) console.log(`\n${name}:\n${shown.map((line) => `  ${line}`).join('\n')}`);
    if (shown.length < list.length) console.log(`  and ${list.length - shown.length} more`);
  }
  if (findings.stuck.length > 0) console.log('\nstuck, by reason:');
  for (const [reason, number] of reasons(findings.stuck)) console.log(`  ${number} ${reason}`);
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? (error.stack ?? error.message) : String(error));
  process.exitCode = 1;
}
