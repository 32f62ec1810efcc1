import { claimUid, requestedProvisioner } from './claim-fields.ts';
import type { PersistentVolumeClaim } from '../objects.ts';

/**
 * Whether a claim still wants the volume that was begun for it.
 *
 * - `gone`: the claim does not exist any more; one that is being deleted does.
 * - `has-it`: it is bound to that very volume, or was, and the volume is lost.
 * - `elsewhere`: it is bound to another volume, or was handed to another provisioner or node.
 */
export type ClaimWish = 'wanted' | 'gone' | 'has-it' | 'elsewhere';

/** A volume and the claim that it is for. */
export interface WishedVolume {
  claim: { namespace: string; name: string; uid: string };
  /** Absent: none was begun yet. */
  volume?: { name: string };
}

export interface ClaimWishOptions {
  isKnownProvisioner: (name: string) => boolean;
  /** `shouldProvision` of the provisioner; if it throws, that counts as true. */
  qualifies: (claim: PersistentVolumeClaim) => boolean | Promise<boolean>;
}

/**
 * What a claim wants, from its current state. Class, grants and the source are not considered: they were checked before the
 * volume was begun.
 *
 * @param claim - of the recorded namespace and name, or found by its UID.
 */
export async function claimWish(
  record: WishedVolume,
  claim: PersistentVolumeClaim | undefined,
  { isKnownProvisioner, qualifies }: ClaimWishOptions,
): Promise<ClaimWish> {
  if (claim === undefined || claimUid(claim) !== record.claim.uid) return 'gone';
  const { volumeName = '' } = claim.spec;
  // a user may have filled the name in; that the volume was saved is certain once the claim was bound
  const wasBound = claim.status?.phase === 'Bound' || claim.status?.phase === 'Lost';
  if (volumeName !== '' && volumeName === record.volume?.name) return wasBound ? 'has-it' : 'wanted';
  if (volumeName !== '') return 'elsewhere';
  const provisioner = requestedProvisioner(claim);
  if (provisioner === undefined || !isKnownProvisioner(provisioner)) return 'elsewhere';
  try {
    return (await qualifies(claim)) ? 'wanted' : 'elsewhere';
  } catch {
    return 'wanted'; // an attempt reports why
  }
}
