/** The process edge of `csi-sandbox check`: flags in, a report and an exit code out. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';
import { unreadyReason } from '../cluster/driver-client.ts';
import { catalogue, chosen } from './catalogue.ts';
import { CheckFlagError, type CheckSettings, checkUsage, parseCheckFlags } from './check-flags.ts';
import { checkDriver } from './check-driver.ts';
import type { CheckResult } from './check.ts';
import { DriverProgram } from './driver-program.ts';
import { exitCode, junitText, resultText, summaryText } from './report.ts';
import type { StartNodeDriver } from './node-deployment.ts';
import { runSanity } from './sanity.ts';
import { waitForDriver } from './wait-for-driver.ts';

const suites = {
  driver: 'calls to the driver',
  kubernetes: 'claims in Kubernetes',
  answers: 'all answers',
  sanity: 'csi-sanity',
} as const;

async function main(argv: readonly string[]): Promise<number> {
  const asked = parseCheckFlags(argv);
  if (asked.kind === 'help') return print(checkUsage);
  if (asked.kind === 'list')
    return print(catalogue.map(({ id, section, title }) => `${id.padEnd(24)} ${title} [${section}]\n`).join(''));
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop.abort(signal));
  try {
    const code = await run(asked.settings, stop.signal);
    if (!stop.signal.aborted) return code;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  }
  return 128 + constants.signals[stop.signal.reason as NodeJS.Signals];
}

async function run(settings: CheckSettings, signal: AbortSignal): Promise<number> {
  const { socketPath, waitMs, logFolder } = settings;
  const note = (text: string): void => void process.stderr.write(`${text}\n`);
  if (logFolder !== undefined) mkdirSync(logFolder, { recursive: true });
  await using driver = await startDriver(settings);
  await waitForDriver({ socketPath, waitMs, signal, report: note });
  const results = await checkDriver({
    bench: settings,
    checks: chosen(settings.only),
    limitMs: settings.checkTimeoutMs,
    waitMs,
    driver,
    startNodeDriver: nodeDrivers(settings),
    logFolder,
    signal,
    report: (result) => void print(resultText(result)),
    leftBehind: note,
  });
  results.push(...(await sanityResults(settings, signal)));
  print(summaryText(results));
  writeReports(settings, results);
  return exitCode(results, settings);
}

/** Starts the driver if a command is given. @throws {CheckFlagError} when one runs already. */
async function startDriver({
  driverCommand,
  socketPath,
  logFolder,
}: CheckSettings): Promise<DriverProgram | undefined> {
  if (driverCommand === undefined) return undefined;
  if (existsSync(socketPath) && (await unreadyReason(socketPath)) === undefined) {
    throw new CheckFlagError(`--driver-command: a driver runs at ${socketPath} already; end it, or leave the flag out`);
  }
  const logFile = logFolder === undefined ? undefined : path.join(logFolder, 'driver.log');
  return DriverProgram.start({ command: driverCommand, logFile, env: environmentOf({ node: 'node-1', socketPath }) });
}

function nodeDrivers({ nodeDriverCommand: command, logFolder }: CheckSettings): StartNodeDriver | undefined {
  if (command === undefined) return undefined;
  return (place) => {
    const logFile = logFolder === undefined ? undefined : path.join(logFolder, `driver-${place.node}.log`);
    return DriverProgram.start({ command, logFile, env: environmentOf(place) });
  };
}

/** What the command of a driver finds in its environment, under the names that manifests use. */
function environmentOf({ node, socketPath }: { node: string; socketPath: string }): Record<string, string> {
  return { NODE_NAME: node, CSI_ADDRESS: socketPath };
}

/** Of its tests those that passed are counted, the others shown. */
async function sanityResults(settings: CheckSettings, signal: AbortSignal): Promise<CheckResult[]> {
  const { sanity: program } = settings;
  if (program === undefined || signal.aborted) return [];
  const results = await runSanity({ ...settings, program, signal });
  for (const result of results) if (result.status !== 'pass') print(resultText(result));
  return results;
}

function writeReports({ junit, json, strict }: CheckSettings, results: readonly CheckResult[]): void {
  if (json !== undefined) writeFileSync(json, `${JSON.stringify({ results }, null, 2)}\n`);
  if (junit === undefined) return;
  const parts = Object.entries(suites).map(([part, name]) => ({
    name,
    results: results.filter((result) => result.part === part),
  }));
  writeFileSync(junit, junitText(parts, { strict }));
}

function print(text: string): number {
  process.stdout.write(text);
  return 0;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`csi-sandbox check: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = error instanceof CheckFlagError ? 2 : 1;
}
