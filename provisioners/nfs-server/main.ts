/** The edge of the process: arguments and environment in, exit code out. */
import './thread-pool.ts'; // first
import { type LogLevel, textLogger } from '../../src/index.ts';
import { SubcommandError } from '../shared-audit/storage-audit-command.ts';
import { auditExports } from './audit-command.ts';
import { leadingFlags, parseFlags, UsageError, usageText } from './flags.ts';
import { run } from './run.ts';
import { readSettings, type Settings } from './settings.ts';

/** As those of `-v` in Kubernetes: calls from 2 on, everything from 5 on. */
const levelOf = (verbosity: number): LogLevel => (verbosity >= 5 ? 'trace' : verbosity >= 2 ? 'debug' : 'info');

async function audit(settings: Settings, args: readonly string[]): Promise<number> {
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => ending.abort(new Error('it was interrupted')));
  }
  const { env: environment, stdin, stdout, stderr } = process;
  const call = { program: 'nfs-provisioner audit', args, environment, stdin, stdout, stderr, signal: ending.signal };
  return await auditExports(call, settings);
}

async function main(): Promise<number> {
  const args = process.argv.slice(2);
  const { flags: ofAudit, rest: [subcommand, ...behind] = [] } = leadingFlags(args) ?? {};
  if (ofAudit !== undefined && subcommand === 'audit') return await audit(readSettings(ofAudit, process.env), behind);
  const flags = parseFlags(args);
  if (flags === undefined) {
    process.stderr.write(usageText());
    return 0;
  }
  const settings = readSettings(flags, process.env);
  return await run(settings, textLogger({ level: levelOf(settings.verbosity) }));
}

function exitCodeOf(error: unknown): number {
  if (error instanceof SubcommandError) return error.exitCode;
  return error instanceof UsageError && !process.argv.includes('audit') ? 2 : 1; // 2 of an audit: findings
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`nfs-provisioner: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = exitCodeOf(error);
}
