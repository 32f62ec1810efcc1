/** Another PersistentVolume has the name that the claim's volume would get. */
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { defineCause } from './cause.ts';

const cure = 'Delete that PersistentVolume if nobody uses it, or recreate the claim';

export const nameTaken = defineCause({
  name: 'name-taken',
  failures: [{ pattern: /^PersistentVolume ".*" exists already|PersistentVolume ".*" exists already /, cure }],
  waits: [
    {
      pattern: /^Waiting for a deletion: /,
      state: 'waiting',
      cure: 'Wait until that PersistentVolume is deleted; if it stays, find out why it is not deleted',
    },
    {
      pattern: /^Waiting: /,
      state: 'stuck',
      cure: 'Raise --volume-name-uuid-length of the provisioner: names of volumes are too short to be unique',
    },
  ],
});

export function checkNameTaken({ claim, volume }: ClaimFacts): Finding | undefined {
  const existing = found(volume);
  if ((claim.spec.volumeName ?? '') !== '' || existing === undefined) return undefined;
  if (existing.spec.claimRef?.uid === claim.metadata.uid) return undefined;
  return {
    state: 'stuck',
    cause: 'name-taken',
    message: `PersistentVolume ${existing.metadata.name} exists and is not for this claim, whose volume would get this name.`,
    cure,
  };
}
