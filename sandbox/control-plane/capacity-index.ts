import { parseQuantity } from '../../src/base/quantity.ts';
import type { SandboxClient } from '../api/client.ts';
import { annotation } from './annotations.ts';
import { claimClass } from './claim-class.ts';
import { findVolume, usableOn } from './find-volume.ts';
import { type Mirror, MultiMap } from './mirror.ts';
import { getObject } from './object-access.ts';
import { type Claim, type Node, resources, type StorageCapacity, type StorageClass, type Volume } from './objects.ts';
import type { PodClaims } from './pod-claims.ts';
import { matchesLabelSelector } from './selectors.ts';
import { requestedSize } from './volume-fit.ts';
import type { VolumeIndex } from './volume-index.ts';

/** CSIStorageCapacity objects by class; it follows a mirror and lags as the mirror does. */
export class CapacityIndex {
  readonly #byClass = new MultiMap<StorageCapacity>();

  constructor(mirror: Mirror<StorageCapacity>) {
    mirror.listen(({ object, previous, deleted }) => {
      if (previous !== undefined) this.#byClass.delete(previous.storageClassName, previous);
      if (!deleted) this.#byClass.add(object.storageClassName, object);
    });
  }

  /** Whether a segment of the class that the node belongs to can take a volume of `size` nano units. */
  hasRoom(className: string, node: Node, size: bigint): boolean {
    for (const segment of this.#byClass.get(className)) {
      if (segment.nodeTopology === undefined) continue;
      const limit = largestVolume(segment);
      if (limit === undefined || limit < size) continue;
      if (matchesLabelSelector(segment.nodeTopology, node.metadata.labels)) return true;
    }
    return false;
  }
}

/**
 * The largest volume the segment promises, in nano units: `maximumVolumeSize` where it is known, else the free
 * capacity; `undefined` if it promises nothing (Kubernetes, "Storage Capacity").
 */
export function largestVolume({ maximumVolumeSize, capacity }: StorageCapacity): bigint | undefined {
  const text = maximumVolumeSize ?? capacity;
  return text === undefined ? undefined : parseQuantity(text).nanos;
}

/** What the decision over a pod's volumes reads. */
export interface VolumePlanContext {
  client: SandboxClient;
  volumes: VolumeIndex;
  capacities: CapacityIndex;
}

/** How the claims of a pod get their volumes if the pod goes to a certain node. */
export interface VolumePlan {
  /** Claims with an existing volume to be reserved for them. */
  matched: { claim: Claim; volume: Volume }[];
  /** Claims to be provisioned for the node. */
  provisioned: Claim[];
}

const noVolume = "node(s) didn't find available persistent volumes to bind";
const noSpace = 'node(s) did not have enough free storage';
const wrongNode = 'node(s) had volume node affinity conflict';
const volumeGone = 'node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)';

/** The plan for the node, or why there is none, in the words of the scheduler. */
export function planVolumes(
  context: VolumePlanContext,
  claims: PodClaims,
  node: Node,
): VolumePlan | { reasons: string[] } {
  const plan: VolumePlan = { matched: [], provisioned: [] };
  const reasons = new Set<string>();
  const boundConflict = whyBoundUnfit(context, claims.bound, node);
  if (boundConflict !== undefined) reasons.add(boundConflict);
  const excluded = new Set<string>();
  for (const claim of [...claims.delayed].sort(bySize)) {
    const selected = claim.metadata.annotations?.[annotation.selectedNode];
    const volume = selected === undefined ? matchVolume(context, claim, node, excluded) : undefined;
    if (volume !== undefined) {
      excluded.add(volume.metadata.name);
      plan.matched.push({ claim, volume });
      continue;
    }
    const why =
      selected !== undefined && selected !== node.metadata.name ? noVolume : whyNotProvisioned(context, claim, node);
    if (why === undefined) plan.provisioned.push(claim);
    else reasons.add(why);
  }
  return reasons.size === 0 ? plan : { reasons: [...reasons] };
}

function bySize(a: Claim, b: Claim): number {
  return Number(requestedSize(a) - requestedSize(b));
}

function matchVolume(
  { client, volumes }: VolumePlanContext,
  claim: Claim,
  node: Node,
  excluded: ReadonlySet<string>,
): Volume | undefined {
  return findVolume(claim, { client, index: volumes, onlyReserved: false, node, excluded });
}

function whyBoundUnfit({ client }: VolumePlanContext, claims: Claim[], node: Node): string | undefined {
  for (const claim of claims) {
    const volume = getObject(client, resources.volumes, { name: claim.spec.volumeName ?? '' });
    if (volume === undefined) return volumeGone;
    if (!usableOn(volume, node)) return wrongNode;
  }
  return undefined;
}

function whyNotProvisioned({ client, capacities }: VolumePlanContext, claim: Claim, node: Node): string | undefined {
  const storageClass = getObject(client, resources.classes, { name: claimClass(claim) });
  if (!storageClass?.provisioner) return noVolume;
  const { provisioner } = storageClass;
  if (provisioner === 'kubernetes.io/no-provisioner' || !isAllowed(storageClass, node)) return noVolume;
  const driver = getObject(client, resources.csiDrivers, { name: provisioner });
  if (driver?.spec.storageCapacity !== true) return undefined;
  return capacities.hasRoom(storageClass.metadata.name, node, requestedSize(claim)) ? undefined : noSpace;
}

/** A term without expressions matches nothing (Kubernetes, "Storage Classes", allowed topologies). */
function isAllowed({ allowedTopologies = [] }: StorageClass, node: Node): boolean {
  if (allowedTopologies.length === 0) return true;
  const { labels = {} } = node.metadata;
  return allowedTopologies.some(({ matchLabelExpressions = [] }) => {
    if (matchLabelExpressions.length === 0) return false;
    return matchLabelExpressions.every(({ key, values = [] }) => {
      const value = labels[key];
      return value !== undefined && values.includes(value);
    });
  });
}
