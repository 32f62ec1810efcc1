/**
 * The program of a child process: the sidecar by its own wiring, on a clock that stands still, so that nothing makes it work but
 * what comes from outside. Each message gets a `Report`; `start` begins a new record. `record-claim.ts` is the parent.
 */
import { ManualClock } from '../fakes/manual-clock.ts';
import { EnteredFiles, type Entry } from './entered-files.ts';

export interface Report {
  entries: readonly Entry[];
  log: string;
}

const [socketPath = '', apiUrl = '', ...flags] = process.argv.slice(2);
const entered = new EnteredFiles();
const { Program } = await import('../program.ts'); // and with it all sources
const program = new Program({ socketPath, apiUrl, flags, environment: process.env, clock: new ManualClock() });

process.on('message', (request) => {
  if (request === 'start') entered.start();
  const report: Report = { entries: entered.entries, log: program.lines.join('') };
  process.send?.(report);
});
process.on('disconnect', () => process.exit());
