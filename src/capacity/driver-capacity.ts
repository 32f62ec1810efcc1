import { errorMessage } from '../csi/call-error.ts';
import type { CsiCalls } from '../csi/csi-calls.ts';
import type { StorageClass } from '../provision/objects.ts';
import type { CapacityItem } from './capacity-items.ts';

/** The capacity a driver reports for one item, in bytes. */
export interface DriverCapacity {
  available: bigint;
  /** Undefined: not reported. */
  maximumVolumeSize: bigint | undefined;
}

/** The driver gave no capacity that can be published. */
class DriverCapacityError extends Error {
  override readonly name = 'DriverCapacityError';
}

/**
 * Calls the driver once (CSI spec, `GetCapacity`). All parameters of the class are passed, also those reserved for the sidecars.
 *
 * @throws {DriverCapacityError} for a failed call and for a negative amount.
 */
export async function askCapacity(
  calls: Pick<CsiCalls, 'getCapacity'>,
  item: CapacityItem,
  { parameters = {} }: StorageClass,
  signal: AbortSignal,
): Promise<DriverCapacity> {
  try {
    const response = await calls.getCapacity(
      { parameters, accessible_topology: { segments: { ...item.segment.labels } } },
      { signal, about: { capacity: item.key } },
    );
    const maximum = response.maximum_volume_size?.value;
    return {
      available: amount('available_capacity', response.available_capacity),
      maximumVolumeSize: response.maximum_volume_size == null ? undefined : amount('maximum_volume_size', maximum),
    };
  } catch (error) {
    throw new DriverCapacityError(`CSI GetCapacity for ${item.key}: ${errorMessage(error)}`, { cause: error });
  }
}

function amount(field: string, value: string | undefined): bigint {
  const bytes = BigInt(value ?? 0);
  if (bytes < 0n) throw new Error(`the driver returned a negative ${field}: ${bytes}`);
  return bytes;
}
