import type { Permit } from '../base/permit.ts';
import type { BeforeDelete } from './failing-as.ts';

/**
 * Proves that a volume may be deleted, and has it deleted at once. Proves it again where the process was paused meanwhile.
 *
 * @throws what `beforeDelete`, the renewal of the permit and `send` throw.
 */
export async function deleteProved<T>(
  {
    volumeId,
    beforeDelete,
    permit,
    signal,
  }: {
    volumeId: string;
    beforeDelete: BeforeDelete;
    permit?: Permit | undefined;
    signal?: AbortSignal | undefined;
  },
  send: () => Promise<T>,
): Promise<T> {
  for (;;) {
    await beforeDelete(volumeId);
    if (permit === undefined || permit.isValid) return await send();
    await permit.renewed(signal);
  }
}
