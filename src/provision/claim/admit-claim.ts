import { shortValue } from '../../base/short-value.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { Informer } from '../../kube/cache/informer.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import type { Recorder } from '../../kube/events/recorder.ts';
import { claimReference, claimUid, requestedProvisioner } from './claim-fields.ts';
import { failedReason } from '../event-reasons.ts';
import { canBind, isReservedFor } from '../volume/existing-volume.ts';
import { unboundForIndex } from '../cache/informers.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../objects.ts';
import type { Provisioner } from '../provisioner.ts';
import { Stopped } from './attempt-steps.ts';
import { storedVolume } from '../volume/stored-volume.ts';

export interface AdmissionOptions {
  provisionerName: string;
  isKnownProvisioner: (name: string) => boolean;
  provisioner: Pick<Provisioner, 'supportsBlock'>;
  volumes: Lister<PersistentVolume> & Pick<Informer<PersistentVolume>, 'isFollowing'>;
  /** Names of volumes that were saved and may not be in the cache yet. */
  recentlySaved: { has(volumeName: string): boolean };
  client: KubeClient;
  recorder: Recorder;
}

/**
 * The last checks before the backend is asked; none of them touches it.
 *
 * @returns why there is nothing to provision. @throws for a retry.
 */
export async function admitClaim(
  { claim, storageClass, volumeName }: { claim: PersistentVolumeClaim; storageClass: StorageClass; volumeName: string },
  options: AdmissionOptions,
  signal: AbortSignal,
): Promise<Stopped | undefined> {
  const { provisioner, provisionerName, isKnownProvisioner, volumes, recentlySaved, recorder, client } = options;
  const reportFailure = (message: string): void =>
    recorder.event(claimReference(claim), 'Warning', failedReason, message);

  const { isFollowing } = volumes;
  const cached = volumes.get(volumeName);
  const isKnown = cached !== undefined || recentlySaved.has(volumeName);
  // the API server may have been restored from a backup without the volume: no event would bring the claim back
  const existing = isKnown && !isFollowing ? await storedVolume(client, volumeName, signal) : cached;
  if (existing !== undefined || (isKnown && isFollowing)) {
    if (existing !== undefined && !(await isReservedFor(claim, existing, { client, signal }))) {
      reportFailure(
        `PersistentVolume ${JSON.stringify(volumeName)} exists already and is not for this claim. Delete it, or recreate the claim`,
      );
    }
    return new Stopped(`volume ${volumeName} exists already`);
  }
  const made = volumes
    .byIndex(unboundForIndex, claimUid(claim))
    .find((volume) => volume.metadata.name !== volumeName && canBind(claim, volume));
  if (made !== undefined) {
    // by a process with another name prefix: the claim can be bound to one volume, and a second one would be deleted again
    const { name } = made.metadata;
    throw new Error(`PersistentVolume ${JSON.stringify(name)} was created for the claim, which is not bound to it yet`);
  }
  if (claim.spec.volumeMode === 'Block' && provisioner.supportsBlock?.({ signal }) !== true) {
    const message = `${provisionerName} does not support block volume provisioning`;
    reportFailure(message);
    return new Stopped(message);
  }
  if (!isKnownProvisioner(storageClass.provisioner)) {
    const { name } = storageClass.metadata;
    const asked = requestedProvisioner(claim) ?? '';
    const message = `StorageClass ${JSON.stringify(name)} names provisioner ${JSON.stringify(shortValue(storageClass.provisioner))}, and the claim asks for ${JSON.stringify(shortValue(asked))}. Nothing is provisioned until both agree`;
    reportFailure(message);
    return new Stopped(message);
  }
  return undefined;
}
