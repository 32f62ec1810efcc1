import { ExitError } from '../run/exit.ts';
import { checkConfig } from './config-checks.ts';
import { buildConfig, checkNodeName, type Config, type Environment } from './config.ts';
import { applyFeatureGates, type Notice } from './feature-gates.ts';
import { singleLine } from './log-lines.ts';
import { checkLogging, type LoggingConfig, type ProcessLogger } from './logging.ts';
import { helpText, parseFlags } from './parse-flags.ts';
import { subcommandHelp } from './subcommands.ts';

/** The exit of a process whose command line cannot be used. */
export class CommandLineError extends ExitError {
  override readonly name = 'CommandLineError';
  /** The requested logging; null where its flags could not be parsed. */
  readonly logging: LoggingConfig | null;

  constructor(problem: ExitError, logging: LoggingConfig | null) {
    super(problem.line, problem);
    this.logging = logging;
  }
}

/**
 * Prints the last line of a process and returns its exit code.
 *
 * @param options.writeError - writes text to stderr, at once.
 */
export function reportExit(
  error: ExitError,
  options: { logger: ProcessLogger; writeError: (text: string) => void },
): number {
  if (error.line === '') return error.code;
  if (error.severity === 'plain') options.writeError(`${singleLine(error.line)}\n`);
  else options.logger.lastLine(error.severity, error.line, error.fields);
  return error.code;
}

/** What a command line asks for. */
export type ParsedCommandLine =
  /** Run with this configuration; `notices` are to be logged first. */
  | { readonly kind: 'run'; readonly config: Config; readonly notices: readonly Notice[] }
  /** Print this and end with code 0. */
  | { readonly kind: 'print'; readonly stream: 'stdout' | 'stderr'; readonly text: string };

/** Everything that decides what a process does. */
interface CommandLineInput {
  /** The name of the program as it was called, for help and version. */
  readonly argv0: string;
  /** The arguments behind it. */
  readonly args: readonly string[];
  readonly environment: Environment;
  /** Such as `v6.4.0`. */
  readonly version: string;
}

/**
 * Reads and checks a whole command line, in the order of the Go sidecar: syntax, logging, feature gates, `NODE_NAME`,
 * then `--version`, then everything else.
 *
 * @throws {CommandLineError} whose `logging` is set once the logging flags were understood.
 */
export function parseCommandLine(input: CommandLineInput): ParsedCommandLine {
  const { argv0, args, environment } = input;
  let logging: LoggingConfig | null = null;
  try {
    const flags = parseFlags(argv0, args);
    if (flags.kind === 'help')
      return { kind: 'print', stream: 'stderr', text: `${helpText(argv0)}\n${subcommandHelp()}` };
    const { values, given } = flags;
    logging = checkLogging(values);
    const { notices } = applyFeatureGates(values['feature-gates']);
    checkNodeName(values, environment);
    if (values.version) return { kind: 'print', stream: 'stdout', text: `${argv0} ${input.version}\n` };
    const config = buildConfig({ argv0, values, given, environment });
    return {
      kind: 'run',
      config,
      notices: [...notices, ...ignoredNotice(flags.ignored), ...checkConfig(config)],
    };
  } catch (error) {
    throw error instanceof ExitError ? new CommandLineError(error, logging) : error;
  }
}

/** Mostly a boolean's value behind a blank instead of `=`, which has no effect. */
function ignoredNotice(ignored: readonly string[]): Notice[] {
  if (ignored.length === 0) return [];
  return [{ level: 'warn', fields: { arguments: ignored }, message: 'Arguments that are not flags are ignored' }];
}
