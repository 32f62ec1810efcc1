/** The flags of the sidecar, given to a subcommand. */
import { meantWords } from './argument-steps.ts';
import { buildConfig, type Config } from './config.ts';
import { applyFeatureGates } from './feature-gates.ts';
import { checkLogging } from './logging-flags.ts';
import { parseFlags } from './parse-flags.ts';
import type { SubcommandCall } from './subcommand-call.ts';

/**
 * The configuration with which the sidecar would run for these arguments.
 *
 * @param options.words - how many arguments that are no flags the subcommand reads itself. Default 0.
 * @throws {ExitError} as the sidecar, and {RangeError} for a further word.
 */
export function sidecarConfig(
  { program, environment }: SubcommandCall,
  args: readonly string[],
  { words = 0 }: { words?: number } = {},
): Config {
  const parsed = parseFlags(program, args);
  if (parsed.kind === 'help') throw new RangeError('help is --help');
  const { values, given } = parsed;
  const unexpected = meantWords(args)[words];
  if (unexpected !== undefined) throw new RangeError(`unexpected argument ${JSON.stringify(unexpected)}`);
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
