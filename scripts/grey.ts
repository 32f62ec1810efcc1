/** `npm run grey`: see `npm run grey -- --help`. */
import { failed, type Measured } from './grey/goals.ts';
import { type GreyOptions, parseOptions } from './grey/options.ts';
import { type Scenario, scenarios, shortNames } from './grey/scenarios.ts';
import { type Candidate, logKeeper } from './grey/stage.ts';
import { isMissed, type TableLine, tableText } from './grey/table.ts';
import { findPrograms } from '../test/support/control-plane/programs.ts';
import { showing } from './terminal-progress.ts';

async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2), scenarios, shortNames);
  const { ours, peer, target, short, names } = options;
  if (target === 'kubernetes') await findPrograms(); // compiles them the first time, with a progress line of its own
  console.log(`${short ? 'the short form ' : ''}on ${target}
ours: ${ours.command}${peer === undefined ? '' : `\npeer: ${[peer.command, ...peer.flags].join(' ')}`}\n`);
  const lines: TableLine[] = [];
  for (const scenario of scenarios) {
    if (!names.includes(scenario.name)) continue;
    const results = await measure(options, scenario, ours);
    const peerResults = peer && (await measure(options, scenario, peer));
    for (const [index, { what, goal, shortGoal = goal }] of scenario.lines.entries())
      lines.push({ what, goal: short ? shortGoal : goal, ours: results[index], peer: peerResults?.[index] });
  }
  console.log(`\n${tableText(lines, { hasPeer: peer !== undefined })}`);
  return lines.some(isMissed) ? 1 : 0;
}

/** One scenario with one sidecar; a failure becomes the result of all its lines. */
async function measure(
  { target, short, logFolder }: GreyOptions,
  { name, lines, measure: run }: Scenario,
  candidate: Candidate,
): Promise<readonly (Measured | undefined)[]> {
  const startedMs = performance.now();
  const keepLog = logKeeper(logFolder)(name);
  let results: readonly (Measured | undefined)[];
  try {
    results = await showing(
      () => `${name}, ${candidate.name}`,
      () => run({ candidate, target, short, keepLog }),
    );
  } catch (error) {
    keepLog(`${candidate.name} failed`, error instanceof Error ? (error.stack ?? error.message) : String(error));
    results = lines.map(() => failed(error));
  }
  const texts = results.map((result) => result?.text ?? '-').join(', ');
  console.log(`${name}, ${candidate.name}: ${texts}; ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
  return results;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? (error.stack ?? error.message) : String(error));
  process.exitCode = 1;
}
