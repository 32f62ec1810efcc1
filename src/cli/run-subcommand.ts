/** A subcommand on the streams and signals of a process. */
import { printable } from '../base/printable.ts';
import { type Subcommand, type SubcommandCall, SubcommandError } from './subcommand-call.ts';

/** A subcommand with the part of its call that the command line decides. */
export interface FoundSubcommand extends Pick<SubcommandCall, 'program' | 'args'> {
  readonly run: Subcommand;
}

/**
 * Exit codes when standard output can no longer be written. A reader that goes away, such as `head`, ends the process in silence,
 * as SIGPIPE ends other programs. Never 0, which stands for a good result.
 */
const outputCodes = { readerGone: 128 + 13, failed: 3 } as const;

/** Runs a subcommand on the streams and signals of a process. @returns the exit code. */
export async function runSubcommand(
  { run, program, args }: FoundSubcommand,
  process: Pick<NodeJS.Process, 'env' | 'stdin' | 'stdout' | 'stderr' | 'once' | 'exit'>,
): Promise<number> {
  const { stdin, stdout, stderr, env: environment } = process;
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    const isReaderGone = error.code === 'EPIPE';
    if (!isReaderGone) stderr.write(`${program}: the output cannot be written: ${error.message}\n`);
    process.exit(isReaderGone ? outputCodes.readerGone : outputCodes.failed);
  });
  stderr.on('error', () => undefined);
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => stop.abort(new Error(`received ${signal}`)));
  }
  try {
    return await run({ program, args, environment, stdin, stdout, stderr, signal: stop.signal });
  } catch (error) {
    if (!(error instanceof SubcommandError)) throw error;
    stderr.write(`${program}: ${error.message.split('\n').map(printable).join('\n')}\n`);
    return error.exitCode;
  }
}
