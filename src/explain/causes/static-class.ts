/** An administrator creates the volumes of the class (Kubernetes page "Storage Classes", "Local"). */
import { className } from '../../provision/claim/claim-fields.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { waitsForConsumer } from '../claim-facts-reader.ts';
import { defineCause } from './cause.ts';

export const staticClass = defineCause({ name: 'static-class' });

/** For classes of this provisioner no volumes are provisioned. */
const noProvisioner = 'kubernetes.io/no-provisioner';

export function checkEmptyClass({ claim }: ClaimFacts): Finding | undefined {
  if (className(claim) !== '') return undefined;
  return staticOnly('The claim has storageClassName "", so no volume is provisioned for it.');
}

/** A class without a provisioner that also waits for a Pod is explained by that Pod. */
export function checkHasProvisioner({ claim, storageClass }: ClaimFacts): Finding | undefined {
  const ofClass = found(storageClass);
  if (ofClass?.provisioner !== noProvisioner || waitsForConsumer(claim, ofClass)) return undefined;
  return staticOnly(`The class has the provisioner ${noProvisioner}, which provisions no volumes.`);
}

function staticOnly(message: string): Finding {
  return {
    state: 'stuck',
    cause: 'static-class',
    message: `${message} It waits for an existing PersistentVolume that fits.`,
    cure: 'Create a PersistentVolume of this class that fits, or recreate the claim with another class',
  };
}
