import type { SandboxClient } from '../api/client.ts';
import { annotation } from './annotations.ts';
import { getObject, listObjects } from './object-access.ts';
import { resources, type Claim, type StorageClass } from './objects.ts';

/** The claim's class name: the beta annotation, else the field, else empty. */
export function claimClass(claim: Claim): string {
  return claim.metadata.annotations?.[annotation.betaStorageClass] ?? claim.spec.storageClassName ?? '';
}

/** Whether the claim says nothing about its class; an explicit empty one is a choice and stays. */
export function saysNoClass(claim: Claim): boolean {
  return (
    claim.metadata.annotations?.[annotation.betaStorageClass] === undefined && claim.spec.storageClassName === undefined
  );
}

/** Whether volumes of the class wait for the first pod; an unknown class does not. */
export function isDelayed(client: SandboxClient, className: string): boolean {
  if (className === '') return false;
  return getObject(client, resources.classes, { name: className })?.volumeBindingMode === 'WaitForFirstConsumer';
}

/** Whether the class is marked as a default one, by either key. */
export function isMarkedDefault(storageClass: StorageClass): boolean {
  const { annotations = {} } = storageClass.metadata;
  return annotations[annotation.defaultClass] === 'true' || annotations[annotation.betaDefaultClass] === 'true';
}

/** The default class: of several the newest, then the smallest name. */
export function findDefaultClass(client: SandboxClient): StorageClass | undefined {
  let best: StorageClass | undefined;
  // The list is ordered by name, so that only a newer one replaces an earlier one.
  for (const candidate of listObjects(client, resources.classes)) {
    if (!isMarkedDefault(candidate)) continue;
    if (best === undefined || createdMs(candidate) > createdMs(best)) best = candidate;
  }
  return best;
}

function createdMs(storageClass: StorageClass): number {
  return Date.parse(storageClass.metadata.creationTimestamp ?? '') || 0;
}
