import { readFileSync } from 'node:fs';
import type { Logger } from '../../base/logger.ts';
import { trustSystemCertificates } from '../../base/system-trust.ts';
import { version } from '../program.ts';
import type { OtlpTraces, TracesConfig } from './otlp-traces.ts';

/**
 * Starts to trace where the environment asks for it. What cannot be traced is logged and left out: a claim matters more than its
 * trace. Never rejects.
 */
export async function startTraces(options: {
  environment: Readonly<Record<string, string | undefined>>;
  /** Ends the wait for the last export. */
  end: AbortSignal;
  logger: Logger;
}): Promise<OtlpTraces | undefined> {
  const { environment, end, logger } = options;
  try {
    const config = tracesConfig(environment);
    if (config === null) return undefined;
    trustSystemCertificates();
    const { startOtlpTraces } = await import('./otlp-traces.ts'); // hundreds of kilobytes, and few processes need them
    const traces = startOtlpTraces({ config, version, end, logger });
    logger.info({ ratio: config.ratio }, 'Claims are traced');
    return traces;
  } catch (error) {
    const isKnown = error instanceof TracesConfigError;
    logger.error(isKnown ? { problem: error.message } : { err: error }, 'Nothing is traced');
    return undefined;
  }
}

const certificateFiles = ['CERTIFICATE', 'CLIENT_CERTIFICATE', 'CLIENT_KEY'].flatMap((name) => [
  `OTEL_EXPORTER_OTLP_TRACES_${name}`,
  `OTEL_EXPORTER_OTLP_${name}`,
]);

type Environment = Readonly<Record<string, string | undefined>>;

/** A variable that asks for something that is not there; traces are off then. */
export class TracesConfigError extends Error {
  override readonly name = 'TracesConfigError';

  constructor(variable: string, value: string, expected: string) {
    super(`${variable}=${JSON.stringify(value)} is not supported: ${expected}`);
  }
}

/**
 * What the usual variables of OpenTelemetry ask for (OpenTelemetry, "Environment Variable Specification"): traces are on when a
 * variable names an exporter or an endpoint, and nothing switches them off.
 *
 * @throws {TracesConfigError} naming the variable, its value and what may stand there.
 */
export function tracesConfig(environment: Environment): TracesConfig | null {
  const value = (name: string): string => environment[name]?.trim() ?? '';
  if (value('OTEL_SDK_DISABLED').toLowerCase() === 'true') return null;
  const exporter = value('OTEL_TRACES_EXPORTER');
  const endpoints = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'].filter(
    (name) => value(name) !== '',
  );
  if (exporter === 'none' || (exporter === '' && endpoints.length === 0)) return null;
  if (exporter !== '' && exporter !== 'otlp') {
    throw new TracesConfigError('OTEL_TRACES_EXPORTER', exporter, 'it must be otlp or none');
  }
  for (const name of endpoints) {
    if (!/^https?:$/.test(URL.parse(value(name))?.protocol ?? ''))
      throw new TracesConfigError(name, value(name), 'it must be a URL that begins with http:// or https://');
  }
  for (const name of certificateFiles) {
    const problem = value(name) === '' ? undefined : unreadable(value(name));
    if (problem !== undefined) throw new TracesConfigError(name, value(name), problem); // the exporter would go without it
  }
  for (const name of ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL']) {
    if (!['', 'http/protobuf'].includes(value(name)))
      throw new TracesConfigError(name, value(name), 'it must be http/protobuf, usually on port 4318');
    if (value(name) !== '') break; // the more precise one counts
  }
  const ratio = samplingRatio(value('OTEL_TRACES_SAMPLER'), value('OTEL_TRACES_SAMPLER_ARG'));
  return ratio === 0 ? null : { ratio };
}

function unreadable(file: string): string | undefined {
  try {
    readFileSync(file);
    return undefined;
  } catch (error) {
    return `it must be a file that can be read: ${(error as Error).message}`;
  }
}

function samplingRatio(sampler: string, argument: string): number {
  const name = sampler.replace(/^parentbased_/, ''); // nothing calls us, so there is no parent
  if (name === '' || name === 'always_on') return 1;
  if (name === 'always_off') return 0;
  const expected = 'it must be always_on, always_off or traceidratio, with or without parentbased_';
  if (name !== 'traceidratio') throw new TracesConfigError('OTEL_TRACES_SAMPLER', sampler, expected);
  const ratio = argument === '' ? 1 : Number(argument);
  if (ratio >= 0 && ratio <= 1) return ratio;
  throw new TracesConfigError('OTEL_TRACES_SAMPLER_ARG', argument, 'it must be a number from 0 to 1');
}
