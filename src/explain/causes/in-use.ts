/** The volume has a claim. */
import { claimName } from '../claim-name.ts';
import type { Finding } from '../explanation.ts';
import type { VolumeFacts } from '../volume-facts-reader.ts';
import { defineCause } from './cause.ts';

export const inUse = defineCause({ name: 'in-use' });

export function checkInUse({ volume }: VolumeFacts): Finding | undefined {
  if (volume.status?.phase !== 'Bound') return undefined;
  const claim = claimName(volume);
  if (volume.metadata.deletionTimestamp === undefined) {
    return { state: 'ok', cause: 'in-use', message: `Claim ${claim} is bound to it, so nothing is to be deleted.` };
  }
  return {
    state: 'stuck',
    cause: 'in-use',
    message: `The volume is being deleted, and claim ${claim} is still bound to it.`,
    cure: 'Delete the claim if the volume is not needed',
  };
}
