import { className, namesVolume, requestedProvisioner } from './claim-fields.ts';
import { selectedNodeKey } from '../keys.ts';
import type { PersistentVolumeClaim, StorageClass } from '../objects.ts';

export type ClaimDecision =
  | { provision: true; storageClass: StorageClass }
  | { provision: false; reason: 'bound' | 'not-qualified' | 'not-requested' | 'other-provisioner' | 'waits-for-node' }
  | { provision: false; reason: 'class-missing'; className: string };

export interface ClaimDecisionInput {
  claim: PersistentVolumeClaim;
  /** What `Provisioner.shouldProvision` returns; not read for a claim that names its volume. */
  qualifies: boolean;
  isKnownProvisioner: (name: string) => boolean;
  getClass: (name: string) => StorageClass | undefined;
}

/** Decides whether a claim is to be provisioned now: the first reason against it counts. Pure. */
export function claimDecision(input: ClaimDecisionInput): ClaimDecision {
  const { claim } = input;
  if (namesVolume(claim)) return { provision: false, reason: 'bound' };
  if (!input.qualifies) return { provision: false, reason: 'not-qualified' };
  const provisioner = requestedProvisioner(claim);
  if (provisioner === undefined) return { provision: false, reason: 'not-requested' };
  if (!input.isKnownProvisioner(provisioner)) return { provision: false, reason: 'other-provisioner' };
  const name = className(claim);
  const storageClass = input.getClass(name);
  if (storageClass === undefined) return { provision: false, reason: 'class-missing', className: name };
  if (storageClass.volumeBindingMode === 'WaitForFirstConsumer') {
    const node = claim.metadata.annotations?.[selectedNodeKey] ?? '';
    if (node === '') return { provision: false, reason: 'waits-for-node' };
  }
  return { provision: true, storageClass };
}
