import { formatGoDuration } from '../base/go-duration.ts';
import { goQuote } from '../base/go-quote.ts';
import { failureExit } from '../run/exit.ts';
import type { FlagValues } from './flags.ts';
import type { LoggingConfig } from './logging.ts';

/**
 * Checks the logging flags together. Some exist only to be accepted at their defaults, as in the original, whose
 * gate for them cannot be switched on.
 *
 * @throws {ExitError} code 1 that names every problem.
 */
export function checkLogging(values: FlagValues): LoggingConfig {
  const format = values['logging-format'];
  const problems = [
    ...(format === 'text' || format === 'json'
      ? []
      : [`format: Invalid value: ${goQuote(format)}: Unsupported log format`]),
    ...(values['log-flush-frequency'] > 0n
      ? []
      : [
          `flushFrequency: Invalid value: "${formatGoDuration(values['log-flush-frequency'])}": Must be greater than zero`,
        ]),
    ...(values.vmodule.length > 0 && format !== '' && format !== 'text'
      ? ['vmodule: Forbidden: Only supported for text log format']
      : []),
    ...disabledOptions(values),
  ];
  if ((format === 'text' || format === 'json') && problems.length === 0) return { format, verbosity: values.v };
  const err = problems.length === 1 ? (problems[0] ?? '') : `[${problems.join(', ')}]`;
  throw failureExit('LoggingConfiguration is invalid', { err });
}

function disabledOptions(values: FlagValues): string[] {
  const disabled = {
    'text.splitStream': values['log-text-split-stream'],
    'text.infoBufferSize': values['log-text-info-buffer-size'] !== 0n,
    'json.splitStream': values['log-json-split-stream'],
    'json.infoBufferSize': values['log-json-info-buffer-size'] !== 0n,
  };
  return Object.entries(disabled)
    .filter(([, asked]) => asked)
    .map(([option]) => `options.${option}: Forbidden: Feature LoggingAlphaOptions is disabled`);
}
