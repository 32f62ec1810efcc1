import type { Lister, PersistentVolume } from '../../src/index.ts';
import { pathIfBelow, type VolumePath } from './volume-path.ts';

const provisionedByKey = 'pv.kubernetes.io/provisioned-by';

export interface OwnVolumesOptions {
  volumes: Pick<Lister<PersistentVolume>, 'list'>;
  provisionerName: string;
  sharePath: string;
}

/** Whether this provisioner, or one of its name, made the volume. */
export function isMadeBy({ metadata }: Pick<PersistentVolume, 'metadata'>, provisionerName: string): boolean {
  return metadata.annotations?.[provisionedByKey] === provisionerName;
}

/** The volumes of this provisioner that lie in the export, as the cache has them. */
export function* ownVolumes({
  volumes,
  provisionerName,
  sharePath,
}: OwnVolumesOptions): Generator<{ name: string; path: VolumePath }> {
  for (const volume of volumes.list()) {
    if (!isMadeBy(volume, provisionerName)) continue;
    const path = pathIfBelow(volume, sharePath);
    if (path !== undefined) yield { name: volume.metadata.name, path };
  }
}
