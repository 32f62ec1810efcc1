/** `npm run chaos`: see `npm run chaos -- --help`. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { bundle, bundled } from '../test/support/program-file.ts';
import { otherSidecar } from '../test/support/go-sidecar/go-sidecar.ts';
import { isClean, reasons } from './chaos/count.ts';
import { parseOptions } from './chaos/options.ts';
import { type ChaosReport, runChaos, secondsText } from './chaos/run.ts';

async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2));
  // What is started as the sidecar, here and in the end-to-end tests.
  if (options.bundle) {
    if (!existsSync(bundle)) {
      console.error(`--bundle: there is no ${bundle}. Run npm run build first`);
      return 2;
    }
    process.env['E2E_SIDECAR'] = bundled;
  }
  const { claims, kills, cluster, election, journal, disturbances } = options;
  const other = await otherSidecar(options.other);
  console.log(`${claims} claims and ${kills} kills on ${cluster}, ${election ? 'with' : 'without'} election, \
journal ${journal ?? 'as by default'}, seed ${JSON.stringify(options.seed)}
disturbances: ${[...disturbances].join(', ')}`);
  const logFolder = options.logFolder ?? mkdtempSync(path.join(tmpdir(), 'chaos-logs-'));
  let isGood = false;
  try {
    const report = await runChaos({ ...options, logFolder, other }, console.log);
    print(report);
    const { findings, audit } = report;
    isGood = isClean(findings) && audit.deleted === audit.leaked && audit.destroyed.length === 0;
  } finally {
    if (isGood && options.logFolder === undefined) rmSync(logFolder, { recursive: true });
    else console.log(`\nlogs: ${logFolder}`);
  }
  return isGood ? 0 : 1;
}

function print({
  findings,
  claims,
  unwanted,
  kills,
  kept,
  endings,
  chaosMs,
  settledMs,
  audit,
  apiRestarts,
}: ChaosReport): void {
  const share = (number: number): string => `${((number / claims) * 100).toFixed(2)} %`;
  const rows = [
    ['claims', `${claims}, of which ${unwanted} were deleted`],
    ['kept', `${kept} volumes, on purpose`],
    ['kills', `${kills}; ends of the sidecar: ${[...endings].map(([how, times]) => `${how} ${times}`).join(', ')}`],
    ['restarts', `${apiRestarts} of the API server`],
    ['time', `${secondsText(chaosMs)}, settled after ${secondsText(settledMs)}`],
    ...Object.entries(findings).map(([name, list]: [string, string[]]) => [
      name,
      name === 'unproved' ? `${list.length}, ${share(list.length)} of the claims` : String(list.length),
    ]),
    [
      'audit',
      `${audit.leaked} reported as leaked, ${audit.deleted} of them deleted; ${audit.destroyed.length} destroyed`,
    ],
  ];
  console.log('');
  for (const [name = '', value = ''] of rows) console.log(`${name.padEnd(10)}${value}`);
  for (const [name, list] of Object.entries(findings) as [string, string[]][]) {
    const shown = list.slice(0, 10);
    if (shown.length > 0) console.log(`\n${name}:\n${shown.map((line) => `  ${line}`).join('\n')}`);
    if (shown.length < list.length) console.log(`  and ${list.length - shown.length} more`);
  }
  for (const [name, list] of Object.entries({
    stuck: findings.stuck,
    unproved: findings.unproved,
    audit: audit.refusals,
  })) {
    if (list.length > 0) console.log(`\n${name}, by reason:`);
    for (const [reason, number] of reasons(list)) console.log(`  ${number} ${reason}`);
  }
}

process.exitCode = await main();
