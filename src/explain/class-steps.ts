/** The steps between a claim and its provisioner: class, node, selector, hand-over. */
import { shortValue } from '../base/short-value.ts';
import { className, requestedProvisioner, selectedNode } from '../provision/claim/claim-facts.ts';
import { betaStorageClassKey } from '../provision/keys.ts';
import { claimHistory, failedAttempt } from './attempt-step.ts';
import type { ClaimFacts } from './claim-facts-reader.ts';
import { found } from './cluster-reader.ts';
import type { Finding } from './explanation.ts';
import { isInTree } from './provisioner-facts.ts';
import { signOfLifeMs } from './provisioner-steps.ts';
import { durationText, lastChangeMs } from './time-text.ts';

/** Classes of this provisioner make no volumes: an administrator does (Kubernetes page "Storage Classes", "Local"). */
export const noProvisioner = 'kubernetes.io/no-provisioner';
/** How long kube-controller-manager may take before it is suspect, in milliseconds. */
const handOverMs = 60_000;

export function lookAtClass({ claim, storageClass }: ClaimFacts): Finding {
  const name = className(claim);
  const isNamed = claim.metadata.annotations?.[betaStorageClassKey] ?? claim.spec.storageClassName;
  if (isNamed === undefined) {
    return {
      state: 'stuck',
      cause: 'no-class',
      message:
        'The claim names no StorageClass, and kube-controller-manager has given it none: the cluster has no default StorageClass.',
      cure: 'Mark a class with the annotation storageclass.kubernetes.io/is-default-class=true, or recreate the claim with storageClassName',
    };
  }
  if (name === '') return staticOnly('The claim has storageClassName "", so no volume is provisioned for it.');
  if (storageClass?.kind === 'unreadable') return { state: 'unknown', detail: storageClass.why };
  const existing = found(storageClass);
  if (existing === undefined) {
    return {
      state: 'stuck',
      cause: 'class-not-found',
      message: `StorageClass ${name} does not exist.`,
      cure: 'Create the class, or recreate the claim with another',
    };
  }
  const mode = existing.volumeBindingMode ?? 'Immediate';
  return { state: 'ok', detail: `${name}, provisioner ${existing.provisioner}, ${mode}` };
}

/** Only an administrator makes volumes for such a claim. */
export function staticOnly(message: string): Finding {
  return {
    state: 'stuck',
    cause: 'static-class',
    message: `${message} It waits for an existing PersistentVolume that fits.`,
    cure: 'Create a PersistentVolume of this class that fits, or recreate the claim with another class',
  };
}

/** The node that the scheduler chose. */
export function lookAtNode(facts: ClaimFacts): Finding | undefined {
  const { claim, node, events, nowMs } = facts;
  const name = selectedNode(claim);
  if (name === '' || node === undefined) return undefined;
  if (node.kind === 'unreadable')
    return { state: 'unknown', detail: `node ${shortValue(name)} was chosen; ${node.why}` };
  if (node.kind === 'found') return { state: 'ok', detail: `${shortValue(name)} was chosen and exists` };
  const gone = `Node ${shortValue(name)}, which was chosen for the claim, does not exist`;
  if (events?.kind === 'unreadable') return { state: 'unknown', detail: `${gone}; ${events.why}` };
  const { lastMs } = claimHistory(facts);
  // only drivers with topology need the node, and the provisioner's events say whether it is missed
  if (lastMs !== undefined && nowMs - lastMs < signOfLifeMs) return { state: 'ok', detail: gone };
  return {
    state: 'stuck',
    cause: 'selected-node-gone',
    message: `${gone}.`,
    cure: 'Check that the provisioner runs: it provisions nevertheless, or has another node chosen. Otherwise recreate the claim and its Pod',
  };
}

/** The annotation with which kube-controller-manager hands a claim to its provisioner. */
export function lookAtHandOver(facts: ClaimFacts): Finding | undefined {
  const { claim, storageClass, events, nowMs } = facts;
  const ofClass = found(storageClass);
  const asked = requestedProvisioner(claim);
  const serving = ofClass?.provisioner ?? '';
  if (asked === undefined && isInTree(serving)) {
    // kube-controller-manager records a failure if it has no such plugin
    if (events?.kind === 'unreadable') return { state: 'unknown', detail: events.why };
    const { failed } = claimHistory(facts);
    if (failed !== undefined) return failedAttempt(failed, facts);
  }
  if (asked === undefined) {
    const ageMs = nowMs - lastChangeMs(claim);
    const late = ageMs > handOverMs;
    return {
      state: late ? 'stuck' : 'waiting',
      cause: 'not-handed-over',
      message: `kube-controller-manager has not handed the claim to its provisioner (annotation volume.kubernetes.io/storage-provisioner), and the claim has been like this for ${durationText(ageMs)}.`,
      cure: late ? 'Check that kube-controller-manager runs and that its log is free of errors' : 'Nothing yet',
    };
  }
  if (serving !== '' && serving !== asked && !isInTree(serving)) {
    return {
      state: 'stuck',
      cause: 'not-handed-over',
      message: `The claim was handed to ${shortValue(asked)}, and its class now names ${serving}. Nothing is provisioned until both agree.`,
      cure: 'Usually kube-controller-manager corrects the annotation. Otherwise recreate the claim',
    };
  }
  return { state: 'ok', detail: `kube-controller-manager handed it to ${shortValue(asked)}` };
}

/** A claim with a selector is never provisioned for: it can only be bound to an existing volume. */
export function lookAtSelector({ claim }: ClaimFacts): Finding | undefined {
  if (claim.spec.selector === undefined) return undefined;
  return {
    state: 'stuck',
    cause: 'selector',
    message:
      'The claim has a selector, which matches existing volumes only: none fits, and no volume is provisioned for such a claim.',
    cure: 'Recreate the claim without spec.selector, or create a PersistentVolume that fits it',
  };
}
