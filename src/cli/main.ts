/** The edge of the process: arguments, environment and signals in, exit code out; nothing else. */
import { writeSync } from 'node:fs';
import { systemClock } from '../base/clock.ts';
import { CommandLineError, parseCommandLine, reportExit } from './command-line.ts';
import { ExitError, exitCodes } from '../run/exit.ts';
import { listenForShutdown } from '../run/shutdown.ts';
import { createLogger, type LoggingConfig, type ProcessLogger } from './logging.ts';
import { runSidecar } from './run.ts';
import { type FoundSubcommand, runSubcommand } from './subcommand-call.ts';
import { findSubcommand, withHelpFlag } from './subcommands.ts';
import { version } from './program.ts';

/** Runs the program; resolves at its end, with `process.exitCode` set. To be called once. */
export async function main(): Promise<void> {
  const byNpm = process.env['npm_lifecycle_event'] === 'start'; // from a checkout, where the program has no name of its own
  const argv0 = byNpm ? 'npm start --' : (process.argv[1] ?? 'csi-provisioner');
  const args = withHelpFlag(process.argv.slice(2));
  const run = await runFoundSubcommand(argv0, args);
  if (run === undefined) await beSidecar(argv0, args);
  else process.exitCode = run.exitCode;
}

/** @returns undefined where the command line asks for the sidecar. */
async function runFoundSubcommand(argv0: string, args: readonly string[]): Promise<{ exitCode: number } | undefined> {
  let found: FoundSubcommand | undefined;
  try {
    found = findSubcommand(argv0, args);
  } catch (error) {
    if (!(error instanceof ExitError)) throw error;
    return { exitCode: reportExit(error, { logger: createLogger(plainLogging), writeError }) };
  }
  return found === undefined ? undefined : { exitCode: await runSubcommand(found, process) };
}

/** Until the flags were understood. */
const plainLogging: LoggingConfig = { format: 'text', verbosity: 0 };

function writeError(text: string): void {
  writeSync(2, text);
}

/** Without the gate for releasing the lease nothing is drained: killed by the signal, or exit code 2 as process 1. */
function dieLikeTheOriginal(signal: NodeJS.Signals): void {
  if (process.pid === 1) process.exit(exitCodes.usage);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

/**
 * How long something, such as a credential plugin that hangs, may keep the process alive once the work has ended, in
 * milliseconds.
 */
const lingerMs = 1000;

async function beSidecar(argv0: string, args: readonly string[]): Promise<void> {
  let logger: ProcessLogger | undefined;
  try {
    const parsed = parseCommandLine({ argv0, args, environment: process.env, version });
    if (parsed.kind === 'print') {
      writeSync(parsed.stream === 'stdout' ? 1 : 2, parsed.text);
      return;
    }
    const { config, notices } = parsed;
    logger = createLogger(config.logging);
    for (const { level, fields, message } of notices) logger[level](fields, message);
    using shutdown = listenForShutdown({
      signals: process,
      clock: systemClock,
      logger,
      callTimeoutMs: config.csiTimeoutMs,
      dieAtOnce: config.featureGates.releaseLeaderElectionOnExit ? undefined : dieLikeTheOriginal,
      onSecondSignal: () => process.exit(exitCodes.failure),
      onOverdue: () => process.exit(exitCodes.failure),
    });
    try {
      await runSidecar({ config, environment: process.env, shutdown, clock: systemClock, logger });
    } catch (error) {
      if (error !== shutdown.stop.reason || shutdown.failure !== undefined) throw error;
    }
  } catch (error) {
    if (!(error instanceof ExitError)) throw error;
    const asked = error instanceof CommandLineError ? error.logging : null;
    process.exitCode = reportExit(error, {
      logger: logger ?? createLogger(asked ?? plainLogging),
      writeError,
    });
  } finally {
    setTimeout(() => process.exit(), lingerMs).unref();
  }
}
