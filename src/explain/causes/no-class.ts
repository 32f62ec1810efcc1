/** The claim names no StorageClass, and none is the default. */
import { betaStorageClassKey } from '../../provision/keys.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import type { Finding } from '../explanation.ts';
import { defineCause } from './cause.ts';

export const noClass = defineCause({
  name: 'no-class',
  waits: [
    {
      pattern: /^Waiting for a StorageClass: /,
      state: 'stuck',
      cure: 'Recreate the claim with a storageClassName',
    },
  ],
});

export function checkNamesClass({ claim }: ClaimFacts): Finding | undefined {
  const isNamed = claim.metadata.annotations?.[betaStorageClassKey] ?? claim.spec.storageClassName;
  if (isNamed !== undefined) return undefined;
  return {
    state: 'stuck',
    cause: 'no-class',
    message:
      'The claim names no StorageClass, and kube-controller-manager has given it none: the cluster has no default StorageClass.',
    cure: 'Mark a class with the annotation storageclass.kubernetes.io/is-default-class=true, or recreate the claim with storageClassName',
  };
}
