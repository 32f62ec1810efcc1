/** The steps between a claim and its provisioner: class, consumer, node, hand-over. */
import { className, requestedProvisioner, selectedNode } from '../provision/claim-facts.ts';
import { betaStorageClassKey } from '../provision/keys.ts';
import { type ClaimFacts, waitsForConsumer } from './claim-facts-reader.ts';
import { usesClaim } from './claim-state-steps.ts';
import type { Pod } from './cluster-objects.ts';
import { found } from './cluster-reader.ts';
import type { Finding } from './explanation.ts';
import { isInTree } from './provisioner-facts.ts';
import { durationText } from './time-text.ts';

/** Classes of this provisioner make no volumes: an administrator does (Kubernetes page "Storage Classes", "Local"). */
const noProvisioner = 'kubernetes.io/no-provisioner';
/** How long kube-controller-manager may take before it is suspect, in milliseconds. */
const handOverMs = 60_000;

export function lookAtClass({ claim, storageClass }: ClaimFacts): Finding {
  const name = className(claim);
  const isNamed = claim.metadata.annotations?.[betaStorageClassKey] ?? claim.spec.storageClassName;
  if (isNamed === undefined) {
    return {
      state: 'stuck',
      cause: 'no-class',
      message: 'The claim names no StorageClass, and the cluster has no default StorageClass.',
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

function staticOnly(message: string): Finding {
  return {
    state: 'stuck',
    cause: 'static-class',
    message: `${message} It waits for an existing PersistentVolume that fits.`,
    cure: 'Create a PersistentVolume of this class that fits, or recreate the claim with another class',
  };
}

/** Of a class whose claims wait for a Pod: whether there is one, and what the scheduler says. */
export function lookAtConsumer({ claim, storageClass, pods }: ClaimFacts): Finding | undefined {
  const ofClass = found(storageClass);
  if (storageClass?.kind === 'unreadable' && selectedNode(claim) === '' && requestedProvisioner(claim) === undefined) {
    return { state: 'unknown', detail: 'whether its class waits for a Pod is not visible', ends: true };
  }
  if (ofClass === undefined) return undefined;
  if (!waitsForConsumer(claim, ofClass)) return withoutConsumer(ofClass.provisioner);
  if (pods?.kind === 'unreadable') return { state: 'unknown', detail: pods.why, ends: true };
  const using = (found(pods) ?? []).filter((pod) => usesClaim(pod, claim.metadata.name));
  if (using.length === 0) {
    return {
      state: 'waiting',
      cause: 'waits-for-consumer',
      message: `StorageClass ${ofClass.metadata.name} waits for the first Pod that uses the claim, and there is none yet.`,
      cure: 'Nothing: the volume is provisioned once a Pod uses the claim',
    };
  }
  const findings = using.map(podFinding);
  return findings.find(({ state }) => state === 'stuck') ?? findings[0];
}

function withoutConsumer(provisioner: string): Finding | undefined {
  if (provisioner !== noProvisioner) return undefined;
  return staticOnly(`The class has the provisioner ${noProvisioner}, which provisions no volumes.`);
}

function podFinding(pod: Pod): Extract<Finding, { cause: unknown }> {
  const { name } = pod.metadata;
  const gates = pod.spec?.schedulingGates ?? [];
  if (gates.length > 0) {
    return {
      state: 'waiting',
      cause: 'pod-unschedulable',
      message: `Pod ${name} uses the claim and is held by scheduling gates: ${gates.map((gate) => gate.name).join(', ')}.`,
      cure: 'Wait for the controllers that set the gates to remove them',
    };
  }
  const node = pod.spec?.nodeName ?? '';
  if (node !== '') {
    return {
      state: 'stuck',
      cause: 'pod-unschedulable',
      message: `Pod ${name} uses the claim and sets spec.nodeName to ${node}, so it bypasses the scheduler, which would choose the node for the volume.`,
      cure: 'Recreate the Pod with a nodeSelector (kubernetes.io/hostname) instead of spec.nodeName',
    };
  }
  const condition = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled');
  if (condition?.status === 'False') return unschedulable(name, condition.message ?? condition.reason ?? '');
  return {
    state: 'waiting',
    cause: 'waits-for-consumer',
    message: `Pod ${name} uses the claim, and the scheduler has not chosen a node for it yet.`,
    cure: 'Usually nothing: it takes a moment. If it stays like this, check that its scheduler runs',
  };
}

function unschedulable(pod: string, message: string): Extract<Finding, { cause: unknown }> {
  const noRoom = message.includes('enough free storage');
  return {
    state: 'stuck',
    cause: noRoom ? 'no-capacity' : 'pod-unschedulable',
    message: `Pod ${pod} uses the claim and cannot be scheduled. The scheduler: ${message}`,
    cure: noRoom
      ? 'Free storage on a node that fits the Pod, request less, or use another class'
      : 'Make a node fit the Pod; the volume is provisioned once a node is chosen',
  };
}

/** The node that the scheduler chose. */
export function lookAtNode({ claim, node }: ClaimFacts): Finding | undefined {
  const name = selectedNode(claim);
  if (name === '' || node === undefined) return undefined;
  if (node.kind === 'unreadable') return { state: 'unknown', detail: `node ${name} was chosen; ${node.why}` };
  if (node.kind === 'found') return { state: 'ok', detail: `${name} was chosen and exists` };
  return {
    state: 'stuck',
    cause: 'selected-node-gone',
    message: `Node ${name}, which was chosen for the claim, does not exist.`,
    cure: 'Usually another node is chosen at once. Otherwise recreate the claim and its Pod',
  };
}

/** The annotation with which kube-controller-manager hands a claim to its provisioner. */
export function lookAtHandOver({ claim, storageClass, nowMs }: ClaimFacts): Finding | undefined {
  const ofClass = found(storageClass);
  const asked = requestedProvisioner(claim);
  const serving = ofClass?.provisioner ?? '';
  if (asked === undefined && isInTree(serving)) return undefined;
  if (asked === undefined) {
    const ageMs = nowMs - Date.parse(claim.metadata.creationTimestamp ?? '');
    const late = ageMs > handOverMs;
    return {
      state: late ? 'stuck' : 'waiting',
      cause: 'not-handed-over',
      message: `kube-controller-manager has not handed the claim to its provisioner (annotation volume.kubernetes.io/storage-provisioner), and the claim is ${durationText(ageMs)} old.`,
      cure: late ? 'Check that kube-controller-manager runs and that its log is free of errors' : 'Nothing yet',
    };
  }
  if (serving !== '' && serving !== asked && !isInTree(serving)) {
    return {
      state: 'stuck',
      cause: 'not-handed-over',
      message: `The claim was handed to ${asked}, and its class now names ${serving}. Nothing is provisioned until both agree.`,
      cure: 'Usually kube-controller-manager corrects the annotation. Otherwise recreate the claim',
    };
  }
  return { state: 'ok', detail: `kube-controller-manager handed it to ${asked}` };
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
