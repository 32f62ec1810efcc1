import type { Clock } from '../base/clock.ts';
import type { SecretString } from '../base/secret-string.ts';
import type { ControllerCalls } from './csi-calls.ts';
import type { CallOptions } from './unary-call.ts';

/** Max calls before a volume counts as orphaned. */
const attempts = 5;

/**
 * Deletes a volume that was just made and does not fit the request: up to five calls without a pause, all within one timeout.
 *
 * @throws {CsiCallError} of the last call.
 */
export async function cleanUpVolume(options: {
  controller: ControllerCalls;
  clock: Clock;
  timeoutMs: number;
  volumeId: string;
  secrets: Record<string, SecretString>;
  /** Of every call, but for its deadline. */
  call: CallOptions;
}): Promise<void> {
  const { controller, clock, volumeId, secrets, call } = options;
  const end = clock.monotonicMs() + options.timeoutMs;
  for (let attempt = 1; ; attempt += 1) {
    try {
      const timeoutMs = end - clock.monotonicMs();
      await controller.deleteVolume({ volume_id: volumeId, secrets }, { ...call, timeoutMs });
      return;
    } catch (error) {
      if (attempt >= attempts) throw error;
    }
  }
}
