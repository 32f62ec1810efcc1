import type { Logger } from '../../base/logger.ts';
import type { OptionalApi } from '../../csi/optional-api.ts';

/** Runs something once an optional API is served, also when that is only installed later. Never rejects. */
export async function onceServed(
  api: OptionalApi,
  { signal, logger }: { signal: AbortSignal; logger: Logger },
  run: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  try {
    await api.waitUntilPresent(signal);
    await run(signal);
  } catch (error) {
    if (!signal.aborted) logger.error({ err: error, resource: api.resource }, 'Using an optional API failed');
  }
}
