/** `npm run grey`: see `npm run grey -- --help`. */
import { findPrograms } from '../test/support/control-plane/programs.ts';
import { otherSidecar } from '../test/support/go-sidecar/go-sidecar.ts';
import { failed, isMissed, type TableLine, tableText } from './grey/goals.ts';
import { type GreyOptions, parseOptions } from './grey/options.ts';
import { type Results, type Scenario, scenarios, shortNames } from './grey/scenarios.ts';
import { logFile } from '../test/support/stage.ts';
import type { Candidate } from './grey/stage.ts';
import { showing } from './terminal-progress.ts';

async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2), scenarios, shortNames);
  const { ours, target, short, names } = options;
  const peer = options.peer && { ...options.peer, command: await otherSidecar(options.peer.command) };
  if (target === 'kubernetes') await findPrograms(); // compiles them the first time, with a progress line of its own
  console.log(`${short ? 'the short form ' : ''}on ${target}
ours: ${ours.command}${peer === undefined ? '' : `\npeer: ${[peer.command, ...peer.flags].join(' ')}`}\n`);
  const chosen = scenarios.filter(({ name }) => names.includes(name));
  const lines = chosen.map((): TableLine[] => []);
  for (const group of groups(chosen, short)) {
    const results = await measureAll(options, group, ours);
    const peerResults = peer && (await measureAll(options, group, peer));
    for (const [index, scenario] of group.entries())
      lines[chosen.indexOf(scenario)] = tableLines(scenario, short, results[index], peerResults?.[index]);
  }
  console.log(`\n${tableText(lines.flat(), { hasPeer: peer !== undefined })}`);
  return lines.flat().some(isMissed) ? 1 : 0;
}

/** The scenarios that run at the same time: one each, but in the short form all those together that mostly wait. */
function groups(chosen: readonly Scenario[], short: boolean): Scenario[][] {
  const waiting = chosen.filter(({ waits }) => short && waits === true);
  return [waiting, ...chosen.filter((each) => !waiting.includes(each)).map((each) => [each])];
}

function tableLines({ lines }: Scenario, short: boolean, ours?: Results, peer?: Results): TableLine[] {
  return lines.map(({ what, goal, shortGoal = goal }, index) => ({
    what,
    goal: short ? shortGoal : goal,
    ours: ours?.[index],
    peer: peer?.[index],
  }));
}

async function measureAll(options: GreyOptions, group: readonly Scenario[], candidate: Candidate): Promise<Results[]> {
  if (group.length === 0) return [];
  return await showing(
    () => `${group.map(({ name }) => name).join(', ')}: ${candidate.name}`,
    () => Promise.all(group.map((scenario) => measure(options, scenario, candidate))),
  );
}

/** One scenario with one sidecar; a failure becomes the result of all its lines. */
async function measure(
  { target, short, logFolder }: GreyOptions,
  { name, lines, measure: run }: Scenario,
  candidate: Candidate,
): Promise<Results> {
  const startedMs = performance.now();
  const keepLog = logFile(logFolder, `${name}.log`);
  let results: Results;
  try {
    results = await run({ candidate, target, short, keepLog });
  } catch (error) {
    keepLog(`${candidate.name} failed`, error instanceof Error ? (error.stack ?? error.message) : String(error));
    results = lines.map(() => failed(error));
  }
  const texts = results.map((result) => result?.text ?? '-').join(', ');
  console.log(`${name}, ${candidate.name}: ${texts}; ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
  return results;
}

process.exitCode = await main();
