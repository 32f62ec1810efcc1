import { ProvisionError } from '../../provision/provisioner.ts';
import type { CreateVolumeResponse__Output } from '../generated/csi/v1/CreateVolumeResponse.ts';
import type { Volume__Output } from '../generated/csi/v1/Volume.ts';

/** A volume the driver made. */
export interface CreatedVolume {
  volume: Volume__Output;
  volumeId: string;
  /** As the driver reports it, else as requested. */
  capacityBytes: bigint;
}

/** The driver made a volume that does not fit the request. It must be deleted again. */
export interface UnfitVolume extends CreatedVolume {
  /** What is wrong, as the text of an event. */
  problem: string;
  /** What follows the problem in the error text of a failed cleanup; the two differ in their capital letter. */
  cleanupLabel: string;
}

/**
 * Compares the driver's answer with the request: the size, and that it says it used the content source. An id that is
 * empty or a topology that contradicts the request is accepted (CSI spec, `CreateVolumeResponse`).
 *
 * @throws {ProvisionError} state `in-background` for an answer without a volume: there is no id to delete.
 */
export function checkResponse(
  response: CreateVolumeResponse__Output,
  wanted: { requestedBytes: bigint; contentSource: boolean },
): CreatedVolume | UnfitVolume {
  const { volume } = response;
  if (volume === undefined) {
    throw new ProvisionError('the response to CreateVolume has no volume', { state: 'in-background' });
  }
  const reported = BigInt(volume.capacity_bytes ?? 0);
  const created: CreatedVolume = {
    volume,
    volumeId: volume.volume_id ?? '',
    capacityBytes: reported === 0n ? wanted.requestedBytes : reported,
  };
  if (created.capacityBytes < wanted.requestedBytes) {
    const problem = `created volume capacity ${reported} less than requested capacity ${wanted.requestedBytes}`;
    return { ...created, problem, cleanupLabel: 'Cleanup' };
  }
  if (wanted.contentSource && volume.content_source === undefined) {
    return { ...created, problem: 'volume content source missing', cleanupLabel: 'cleanup' };
  }
  return created;
}
