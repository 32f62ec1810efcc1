import { migratedToKey, provisionedByKey } from '../keys.ts';
import type { PersistentVolume } from '../objects.ts';

/**
 * Whether a volume belongs to one of the known provisioners. A statically provisioned CSI volume of a known driver does: once
 * released, with policy Delete, its storage is deleted too.
 */
export function ownsVolume(volume: PersistentVolume, isKnownProvisioner: (name: string) => boolean): boolean {
  const annotations = volume.metadata.annotations ?? {};
  const provisionedBy = annotations[provisionedByKey];
  const migratedTo = annotations[migratedToKey];
  const migrated = migratedTo !== undefined && isKnownProvisioner(migratedTo);
  if (provisionedBy !== undefined) return isKnownProvisioner(provisionedBy) || migrated;
  if (volume.spec.csi !== undefined) return isKnownProvisioner(volume.spec.csi.driver);
  return migrated;
}
