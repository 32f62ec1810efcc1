import { type Mirror, MultiMap } from './mirror.ts';
import type { Volume } from './objects.ts';
import { volumeModeOf, volumeSize } from './volume-fit.ts';

/** An available volume and its size, both as of the mirror. */
export interface ShelvedVolume {
  size: bigint;
  volume: Volume;
}

/** Available volumes with the same access modes, ordered by size, then name. */
export interface Shelf {
  accessModes: readonly string[];
  volumes: readonly ShelvedVolume[];
}

interface OpenShelf extends Shelf {
  volumes: ShelvedVolume[];
}

interface Place {
  group: string;
  shelf: string;
  size: bigint;
}

/**
 * Finds volumes without walking all of them: those that refer to a claim, and the available ones by class, volume
 * mode and access modes in order of size. It follows a mirror and lags as the mirror does.
 */
export class VolumeIndex {
  readonly #byClaim = new MultiMap<string>();
  readonly #groups = new Map<string, Map<string, OpenShelf>>();
  readonly #places = new Map<string, Place>();

  constructor(mirror: Mirror<Volume>) {
    mirror.listen(({ object, previous, deleted }) => {
      if (previous !== undefined) this.#remove(previous);
      if (!deleted) this.#insert(object);
    });
  }

  /** Names of the volumes whose claimRef names the claim `namespace/name`, whatever its uid. */
  namesForClaim(claimKey: string): Iterable<string> {
    return this.#byClaim.get(claimKey);
  }

  /** Shelves of available volumes of the class and volume mode, the one with the fewest access modes first. */
  shelves(className: string, volumeMode: string): Shelf[] {
    const group = this.#groups.get(groupKey(className, volumeMode));
    if (group === undefined) return [];
    return [...group.values()].sort((a, b) => a.accessModes.length - b.accessModes.length);
  }

  #insert(volume: Volume): void {
    const { name } = volume.metadata;
    const claimKey = claimKeyOf(volume);
    if (claimKey !== undefined) {
      this.#byClaim.add(claimKey, name);
      return;
    }
    if (volume.status?.phase !== 'Available' || volume.metadata.deletionTimestamp !== undefined) return;
    const accessModes = volume.spec.accessModes ?? [];
    const place: Place = {
      group: groupKey(volume.spec.storageClassName ?? '', volumeModeOf(volume)),
      shelf: [...accessModes].sort().join(),
      size: volumeSize(volume),
    };
    const group = this.#groups.get(place.group) ?? new Map<string, OpenShelf>();
    this.#groups.set(place.group, group);
    const shelf = group.get(place.shelf) ?? { accessModes, volumes: [] };
    group.set(place.shelf, shelf);
    shelf.volumes.splice(lowerBound(shelf.volumes, place.size, name), 0, { size: place.size, volume });
    this.#places.set(name, place);
  }

  #remove(volume: Volume): void {
    const { name } = volume.metadata;
    const claimKey = claimKeyOf(volume);
    if (claimKey !== undefined) this.#byClaim.delete(claimKey, name);
    const place = this.#places.get(name);
    if (place === undefined) return;
    this.#places.delete(name);
    const group = this.#groups.get(place.group);
    const shelf = group?.get(place.shelf);
    if (group === undefined || shelf === undefined) return;
    shelf.volumes.splice(lowerBound(shelf.volumes, place.size, name), 1);
    if (shelf.volumes.length === 0) group.delete(place.shelf);
    if (group.size === 0) this.#groups.delete(place.group);
  }
}

/** The claim `namespace/name` that the volume's claimRef names. */
export function claimKeyOf(volume: Volume): string | undefined {
  const { claimRef } = volume.spec;
  return claimRef === undefined ? undefined : `${claimRef.namespace ?? ''}/${claimRef.name ?? ''}`;
}

/** Index of the first volume on the shelf that is larger than `size`, or as large and not before `name`. */
export function lowerBound(volumes: readonly ShelvedVolume[], size: bigint, name = ''): number {
  let low = 0;
  let high = volumes.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const entry = volumes[middle]!;
    if (entry.size < size || (entry.size === size && entry.volume.metadata.name < name)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function groupKey(className: string, volumeMode: string): string {
  return `${volumeMode}/${className}`;
}
