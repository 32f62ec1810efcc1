/** The claim was bound to a volume that is gone. */
import type { ClaimFacts } from '../claim-facts-reader.ts';
import type { Finding } from '../explanation.ts';
import { defineCause } from './cause.ts';

export const lost = defineCause({ name: 'lost' });

export function checkLost({ claim }: ClaimFacts): Finding | undefined {
  if (claim.status?.phase !== 'Lost') return undefined;
  return {
    state: 'stuck',
    cause: 'lost',
    message: `The PersistentVolume ${claim.spec.volumeName ?? ''} to which the claim was bound is gone, or belongs to another claim.`,
    cure: 'The data may still be in the storage: create a PersistentVolume of this name for it. Otherwise recreate the claim',
  };
}
