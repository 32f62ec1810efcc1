import type { SandboxClient } from '../api/client.ts';
import { claimClass } from './claim-class.ts';
import { getObject, keyOf } from './object-access.ts';
import { resources, type Claim, type Node, type Volume } from './objects.ts';
import { matchesLabelSelector, matchesNodeSelector } from './selectors.ts';
import { couldHold, offersAccessModes, refersTo, requestedSize, volumeModeOf, volumeSize } from './volume-fit.ts';
import { lowerBound, type Shelf, type VolumeIndex } from './volume-index.ts';

/** Where and how to search. */
export interface FindVolumeOptions {
  client: SandboxClient;
  index: VolumeIndex;
  /** Only volumes that refer to the claim count: the binder's rule for delayed classes. */
  onlyReserved: boolean;
  /** Only volumes usable on this node count: the scheduler's rule. */
  node?: Node;
  /** Names of volumes already chosen for other claims. */
  excluded?: ReadonlySet<string>;
}

/**
 * The volume a claim without `volumeName` gets: among volumes that offer the requested access modes, fewest
 * modes first, one that refers to the claim, else the smallest available one of its class that its selector matches.
 */
export function findVolume(claim: Claim, options: FindVolumeOptions): Volume | undefined {
  const reserved = findReserved(claim, options);
  if (options.onlyReserved) return reserved;
  const reservedModes = reserved?.spec.accessModes?.length ?? Infinity;
  for (const shelf of options.index.shelves(claimClass(claim), volumeModeOf(claim))) {
    if (shelf.accessModes.length >= reservedModes) return reserved;
    const found = findOnShelf(shelf, claim, options);
    if (found !== undefined) return found;
  }
  return reserved;
}

function findReserved(claim: Claim, { client, index, node }: FindVolumeOptions): Volume | undefined {
  const candidates: Volume[] = [];
  for (const name of index.namesForClaim(keyOf(claim))) {
    const volume = getObject(client, resources.volumes, { name });
    if (volume === undefined || !refersTo(volume, claim) || !couldHold(volume, claim)) continue;
    if (node !== undefined && !usableOn(volume, node)) continue;
    candidates.push(volume);
  }
  const modes = (volume: Volume): number => volume.spec.accessModes?.length ?? 0;
  candidates.sort((a, b) => modes(a) - modes(b) || Number(volumeSize(a) - volumeSize(b)));
  return candidates[0];
}

function findOnShelf(shelf: Shelf, claim: Claim, options: FindVolumeOptions): Volume | undefined {
  const { client, node, excluded } = options;
  const requested = claim.spec.accessModes ?? [];
  if (!requested.every((mode) => shelf.accessModes.includes(mode))) return undefined;
  for (let i = lowerBound(shelf.volumes, requestedSize(claim)); i < shelf.volumes.length; i++) {
    const { volume } = shelf.volumes[i]!;
    if (excluded?.has(volume.metadata.name) === true || !isChoice(volume, claim)) continue;
    if (node !== undefined && !usableOn(volume, node)) continue;
    // The shelf may be a moment old: another claim of the same turn may have taken the volume.
    const live = getObject(client, resources.volumes, { name: volume.metadata.name });
    if (live === undefined || !isAvailableFor(live, claim)) continue;
    return live;
  }
  return undefined;
}

/** Whether the volume, free and Available, would do for the claim. */
export function isAvailableFor(volume: Volume, claim: Claim): boolean {
  return (
    volume.status?.phase === 'Available' &&
    volume.spec.claimRef === undefined &&
    (volume.spec.storageClassName ?? '') === claimClass(claim) &&
    offersAccessModes(volume, claim.spec.accessModes ?? []) &&
    couldHold(volume, claim) &&
    isChoice(volume, claim)
  );
}

/** Whether a pod on the node can reach the volume. */
export function usableOn(volume: Volume, node: Node): boolean {
  const required = volume.spec.nodeAffinity?.required;
  return required === undefined || matchesNodeSelector(required, node);
}

function isChoice(volume: Volume, claim: Claim): boolean {
  const { selector } = claim.spec;
  return selector === undefined || matchesLabelSelector(selector, volume.metadata.labels);
}
