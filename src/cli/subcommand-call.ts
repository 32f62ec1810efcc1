/** What every subcommand is given, how it reads its arguments, and how it talks to a person. */
import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { Command, CommanderError } from 'commander';
import { systemClock } from '../base/clock.ts';
import { GoDurationError, millisecondsOf, parseGoDuration } from '../base/go-duration.ts';
import { printable } from '../base/printable.ts';
import { type Progress, progressLine } from '../base/progress.ts';
import { ExitError } from '../run/exit.ts';

/** A stream that text is written to. */
export interface TextOutput {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  /** Width of the terminal, in characters. */
  readonly columns?: number;
}

/** Where input comes from; a terminal or not. */
export type TextInput = NodeJS.ReadableStream & { readonly isTTY?: boolean };

/** One run of a subcommand. */
export interface SubcommandCall {
  /** How it was called, for help and errors, such as `csi-provisioner why`. */
  readonly program: string;
  /** The arguments behind the subcommand. */
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** For questions. */
  readonly stdin: TextInput;
  readonly stdout: TextOutput;
  readonly stderr: TextOutput;
  /** Aborted at the first SIGINT or SIGTERM; the second one ends the process. */
  readonly signal: AbortSignal;
}

/**
 * Runs a subcommand to its end.
 *
 * @returns the exit code of the process.
 * @throws {SubcommandError} when it cannot be run.
 */
export type Subcommand = (call: SubcommandCall) => Promise<number>;

/** A subcommand cannot be run as it was called; the message says what to do. */
export class SubcommandError extends Error {
  override readonly name = 'SubcommandError';
  readonly exitCode: number;

  constructor(message: string, options: { exitCode: number; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.exitCode = options.exitCode;
  }
}

/** A commander command without actions whose help and errors go through `readArguments`. */
export function subcommandParser(call: SubcommandCall): Command {
  return new Command(call.program)
    .exitOverride()
    .showSuggestionAfterError()
    .helpOption('-h, --help', 'print this help')
    .configureOutput({ writeOut: (text) => call.stdout.write(text), writeErr: () => undefined })
    .configureHelp({ helpWidth: 100 })
    .action(() => undefined);
}

/**
 * Lets the parser read the arguments of the call.
 *
 * @param options.usageCode - the exit code for arguments that cannot be understood.
 * @returns false when help was asked for and printed: nothing is left to do.
 * @throws {SubcommandError} for arguments that cannot be understood.
 */
export function readArguments(parser: Command, call: SubcommandCall, { usageCode }: { usageCode: number }): boolean {
  try {
    parser.parse(call.args, { from: 'user' });
    return true;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === 'commander.helpDisplayed') return false;
    throw usageError(call, error.message.replace(/^error: /, ''), { usageCode, cause: error });
  }
}

/** The error for arguments that cannot be understood: it points to the help. */
export function usageError(
  call: SubcommandCall,
  problem: string,
  { usageCode, cause }: { usageCode: number; cause?: unknown },
): SubcommandError {
  const text = problem.replaceAll(/\s*\n\s*/g, ' ').replace(/\.$/, '');
  return new SubcommandError(`${text}. See ${call.program} --help`, { exitCode: usageCode, cause });
}

/**
 * A text with commands to copy, which are those of the program as it was called: such as the kubectl plugin, or npm in a checkout.
 *
 * @param subcommand - the one that prints the text.
 */
export function asCalled(text: string, subcommand: string, { program }: Pick<SubcommandCall, 'program'>): string {
  const caller = program.slice(0, -subcommand.length);
  return text.replaceAll(/\bcsi-provisioner (?=(?:why|audit|journal|preflight)\b)/g, caller);
}

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

/** A duration, in milliseconds. @throws {RangeError} for one that is negative, or none. */
export function durationOf(flag: string, text: string): number {
  try {
    const duration = parseGoDuration(text);
    if (duration >= 0n) return millisecondsOf(duration);
  } catch (error) {
    if (!(error instanceof GoDurationError)) throw error;
  }
  throw new RangeError(`${flag} must be a duration such as 1m or 90s, got ${JSON.stringify(text)}`);
}

/** The value of `--output`. @throws {RangeError} for any other. */
export function outputOf(text: string): 'table' | 'json' {
  if (text === 'table' || text === 'json') return text;
  throw new RangeError(`--output must be table or json, got ${JSON.stringify(text)}`);
}

/** `NAMESPACE/NAME`. @throws {RangeError} for anything else. */
export function namespacedNameOf(flag: string, text: string): { namespace: string; name: string } {
  const [namespace = '', name = '', ...rest] = text.split('/');
  if (namespace !== '' && name !== '' && rest.length === 0) return { namespace, name };
  throw new RangeError(`${flag} must be NAMESPACE/NAME, got ${JSON.stringify(text)}`);
}

/** What `read` returns. @throws {SubcommandError}, which points to the help, for its `RangeError` and `ExitError`. */
export function readValues<T>(call: SubcommandCall, { usageCode }: { usageCode: number }, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof ExitError) throw usageError(call, error.line, { usageCode, cause: error });
    if (error instanceof RangeError) throw usageError(call, error.message, { usageCode });
    throw error;
  }
}

/**
 * Asks the operator for a "yes".
 *
 * @param heading - one line, without a line break.
 * @param items - what it is about, a line each.
 * @returns false for any other answer, and at the end of the input.
 */
export async function isAgreedTo(
  { stdin, stderr, signal }: SubcommandCall,
  { heading, items, question }: { heading: string; items: readonly string[]; question: string },
): Promise<boolean> {
  stderr.write(`${heading}\n`);
  for (const item of items) stderr.write(`  ${printable(item)}\n`);
  const lines = createInterface({ input: stdin });
  try {
    stderr.write(`${question} Type "yes": `);
    const ended = once(lines, 'close', { signal }).then(() => '');
    const answer = await Promise.race([lines.question('', { signal }), ended]);
    return answer.trim().toLowerCase() === 'yes';
  } finally {
    lines.close();
  }
}

/** What a subcommand is doing, on standard error: one line on a terminal, plain lines elsewhere. */
export function stderrProgress({ stderr }: Pick<SubcommandCall, 'stderr'>): Progress {
  const columns = stderr.isTTY === true ? (stderr.columns ?? 80) : undefined;
  return progressLine({ write: (text) => stderr.write(text), columns, clock: systemClock });
}
