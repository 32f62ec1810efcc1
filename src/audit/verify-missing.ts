import { CsiCallError } from '../csi/call-error.ts';
import type { CsiCalls } from '../csi/csi-calls.ts';
import type { ControllerGetVolumeResponse__Output } from '../csi/generated/csi/v1/ControllerGetVolumeResponse.ts';

/** Calls to the driver at the same time. */
const maxCalls = 4;

/** What the driver says about one volume. `unknown`: nothing that proves anything. */
export type Existence = 'there' | 'gone' | 'unknown';

/**
 * Asks for single volumes: whether a volume that is not in a list, or of a driver without lists, exists.
 *
 * @returns the results, by id.
 * @throws when the signal aborts.
 * @see CSI spec, `ControllerGetVolume`.
 */
export async function verifyMissing(
  ids: readonly string[],
  options: {
    calls: Pick<CsiCalls, 'controllerGetVolume'>;
    /** The volume exists. */
    onThere: (id: string, response: ControllerGetVolumeResponse__Output) => void;
    onCount: (count: number) => void;
    signal: AbortSignal;
  },
): Promise<Map<string, Existence>> {
  const { onCount } = options;
  const results = new Map<string, Existence>();
  const left = ids.values();
  const worker = async (): Promise<void> => {
    for (const id of left) {
      results.set(id, await existence(id, options));
      onCount(results.size);
    }
  };
  await Promise.all(Array.from({ length: maxCalls }, worker));
  return results;
}

async function existence(
  id: string,
  { calls, onThere, signal }: Parameters<typeof verifyMissing>[1],
): Promise<Existence> {
  try {
    const answer = await calls.controllerGetVolume({ volume_id: id }, { signal });
    if (answer.volume === undefined) return 'unknown';
    onThere(id, answer);
    return 'there';
  } catch (error) {
    signal.throwIfAborted();
    return error instanceof CsiCallError && error.codeName === 'NotFound' ? 'gone' : 'unknown';
  }
}
