import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { CsiCallError } from './call-error.ts';
import type { CsiCalls } from './csi-calls.ts';
import { errorMessage } from './error-message.ts';

/** Pause between attempts, counted from the start of the one before, in milliseconds. */
const pauseMs = 1000;

/**
 * Probes the driver until it is ready, once a second and without a limit. An absent `ready` means ready; "not ready"
 * and a timed-out call are retried (CSI spec, `Probe`).
 *
 * @throws {Error} `CSI driver probe failed: ...` for any other failure; the signal's reason when it aborts.
 */
export async function probeUntilReady(options: {
  calls: Pick<CsiCalls, 'probe'>;
  logger: Logger;
  clock: Clock;
  signal?: AbortSignal;
}): Promise<void> {
  const { calls, logger, clock, signal } = options;
  for (;;) {
    const start = clock.monotonicMs();
    logger.info({}, 'Probing CSI driver for readiness');
    if (await isReady(calls, logger, signal)) return;
    await clock.sleep(start + pauseMs - clock.monotonicMs(), signal === undefined ? {} : { signal });
  }
}

async function isReady(calls: Pick<CsiCalls, 'probe'>, logger: Logger, signal?: AbortSignal): Promise<boolean> {
  try {
    const { ready } = await calls.probe({ signal });
    // A BoolValue with the default value arrives without its inner field.
    if (ready === undefined || ready.value === true) return true;
    logger.info({}, 'CSI driver is not ready');
    return false;
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof CsiCallError && error.codeName === 'DeadlineExceeded') {
      logger.info({}, 'CSI driver probe timed out');
      return false;
    }
    throw new Error(`CSI driver probe failed: ${errorMessage(error)}`, { cause: error });
  }
}
