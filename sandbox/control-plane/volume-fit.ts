import { parseQuantity } from '../../src/base/quantity.ts';
import type { Claim, Volume } from './objects.ts';

/** The requested size of the claim in nano units, zero if it names none. */
export function requestedSize(claim: Claim): bigint {
  return parseQuantity(claim.spec.resources?.requests?.['storage'] ?? 0).nanos;
}

/** The size of the volume in nano units, zero if it names none. */
export function volumeSize(volume: Volume): bigint {
  return parseQuantity(volume.spec.capacity?.['storage'] ?? 0).nanos;
}

/** `Filesystem` unless the object says otherwise. */
export function volumeModeOf(object: Claim | Volume): string {
  return object.spec.volumeMode ?? 'Filesystem';
}

/** Whether the volume offers all modes the claim asks for. */
export function offersAccessModes(volume: Volume, requested: readonly string[]): boolean {
  const offered = volume.spec.accessModes ?? [];
  return requested.every((mode) => offered.includes(mode));
}

/** Whether the volume's claimRef names this claim; an empty uid reserves it for whichever claim has the name. */
export function refersTo(volume: Volume, claim: Claim): boolean {
  const { claimRef } = volume.spec;
  return (
    claimRef?.name === claim.metadata.name &&
    (claimRef.namespace ?? '') === (claim.metadata.namespace ?? '') &&
    (!claimRef.uid || claimRef.uid === claim.metadata.uid)
  );
}

/** Whether the search may consider the volume at all, before class and selector count. */
export function couldHold(volume: Volume, claim: Claim): boolean {
  return (
    (volume.spec.claimRef === undefined || refersTo(volume, claim)) &&
    offersAccessModes(volume, claim.spec.accessModes ?? []) &&
    volumeSize(volume) >= requestedSize(claim) &&
    volumeModeOf(volume) === volumeModeOf(claim) &&
    (volume.spec.volumeAttributesClassName ?? '') === (claim.spec.volumeAttributesClassName ?? '') &&
    volume.metadata.deletionTimestamp === undefined
  );
}

/**
 * Why a volume the user asked for by name cannot be bound, in the words of the event `VolumeMismatch`; `undefined` if
 * it can (step 2).
 */
export function whyUnfit(volume: Volume, claim: Claim, className: string): string | undefined {
  if (volume.metadata.deletionTimestamp !== undefined) {
    return `the volume is marked for deletion "${volume.metadata.name}"`;
  }
  if (volumeSize(volume) < requestedSize(claim)) return 'requested PV is too small';
  if ((volume.spec.storageClassName ?? '') !== className) return 'storageClassName does not match';
  if ((volume.spec.volumeAttributesClassName ?? '') !== (claim.spec.volumeAttributesClassName ?? '')) {
    return 'volumeAttributesClassName does not match';
  }
  if (volumeModeOf(volume) !== volumeModeOf(claim)) return 'incompatible volumeMode';
  if (!offersAccessModes(volume, claim.spec.accessModes ?? [])) return 'incompatible accessMode';
  return undefined;
}
