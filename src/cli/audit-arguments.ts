/** The arguments of `csi-provisioner audit`: a few of its own, and those of the sidecar. */
import { GoDurationError, millisecondsOf, parseGoDuration } from '../base/go-duration.ts';
import { ExitError } from '../run/exit.ts';
import { buildConfig, type Config } from './config.ts';
import { applyFeatureGates } from './feature-gates.ts';
import { checkLogging } from './logging-flags.ts';
import { parseFlags } from './parse-flags.ts';
import { readArguments, type SubcommandCall, subcommandParser, usageError } from './subcommand-call.ts';

export interface AuditArguments {
  /** As the sidecar would run. */
  config: Config;
  context: string | undefined;
  secondLookMs: number;
  output: 'table' | 'json';
  /** Ids to be deleted. */
  ids: readonly string[];
  /** Nobody is asked. */
  isAgreed: boolean;
}

interface OwnFlags {
  secondLook: string;
  output: string;
  context?: string;
  delete?: string[];
  yes?: boolean;
}

const notes = `
All flags of the sidecar are accepted as well. These have an effect: --csi-address, --timeout,
--kubeconfig, --intent-journal, --leader-election-namespace, --node-deployment with the variable
NODE_NAME, and -v.
The others have no effect: the arguments of the sidecar can be copied.

Exit codes: 0 nothing is lost or stuck; 1 wrong arguments, or a volume that must not be deleted;
2 volumes are lost or records stuck; 3 not everything could be checked.`;

/**
 * Reads the arguments.
 *
 * @returns undefined when help was asked for and printed.
 * @throws {SubcommandError} for arguments that cannot be understood.
 */
export function auditArguments(call: SubcommandCall, { usageCode }: { usageCode: number }): AuditArguments | undefined {
  const parser = subcommandParser(call)
    .description(
      "Compares the driver's volumes with PersistentVolumes and the intent journal. Changes nothing by itself.",
    )
    .option('--second-look <duration>', 'pause before findings are checked a second time; 0: no second look', '1m')
    .option('-o, --output <format>', 'table or json', 'table')
    .option('--delete <id...>', 'delete these volumes; stuck records must name them')
    .option('--yes', 'delete without confirmation')
    .option('--context <name>', 'context in the kubeconfig (default: its current one)')
    .addHelpText('after', notes)
    .allowUnknownOption()
    .allowExcessArguments();
  if (!readArguments(parser, call, { usageCode })) return undefined;
  const flags = parser.opts<OwnFlags>();
  try {
    return {
      config: configOf(call, parser.args),
      context: flags.context,
      secondLookMs: durationOf(flags.secondLook),
      output: outputOf(flags.output),
      ids: idsOf(flags.delete),
      isAgreed: flags.yes ?? false,
    };
  } catch (error) {
    if (error instanceof ExitError) throw usageError(call, error.line, { usageCode, cause: error });
    if (error instanceof RangeError) throw usageError(call, error.message, { usageCode });
    throw error;
  }
}

/** @throws {ExitError} as the sidecar. */
function configOf({ program, environment }: SubcommandCall, args: readonly string[]): Config {
  const parsed = parseFlags(program, args);
  if (parsed.kind === 'help') throw new RangeError('help is --help');
  const { values, given, ignored } = parsed;
  if (ignored.length > 0) throw new RangeError(`unexpected argument ${JSON.stringify(ignored[0])}`);
  const { gates } = applyFeatureGates(values['feature-gates']);
  return buildConfig({
    argv0: program,
    values,
    given,
    environment,
    logging: checkLogging(values),
    featureGates: gates,
  });
}

/** @throws {RangeError} */
function durationOf(text: string): number {
  try {
    const duration = parseGoDuration(text);
    if (duration >= 0n) return millisecondsOf(duration);
  } catch (error) {
    if (!(error instanceof GoDurationError)) throw error;
  }
  throw new RangeError(`--second-look must be a duration such as 1m or 90s, got ${JSON.stringify(text)}`);
}

/** @throws {RangeError} */
function idsOf(texts: readonly string[] = []): string[] {
  if (texts.includes('')) throw new RangeError('--delete must be followed by the ids of volumes, got an empty one');
  return [...new Set(texts)];
}

/** @throws {RangeError} */
function outputOf(text: string): 'table' | 'json' {
  if (text === 'table' || text === 'json') return text;
  throw new RangeError(`--output must be table or json, got ${JSON.stringify(text)}`);
}
