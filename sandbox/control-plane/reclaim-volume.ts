import { annotation } from './annotations.ts';
import type { BinderContext } from './binder-context.ts';
import { migratedPlugins } from './migrated-plugins.ts';
import { hasAnnotation } from './object-access.ts';
import type { Volume } from './objects.ts';
import { setVolumePhase } from './phases.ts';

/**
 * Does what the reclaim policy of a released volume asks of the binder: nothing for `Retain`, nothing for
 * `Delete` where an external deleter acts on the phase, and a failure for what nobody here can do. Safe to repeat.
 * @throws {StatusError} if a write fails.
 */
export function reclaimVolume(context: BinderContext, volume: Volume): void {
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
