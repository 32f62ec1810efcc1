import { annotation } from './annotations.ts';
import type { BinderContext } from './binder-context.ts';
import { migratedPlugins } from './migrated-plugins.ts';
import { getObject, hasAnnotation, removeAnnotation, updateObject } from './object-access.ts';
import { type Claim, resources, type Volume } from './objects.ts';
import { setVolumePhase } from './phases.ts';
import { volumeModeOf } from './volume-fit.ts';

/**
 * Brings one volume one step further. Safe to repeat: in a settled state it writes nothing.
 * @throws {StatusError} if a write fails; the volume should be synced again.
 */
export function syncVolume(context: BinderContext, name: string): void {
  const { client } = context;
  const volume = getObject(client, resources.volumes, { name });
  if (volume === undefined) return;
  const { claimRef } = volume.spec;
  if (!claimRef?.uid) {
    setVolumePhase(context, volume, 'Available');
    return;
  }
  const claim = claimOf(context, volume);
  if (claim === undefined) {
    releaseVolume(context, volume);
  } else if (!claim.spec.volumeName) {
    if (volumeModeOf(volume) === volumeModeOf(claim)) context.enqueueClaim(claim.metadata);
    else reportModeMismatch(context, volume, claim);
  } else if (claim.spec.volumeName === name) {
    setVolumePhase(context, volume, 'Bound');
  } else if (
    hasAnnotation(volume, annotation.provisionedBy) &&
    volume.spec.persistentVolumeReclaimPolicy === 'Delete'
  ) {
    releaseVolume(context, volume);
  } else {
    unbindVolume(context, volume);
  }
}

/** The claim the volume was bound to, if it still lives; one of the same name and another uid is a different claim. */
function claimOf({ client }: BinderContext, { spec: { claimRef = {} } }: Volume): Claim | undefined {
  const { namespace = '', name = '', uid } = claimRef;
  const claim = getObject(client, resources.claims, { namespace, name });
  return claim?.metadata.uid === uid ? claim : undefined;
}

function releaseVolume(context: BinderContext, volume: Volume): void {
  const phase = volume.status?.phase;
  const released = phase === 'Failed' ? volume : setVolumePhase(context, volume, 'Released');
  reclaimVolume(context, released);
}

/** The volume was taken by mistake: back to how the user made it. */
function unbindVolume(context: BinderContext, volume: Volume): void {
  const unbound = updateObject(context.client, resources.volumes, volume, (copy) => {
    if (!hasAnnotation(copy, annotation.boundByController)) {
      if (copy.spec.claimRef !== undefined) delete copy.spec.claimRef.uid;
      return;
    }
    delete copy.spec.claimRef;
    removeAnnotation(copy, annotation.boundByController);
  });
  setVolumePhase(context, unbound, 'Available');
}

function reportModeMismatch({ events }: BinderContext, volume: Volume, claim: Claim): void {
  events.warning(
    volume,
    'VolumeMismatch',
    `Cannot bind PersistentVolume to requested PersistentVolumeClaim "${claim.metadata.name}" due to incompatible volumeMode.`,
  );
  events.warning(
    claim,
    'VolumeMismatch',
    `Cannot bind PersistentVolume "${volume.metadata.name}" to requested PersistentVolumeClaim due to incompatible volumeMode.`,
  );
}

/**
 * Does what the reclaim policy of a released volume asks of the binder: nothing for `Retain`, nothing for
 * `Delete` where an external deleter acts on the phase, and a failure for what nobody here can do. Safe to repeat.
 * @throws {StatusError} if a write fails.
 */
function reclaimVolume(context: BinderContext, volume: Volume): void {
  switch (volume.spec.persistentVolumeReclaimPolicy) {
    case 'Retain':
      return;
    case 'Delete':
      if (hasExternalDeleter(volume)) return;
      setVolumePhase(context, volume, 'Failed', {
        reason: 'VolumeFailedDelete',
        message: `error getting deleter volume plugin for volume "${volume.metadata.name}": no deletable volume plugin matched`,
      });
      return;
    case 'Recycle':
      setVolumePhase(context, volume, 'Failed', {
        reason: 'VolumeFailedRecycle',
        message: 'No recycler plugin found for the volume!',
      });
      return;
    default:
      setVolumePhase(context, volume, 'Failed', {
        reason: 'VolumeUnknownReclaimPolicy',
        message: 'Volume has unrecognized PersistentVolumeReclaimPolicy',
      });
  }
}

function hasExternalDeleter(volume: Volume): boolean {
  const provisioner = volume.metadata.annotations?.[annotation.provisionedBy];
  return (
    (provisioner !== undefined && (!provisioner.startsWith('kubernetes.io/') || migratedPlugins.has(provisioner))) ||
    volume.spec.csi !== undefined ||
    hasAnnotation(volume, annotation.migratedTo)
  );
}
