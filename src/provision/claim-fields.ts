/** What a claim says, with the precedence that Kubernetes' own controllers give its fields, and what follows from that. */
import { quantityBytes } from '../base/quantity.ts';
import { isUnservedResource, NotFoundError } from '../kube/client/api-error.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import type { ObjectReference } from '../kube/kube-object.ts';
import {
  alphaSelectedNodeKey,
  betaStorageClassKey,
  betaStorageProvisionerKey,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  selectedNodeKey,
  type StorageClass,
  storageProvisionerKey,
} from './objects.ts';

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

export type ClaimDecision =
  | { provision: true; storageClass: StorageClass }
  | { provision: false; reason: 'bound' | 'not-qualified' | 'not-requested' | 'other-provisioner' | 'waits-for-node' }
  | { provision: false; reason: 'class-missing'; className: string };

interface ClaimDecisionInput {
  claim: PersistentVolumeClaim;
  /** What `Provisioner.shouldProvision` returns; not read for a claim that names its volume. */
  qualifies: boolean;
  isKnownProvisioner: (name: string) => boolean;
  getClass: (name: string) => StorageClass | undefined;
}

/** Decides whether a claim is to be provisioned now: the first reason against it counts. Pure. */
export function claimDecision(input: ClaimDecisionInput): ClaimDecision {
  const { claim } = input;
  if (namesVolume(claim)) return { provision: false, reason: 'bound' };
  if (!input.qualifies) return { provision: false, reason: 'not-qualified' };
  const provisioner = requestedProvisioner(claim);
  if (provisioner === undefined) return { provision: false, reason: 'not-requested' };
  if (!input.isKnownProvisioner(provisioner)) return { provision: false, reason: 'other-provisioner' };
  const name = className(claim);
  const storageClass = input.getClass(name);
  if (storageClass === undefined) return { provision: false, reason: 'class-missing', className: name };
  if (storageClass.volumeBindingMode === 'WaitForFirstConsumer') {
    const node = claim.metadata.annotations?.[selectedNodeKey] ?? '';
    if (node === '') return { provision: false, reason: 'waits-for-node' };
  }
  return { provision: true, storageClass };
}

/**
 * Whether a claim still wants the volume that was begun for it.
 *
 * - `gone`: the claim does not exist any more; one that is being deleted does.
 * - `has-it`: it is bound to that very volume, or was, and the volume is lost.
 * - `elsewhere`: it is bound to another volume, or was handed to another provisioner or node.
 */
export type ClaimWish = 'wanted' | 'gone' | 'has-it' | 'elsewhere';

/** A volume and the claim that it is for. */
export interface WishedVolume {
  claim: { namespace: string; name: string; uid: string };
  /** Absent: none was begun yet. */
  volume?: { name: string };
}

export interface ClaimWishOptions {
  isKnownProvisioner: (name: string) => boolean;
  /** `shouldProvision` of the provisioner; if it throws, that counts as true. */
  qualifies: (claim: PersistentVolumeClaim) => boolean | Promise<boolean>;
}

/**
 * What a claim wants, from its current state. Class, grants and the source are not considered: they were checked before the
 * volume was begun.
 *
 * @param claim - of the recorded namespace and name, or found by its UID.
 */
export async function claimWish(
  record: WishedVolume,
  claim: PersistentVolumeClaim | undefined,
  { isKnownProvisioner, qualifies }: ClaimWishOptions,
): Promise<ClaimWish> {
  if (claim === undefined || claimUid(claim) !== record.claim.uid) return 'gone';
  const { volumeName = '' } = claim.spec;
  // a user may have filled the name in; that the volume was saved is certain once the claim was bound
  const wasBound = claim.status?.phase === 'Bound' || claim.status?.phase === 'Lost';
  if (volumeName !== '' && volumeName === record.volume?.name) return wasBound ? 'has-it' : 'wanted';
  if (volumeName !== '') return 'elsewhere';
  const provisioner = requestedProvisioner(claim);
  if (provisioner === undefined || !isKnownProvisioner(provisioner)) return 'elsewhere';
  try {
    return (await qualifies(claim)) ? 'wanted' : 'elsewhere';
  } catch {
    return 'wanted'; // an attempt reports why
  }
}

/** The claim of this name on the API server; undefined if there is none. @throws whatever the client throws. */
export async function liveClaim(
  client: Pick<KubeClient, 'get'>,
  { namespace, name }: { namespace?: string | undefined; name: string },
  signal: AbortSignal,
): Promise<PersistentVolumeClaim | undefined> {
  const place = { name, ...(namespace !== undefined && { namespace }) };
  try {
    return await client.get<PersistentVolumeClaim>(persistentVolumeClaims, place, { signal });
  } catch (error) {
    // any other 404 is that of a proxy, or of a server that is still starting
    if (error instanceof NotFoundError && !isUnservedResource(error)) return undefined;
    throw error;
  }
}

/** The claim on the API server; undefined if it is gone, also if another one has its name. @throws as `liveClaim`. */
export async function currentClaim(
  client: Pick<KubeClient, 'get'>,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<PersistentVolumeClaim | undefined> {
  const live = await liveClaim(client, claim.metadata, signal);
  return live !== undefined && claimUid(live) === claimUid(claim) ? live : undefined;
}

/**
 * The bytes a claim requests, fractions rounded up; 0 when it requests none. `resources.limits` does not count.
 *
 * @throws {QuantityError} when the request is no quantity.
 */
export function storageRequestBytes(claim: PersistentVolumeClaim): bigint {
  return quantityBytes(claim.spec.resources?.requests?.['storage'] ?? 0);
}
