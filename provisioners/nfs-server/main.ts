/** The edge of the process: arguments and environment in, exit code out. */
import './thread-pool.ts'; // first
import { type LogLevel, textLogger } from '../../src/index.ts';
import { parseFlags, UsageError, usageText } from './flags.ts';
import { run } from './run.ts';
import { readSettings } from './settings.ts';

/** As those of `-v` in Kubernetes: calls from 2 on, everything from 5 on. */
const levelOf = (verbosity: number): LogLevel => (verbosity >= 5 ? 'trace' : verbosity >= 2 ? 'debug' : 'info');

async function main(): Promise<number> {
  const flags = parseFlags(process.argv.slice(2));
  if (flags === undefined) {
    process.stderr.write(usageText());
    return 0;
  }
  const settings = readSettings(flags, process.env);
  return await run(settings, textLogger({ level: levelOf(settings.verbosity) }));
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`nfs-provisioner: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
