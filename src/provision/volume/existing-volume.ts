import { quantityBytes } from '../../base/quantity.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { claimReference } from '../claim-fields.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../objects.ts';
import { isReserved, wholeVolume } from './stored-volume.ts';

/**
 * Whether a volume that exists already is reserved for the claim. One whose cached form lacks the reference is read
 * live.
 *
 * @param options.byUid - one that an administrator reserved, by the claim's name alone, does not count. Default false.
 * @throws {ApiError} and {TransportError} when it cannot be read, {Error} when the API server has none: then the claim is to be
 * tried again.
 */
export async function isReservedFor(
  claim: PersistentVolumeClaim,
  volume: PersistentVolume,
  { client, signal, byUid = false }: { client: KubeClient; signal: AbortSignal; byUid?: boolean },
): Promise<boolean> {
  const reference = (await existingWhole(client, volume, signal)).spec.claimRef;
  if (byUid && (reference?.uid ?? '') === '') return false;
  return isReserved(reference, claimReference(claim));
}

/**
 * As `wholeVolume`, for a volume that exists.
 *
 * @throws {ApiError} and {TransportError} when it cannot be read, {Error} when the API server has none.
 */
export async function existingWhole(
  client: KubeClient,
  volume: PersistentVolume,
  signal: AbortSignal,
): Promise<PersistentVolume> {
  const whole = await wholeVolume(client, volume, signal);
  if (whole !== undefined) return whole;
  throw new Error(`PersistentVolume ${JSON.stringify(volume.metadata.name)} is gone, and still in the cache`);
}

/**
 * Whether kube-controller-manager would bind the claim to this volume, which is reserved for it: size, volume mode, access modes
 * and attributes class.
 */
export function canBind({ spec: wanted }: PersistentVolumeClaim, { spec }: PersistentVolume): boolean {
  return (
    quantityBytes(spec.capacity?.['storage'] ?? 0) >= quantityBytes(wanted.resources?.requests?.['storage'] ?? 0) &&
    (spec.volumeMode ?? 'Filesystem') === (wanted.volumeMode ?? 'Filesystem') &&
    (wanted.accessModes ?? []).every((mode) => spec.accessModes?.includes(mode)) &&
    (spec.volumeAttributesClassName ?? '') === (wanted.volumeAttributesClassName ?? '')
  );
}
