/** `npm run kept`: see `npm run kept -- --help`. */
import { otherSidecar } from '../test/support/go-sidecar/go-sidecar.ts';
import { parseOptions } from './chaos/kept-options.ts';
import { runKept } from './chaos/kept-story.ts';
import { secondsText } from './chaos/run.ts';

async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2));
  const { sidecar } = options;
  const other = await otherSidecar(options.other);
  console.log(`${options.records} open records on ${options.cluster}, mode ${options.mode}, --timeout=${options.timeoutMs / 1000}s
sidecar: ${sidecar}${other === undefined ? '' : `\nin between: ${other}`}`);
  process.env['E2E_SIDECAR'] = sidecar;
  const { records, kills, awayMs, decidedMs, findings } = await runKept({ ...options, other }, console.log);
  const { destroyed, unproved, stuck, pending } = findings;
  console.log(`
records   ${records} of saved volumes, open at ${kills} kills
time      away for ${secondsText(awayMs)}, decided within ${secondsText(decidedMs)}, at most
destroyed ${destroyed.length}
unproved  ${unproved.length}
stuck     ${stuck.length}
open      ${pending.length}`);
  return destroyed.length > 0 || pending.length > 0 ? 1 : 0;
}

process.exitCode = await main();
