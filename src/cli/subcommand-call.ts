/** What every subcommand is given, and how it reads its arguments. */
import { Command, CommanderError } from 'commander';

/** A stream that text is written to. */
export interface TextOutput {
  write(text: string): unknown;
  /** It is a terminal. */
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
