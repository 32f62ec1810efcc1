import type { Logger } from '../../base/logger.ts';
import { trustSystemCertificates } from '../../base/system-trust.ts';
import { version } from '../program.ts';
import type { OtlpTraces } from './otlp-traces.ts';
import { tracesConfig, TracesConfigError } from './traces-config.ts';

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
