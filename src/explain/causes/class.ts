/** The StorageClass of the claim: whether it exists, and whether volumes are provisioned for such a claim. */
import { className } from '../../provision/claim/claim-fields.ts';
import { betaStorageClassKey } from '../../provision/keys.ts';
import { type ClaimFacts, waitsForConsumer } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { defineCause } from './cause.ts';

/** The claim names no StorageClass, and none is the default. */
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

const missingCure = 'Create the class, or recreate the claim with another class';

/** The claim names a StorageClass that does not exist. */
export const classNotFound = defineCause({
  name: 'class-not-found',
  failures: [{ pattern: /^storageClass ".*" not found$/, cure: missingCure }], // in the log, while the event is not repeated
  waits: [{ pattern: /^Waiting for StorageClass /, state: 'stuck', cure: missingCure }],
});

export function checkClassExists({ claim, storageClass }: ClaimFacts): Finding | undefined {
  if (storageClass?.kind === 'unreadable') return { state: 'unknown', detail: storageClass.why };
  if (found(storageClass) !== undefined) return undefined;
  return {
    state: 'stuck',
    cause: 'class-not-found',
    message: `StorageClass ${className(claim)} does not exist.`,
    cure: missingCure,
  };
}

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

/** An administrator creates the volumes of the class (Kubernetes page "Storage Classes", "Local"). */
function staticOnly(message: string): Finding {
  return {
    state: 'stuck',
    cause: 'static-class',
    message: `${message} It waits for an existing PersistentVolume that fits.`,
    cure: 'Create a PersistentVolume of this class that fits, or recreate the claim with another class',
  };
}

const selectorCure = 'Recreate the claim without spec.selector, or create a PersistentVolume that fits it';

/** No volume is provisioned for a claim with a selector: it can only be bound to an existing volume. */
export const selector = defineCause({
  name: 'selector',
  failures: [{ pattern: /^claim Selector is not supported/, cure: selectorCure }],
});

export function checkSelector({ claim }: ClaimFacts): Finding | undefined {
  if (claim.spec.selector === undefined) return undefined;
  return {
    state: 'stuck',
    cause: 'selector',
    message:
      'The claim has a selector, which matches existing volumes only. None of them fits, and no volume is provisioned for such a claim.',
    cure: selectorCure,
  };
}

/** A parameter of the class is wrong. */
export const classParameters = defineCause({
  name: 'class-parameters',
  failures: [
    {
      pattern: /^failed to strip CSI Parameters of prefixed keys: /,
      cure: 'Correct or remove this key, which no sidecar knows: delete the class and create it again',
    },
    {
      pattern: /^fstype specified in parameters with both /,
      cure: 'Keep csi.storage.k8s.io/fstype and leave out fstype: delete the class and create it again',
    },
  ],
});
