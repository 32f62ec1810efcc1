/** Which claims and volumes need a sync: nearly none in a settled cluster, so that nearly none are queued. */
import { requestedProvisioner } from '../claim/claim-facts.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../objects.ts';
import { ownsVolume } from '../volume/owns-volume.ts';
import { shouldDelete } from '../volume/should-delete.ts';
import { finalizerUpkeep } from '../volume/volume-finalizer.ts';

/**
 * Whether a claim has no volume yet and wants one from us. The class is not read: it changes without an event of the
 * claim.
 */
export function claimNeedsSync(claim: PersistentVolumeClaim, isKnownProvisioner: (name: string) => boolean): boolean {
  if ((claim.spec.volumeName ?? '') !== '') return false;
  const provisioner = requestedProvisioner(claim);
  return provisioner !== undefined && isKnownProvisioner(provisioner);
}

/** Whether a volume is ours and has its finalizer wrong, or is to be deleted. */
export function volumeNeedsSync(
  volume: PersistentVolume,
  options: { isKnownProvisioner: (name: string) => boolean; addFinalizer: boolean },
): boolean {
  const { isKnownProvisioner, addFinalizer } = options;
  if (!ownsVolume(volume, isKnownProvisioner)) return false;
  return finalizerUpkeep(volume, addFinalizer) !== undefined || shouldDelete(volume, addFinalizer);
}
