import type { Logger } from '../base/logger.ts';
import { AlreadyExistsError } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import type { Recorder } from '../kube/recorder.ts';
import { claimReference } from './claim-facts.ts';
import { type PersistentVolume, type PersistentVolumeClaim, persistentVolumes } from './objects.ts';

/** Saves new volumes to the API server. */
export interface VolumeStore {
  /**
   * Saves a completed volume; one that exists already counts as saved. Safe to repeat.
   *
   * @throws the last failure, when the store gives up; the storage was then cleaned up or reported.
   */
  save(claim: PersistentVolumeClaim, volume: PersistentVolume): Promise<void>;
  /** Works in the background until the signal aborts, where the store has something to do there. */
  run(signal: AbortSignal): Promise<void>;
  /** Resolves once nothing waits to be saved any more. */
  settled(): Promise<void>;
}

/** What every store works with. */
export interface VolumeStoreParts {
  client: KubeClient;
  recorder: Recorder;
  logger: Logger;
  /** Called as soon as the API server has the volume. */
  onSaved: (volume: PersistentVolume) => void;
}

export const succeededReason = 'ProvisioningSucceeded';
export const failedReason = 'ProvisioningFailed';
export const waitingReason = 'ProvisioningWaiting';

/** Creates the object; one that is there already counts as created. @throws {ApiError} and {TransportError}. */
export async function createVolume(
  { client, onSaved }: VolumeStoreParts,
  volume: PersistentVolume,
  signal?: AbortSignal,
): Promise<void> {
  try {
    await client.create(persistentVolumes, volume, { signal });
  } catch (error) {
    // saved by an earlier attempt whose answer was lost; names are made from UIDs, so it can be no other's
    if (!(error instanceof AlreadyExistsError)) throw error;
  }
  onSaved(volume);
}

/** Tells the claim's owner that the volume is there. */
export function tellSuccess(
  { recorder }: VolumeStoreParts,
  claim: PersistentVolumeClaim,
  volume: PersistentVolume,
): void {
  recorder.event(
    claimReference(claim),
    'Normal',
    succeededReason,
    `Successfully provisioned volume ${volume.metadata.name}`,
  );
}
