/** Fields and annotations of a claim, with the precedence that Kubernetes' own controllers give them. */
import type { ObjectReference } from '../../kube/kube-object.ts';
import {
  alphaSelectedNodeKey,
  betaStorageClassKey,
  betaStorageProvisionerKey,
  selectedNodeKey,
  storageProvisionerKey,
} from '../keys.ts';
import type { PersistentVolumeClaim } from '../objects.ts';

/** Name of the claim's class: the beta annotation if present, even empty, else `spec.storageClassName`, else empty. */
export function className(claim: PersistentVolumeClaim): string {
  return claim.metadata.annotations?.[betaStorageClassKey] ?? claim.spec.storageClassName ?? '';
}

/** The provisioner that is to create the volume: the GA annotation if present, even empty, else the beta one. */
export function requestedProvisioner(claim: PersistentVolumeClaim): string | undefined {
  const annotations = claim.metadata.annotations ?? {};
  return annotations[storageProvisionerKey] ?? annotations[betaStorageProvisionerKey];
}

/** The selected node: an empty GA annotation counts as present, the alpha one is only a fall-back. */
export function selectedNode(claim: PersistentVolumeClaim): string {
  const annotations = claim.metadata.annotations ?? {};
  return annotations[selectedNodeKey] ?? annotations[alphaSelectedNodeKey] ?? '';
}

/** Whether the claim has `spec.volumeName`: it is bound, or its author has asked for that volume. */
export function namesVolume({ spec }: PersistentVolumeClaim): boolean {
  return (spec.volumeName ?? '') !== '';
}

/** The claim's UID; empty only for an object that does not come from an API server. */
export function claimUid(claim: PersistentVolumeClaim): string {
  return claim.metadata.uid ?? '';
}

/** The reference that a volume keeps of its claim, and that events about the claim carry. */
export function claimReference(claim: PersistentVolumeClaim): ObjectReference {
  const { namespace, name, uid, resourceVersion } = claim.metadata;
  return {
    kind: 'PersistentVolumeClaim',
    apiVersion: 'v1',
    ...(namespace !== undefined && { namespace }),
    name,
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
  };
}
