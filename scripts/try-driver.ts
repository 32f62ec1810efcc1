/** `npm run try-driver`: see `npm run try-driver -- --help`. */
import { writeFileSync } from 'node:fs';
import { findPrograms } from '../test/support/control-plane/programs.ts';
import { otherSidecar } from '../test/support/go-sidecar/go-sidecar.ts';
import { logFile } from '../test/support/stage.ts';
import { showing } from './terminal-progress.ts';
import { checkTried, driverCommand } from './try-driver/driver-program.ts';
import { differences, type Results, tableText, unexplained } from './try-driver/compare.ts';
import { parseOptions, type TryOptions } from './try-driver/options.ts';
import type { Candidate } from './try-driver/stage.ts';
import { tellStory } from './try-driver/story.ts';

async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2));
  const { profile, program, target, dump, logFolder } = options;
  if (options.check) return await checkTried(profile, await driverCommand(profile, options.driver), { logFolder });
  const peer = await otherSidecar(options.peer);
  if (target === 'kubernetes') await findPrograms(); // compiles them the first time, with a progress line of its own
  const command = await driverCommand(profile, options.driver);
  console.log(`${profile.name}: ${profile.about}, on ${target}\nours: ${program}\npeer: ${peer}`);
  const ours = await tell(options, command, { name: 'ours', command: program });
  const theirs = await tell(options, command, { name: 'peer', command: peer });
  if (dump !== undefined) writeDump(dump, ours, theirs);
  const found = differences(ours, theirs);
  const bad = unexplained(found).length;
  console.log(`\n${tableText(ours, theirs, found)}\n\n${found.length - bad} differences are meant, ${bad} are not`);
  return bad > 0 ? 1 : 0;
}

async function tell(
  { profile, target, logFolder }: TryOptions,
  command: readonly string[],
  candidate: Candidate,
): Promise<Results> {
  let step = '';
  const { results, stage } = await showing(
    () => `${candidate.name}: ${step}`,
    () =>
      tellStory({
        candidate,
        profile,
        driverCommand: command,
        target,
        at: (name) => (step = name),
        keepLog: logFile(logFolder, `${profile.name}.log`),
      }),
  );
  const { name, version, capabilities } = stage.info;
  console.log(
    `${candidate.name}: done, driver ${name} ${version || 'without version'}: ${[...capabilities].join(' ')}`,
  );
  return results;
}

function writeDump(file: string, ours: Results, peer: Results): void {
  writeFileSync(file, JSON.stringify({ ours: Object.fromEntries(ours), peer: Object.fromEntries(peer) }, null, 2));
}

process.exitCode = await main();
