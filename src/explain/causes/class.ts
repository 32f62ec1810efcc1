/** The StorageClass of the claim: whether it exists, and whether its parameters are right. */
import { className, requestedProvisioner } from '../../provision/claim/claim-fields.ts';
import { betaStorageClassKey } from '../../provision/keys.ts';
import { binderWords } from '../binder-words.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
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

/** What kube-controller-manager says of a class that may not be read here. */
export function checkUnreadClass({ claim, storageClass, events, nowMs }: ClaimFacts): Finding | undefined {
  if (storageClass?.kind !== 'unreadable' || requestedProvisioner(claim) !== undefined) return undefined;
  const missing = binderWords(events, ['ProvisioningFailed'], nowMs);
  if (missing?.includes(`"${className(claim)}" not found`) === true) {
    return { state: 'stuck', cause: 'class-not-found', message: missing, cure: missingCure };
  }
  const unused = binderWords(events, ['WaitForFirstConsumer'], nowMs);
  const used = binderWords(events, ['WaitForPodScheduled'], nowMs);
  if (used !== undefined) return { state: 'unknown', detail: `${storageClass.why}. ${used}`, ends: true };
  if (unused === undefined) return undefined;
  return {
    state: 'waiting',
    cause: 'waits-for-consumer',
    message: unused,
    cure: 'Nothing: the volume is provisioned once a Pod uses the claim',
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
