import { helpText } from './command.ts';
import { buildConfig, checkNodeName, type Config, type Environment } from './config.ts';
import { checkConfig } from './config-checks.ts';
import { ExitError } from '../run/exit.ts';
import { CommandLineError } from './command-line-exit.ts';
import { applyFeatureGates, type Notice } from './feature-gates.ts';
import type { LoggingConfig } from './logging.ts';
import { checkLogging } from './logging-flags.ts';
import { parseFlags } from './parse-flags.ts';
import { subcommandHelp } from './subcommands.ts';

/** What a command line asks for. */
export type ParsedCommandLine =
  /** Run with this configuration; `notices` are to be logged first. */
  | { readonly kind: 'run'; readonly config: Config; readonly notices: readonly Notice[] }
  /** Print this and end with code 0. */
  | { readonly kind: 'print'; readonly stream: 'stdout' | 'stderr'; readonly text: string };

/** Everything that decides what a process does. */
export interface CommandLineInput {
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
    const { gates, notices } = applyFeatureGates(values['feature-gates']);
    checkNodeName(values, environment);
    if (values.version) return { kind: 'print', stream: 'stdout', text: `${argv0} ${input.version}\n` };
    const config = buildConfig({ argv0, values, given, environment, logging, featureGates: gates });
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
