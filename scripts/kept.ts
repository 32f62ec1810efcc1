/** `npm run kept`: see `npm run kept -- --help`. */
import { otherSidecar } from '../test/support/go-sidecar/go-sidecar.ts';
import { parseOptions, usage } from './kept/options.ts';
import { type KeptReport, runKept } from './kept/story.ts';

async function main(): Promise<number> {
  const options = readOptions();
  if (options === undefined) return 2;
  if (options === 'help') {
    process.stdout.write(usage);
    return 0;
  }
  const { records, mode, cluster, sidecar, timeoutMs } = options;
  const other = await otherSidecar(options.other);
  console.log(`${records} open records on ${cluster}, mode ${mode}, --timeout=${timeoutMs / 1000}s
sidecar: ${sidecar}${other === undefined ? '' : `\nin between: ${other}`}`);
  const report = await runKept({ ...options, other }, console.log);
  print(report);
  return report.destroyed > 0 || report.open > 0 ? 1 : 0;
}

/** @returns undefined for invalid ones, after a line on standard error. */
function readOptions(): ReturnType<typeof parseOptions> | undefined {
  try {
    return parseOptions(process.argv.slice(2));
  } catch (error) {
    console.error(`${(error as Error).message.replace(/\.$/, '')}. See npm run kept -- --help`);
    return undefined;
  }
}

function print({ records, kills, awayMs, decidedMs, destroyed, unproved, stuck, open }: KeptReport): void {
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(0)} s`;
  const rows: [name: string, value: string][] = [
    ['records', `${records} of saved volumes, open at ${kills} kills`],
    ['time', `away for ${seconds(awayMs)}, decided within ${seconds(decidedMs)}, at most`],
    ['destroyed', String(destroyed)],
    ['unproved', String(unproved)],
    ['stuck', String(stuck)],
    ['open', String(open)],
  ];
  console.log('');
  for (const [name, value] of rows) console.log(`${name.padEnd(10)}${value}`);
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? (error.stack ?? error.message) : String(error));
  process.exitCode = 1;
}
