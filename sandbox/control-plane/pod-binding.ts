import type { SandboxClient } from '../api/client.ts';
import { annotation } from './annotations.ts';
import { reserveVolume } from './bind-volume.ts';
import { usableOn } from './find-volume.ts';
import { getObject, keyOf, nameOf, setAnnotation, updateObject } from './object-access.ts';
import { resources, type Claim, type Node } from './objects.ts';
import { isFullyBound } from './pod-claims.ts';
import type { Placement } from './schedule-pod.ts';

/** A pod whose node is chosen and whose claims are on their way to a volume. */
export interface PodBinding {
  node: string;
  /** Claims that get an existing volume. */
  matched: { claimKey: string; volumeName: string }[];
  /** Claims that are provisioned for the node. */
  provisionedKeys: string[];
  /** Monotonic milliseconds after which the attempt has failed. */
  deadlineMs: number;
}

/** Where a binding stands. */
export type BindingProgress = { state: 'waiting' } | { state: 'ready' } | { state: 'failed'; why: string };

/**
 * Writes the decision: the claim into each matched volume, the node into each claim to provision. Safe to
 * repeat.
 * @throws {StatusError} `Conflict` if somebody else was faster; the pod must be scheduled again.
 */
export function startBinding(client: SandboxClient, { node, plan }: Placement, deadlineMs: number): PodBinding {
  const name = node.metadata.name;
  for (const { claim, volume } of plan.matched) reserveVolume(client, claim, volume);
  for (const claim of plan.provisioned) selectNode(client, claim, name);
  return {
    node: name,
    matched: plan.matched.map(({ claim, volume }) => ({ claimKey: keyOf(claim), volumeName: volume.metadata.name })),
    provisionedKeys: plan.provisioned.map(keyOf),
    deadlineMs,
  };
}

/** Checks whether all claims are bound by now, or can no longer be for this node. Writes nothing. */
export function checkBinding(client: SandboxClient, binding: PodBinding, nowMs: number): BindingProgress {
  const node = getObject(client, resources.nodes, { name: binding.node });
  if (node === undefined) return failed(`failed to get node "${binding.node}": node "${binding.node}" not found`);
  let ready = true;
  for (const { claimKey, volumeName } of binding.matched) {
    const claim = getObject(client, resources.claims, nameOf(claimKey));
    if (claim === undefined) return failed(`persistentvolumeclaim "${nameOf(claimKey).name}" not found`);
    const why = whyMatchLost(client, volumeName, node);
    if (why !== undefined) return failed(why);
    ready &&= isFullyBound(claim);
  }
  for (const claimKey of binding.provisionedKeys) {
    const claim = getObject(client, resources.claims, nameOf(claimKey));
    if (claim === undefined) return failed(`persistentvolumeclaim "${nameOf(claimKey).name}" not found`);
    const why = whyProvisioningLost(client, claim, node);
    if (why !== undefined) return failed(why);
    ready &&= isFullyBound(claim);
  }
  if (ready) return { state: 'ready' };
  return nowMs >= binding.deadlineMs ? failed('context deadline exceeded') : { state: 'waiting' };
}

function selectNode(client: SandboxClient, claim: Claim, node: string): void {
  if (claim.metadata.annotations?.[annotation.selectedNode] === node) return;
  updateObject(client, resources.claims, claim, (copy) => {
    setAnnotation(copy, annotation.selectedNode, node);
  });
}

function whyMatchLost(client: SandboxClient, volumeName: string, node: Node): string | undefined {
  const volume = getObject(client, resources.volumes, { name: volumeName });
  if (volume === undefined) return `failed to check binding: persistentvolume "${volumeName}" not found`;
  if (!volume.spec.claimRef?.uid) return `claimRef got reset for pv "${volumeName}"`;
  return usableOn(volume, node) ? undefined : affinityMismatch(volumeName, node);
}

function whyProvisioningLost(client: SandboxClient, claim: Claim, node: Node): string | undefined {
  const { name, annotations = {} } = claim.metadata;
  if (Object.keys(annotations).length === 0) return `selectedNode annotation reset for PVC "${name}"`;
  if (annotations[annotation.selectedNode] !== node.metadata.name) return `provisioning failed for PVC "${name}"`;
  const { volumeName } = claim.spec;
  const volume = volumeName ? getObject(client, resources.volumes, { name: volumeName }) : undefined;
  return volume === undefined || usableOn(volume, node) ? undefined : affinityMismatch(volume.metadata.name, node);
}

function affinityMismatch(volumeName: string, node: Node): string {
  return `pv "${volumeName}" node affinity doesn't match node "${node.metadata.name}": no matching NodeSelectorTerms`;
}

function failed(why: string): BindingProgress {
  return { state: 'failed', why };
}
