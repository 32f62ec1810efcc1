/** The flags of the sidecar, given to a subcommand. */
import { buildConfig, type Config } from './config.ts';
import { applyFeatureGates } from './feature-gates.ts';
import { checkLogging } from './logging-flags.ts';
import { parseFlags } from './parse-flags.ts';
import type { SubcommandCall } from './subcommand-call.ts';

/** As the sidecar would run with these. @throws {ExitError} as the sidecar, and {RangeError} for what is no flag. */
export function sidecarConfig({ program, environment }: SubcommandCall, args: readonly string[]): Config {
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
