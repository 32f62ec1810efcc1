import type { SandboxClient } from '../api/client.ts';
import { annotation } from './annotations.ts';
import { claimClass, isDelayed } from './claim-class.ts';
import { getObject, hasAnnotation, keyOf, nameOf } from './object-access.ts';
import { resources, type Claim, type Pod } from './objects.ts';
import { claimNameOf } from './pod-index.ts';

/** The claims of a pod as the scheduler sees them. */
export interface PodClaims {
  /** Binding is complete: the volume decides which nodes remain. */
  bound: Claim[];
  /** Without a volume, of a class that waits for the pod: the scheduler decides where. */
  delayed: Claim[];
}

/**
 * The claims of the pod, or why the pod cannot be scheduled whatever the node, in the words of the scheduler's event.
 */
export function resolvePodClaims(client: SandboxClient, pod: Pod): PodClaims | { why: string } {
  const claims = new Map<string, Claim>();
  for (const volume of pod.spec.volumes ?? []) {
    const name = claimNameOf(pod, volume);
    if (name === undefined) continue;
    const key = keyOf({ metadata: { namespace: pod.metadata.namespace ?? '', name } });
    const claim = getObject(client, resources.claims, nameOf(key));
    const why = claim === undefined ? whyMissing(name, volume.ephemeral !== undefined) : whyUnusable(claim);
    if (why !== undefined) return { why };
    if (claim !== undefined) claims.set(key, claim);
  }
  const resolved: PodClaims = { bound: [], delayed: [] };
  for (const claim of claims.values()) {
    if (isFullyBound(claim)) resolved.bound.push(claim);
    else if (!claim.spec.volumeName && isDelayed(client, claimClass(claim))) resolved.delayed.push(claim);
    else return { why: 'pod has unbound immediate PersistentVolumeClaims' };
  }
  return resolved;
}

/** Whether the claim has a volume and the binder is done with it. */
export function isFullyBound(claim: Claim): boolean {
  return Boolean(claim.spec.volumeName) && hasAnnotation(claim, annotation.bindCompleted);
}

function whyMissing(name: string, ephemeral: boolean): string {
  return ephemeral
    ? `waiting for ephemeral volume controller to create the persistentvolumeclaim "${name}"`
    : `persistentvolumeclaim "${name}" not found`;
}

function whyUnusable({ metadata, spec, status }: Claim): string | undefined {
  if (status?.phase === 'Lost') {
    return `persistentvolumeclaim "${metadata.name}" bound to non-existent persistentvolume "${spec.volumeName ?? ''}"`;
  }
  return metadata.deletionTimestamp === undefined
    ? undefined
    : `persistentvolumeclaim "${metadata.name}" is being deleted`;
}
