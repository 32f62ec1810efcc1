import type { Clock } from '../../base/clock.ts';
import type { Permit } from '../../base/permit.ts';
import type { SecretString } from '../../base/secret-string.ts';
import type { ControllerCalls } from '../csi-calls.ts';
import { deleteProved } from '../delete-proved.ts';
import type { BeforeDelete } from '../failing-as.ts';
import type { CallOptions } from '../unary-call.ts';

/** Max calls before a volume counts as orphaned. */
const attempts = 5;

/**
 * Deletes a volume that was just made and does not fit the request: up to five calls without a pause, all within one timeout.
 *
 * @returns what the last call failed with; undefined: the volume is deleted.
 * @throws what `beforeDelete` throws.
 */
export async function cleanUpVolume(options: {
  controller: ControllerCalls;
  clock: Clock;
  timeoutMs: number;
  volumeId: string;
  secrets: Record<string, SecretString>;
  /** Awaited before each call: the one before may have taken long, and others may use the volume by now. What it throws passes. */
  beforeDelete: BeforeDelete;
  permit?: Permit | undefined;
  /** Of every call, but for its deadline. */
  call: CallOptions;
}): Promise<unknown> {
  const { controller, clock, volumeId, secrets, call } = options;
  const end = clock.monotonicMs() + options.timeoutMs;
  for (let attempt = 1; ; attempt += 1) {
    let failure: unknown;
    await deleteProved({ ...options, signal: call.signal }, async () => {
      const timeoutMs = end - clock.monotonicMs();
      failure = await controller.deleteVolume({ volume_id: volumeId, secrets }, { ...call, timeoutMs }).then(
        () => undefined,
        (error: unknown) => error,
      );
    });
    if (failure === undefined || attempt >= attempts) return failure;
  }
}
