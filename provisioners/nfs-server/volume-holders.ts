/** Which PersistentVolumes have the directory of a volume, or may have it: those of all provisioners and drivers. */
import path from 'node:path';
import type { PersistentVolume } from '../../src/index.ts';
import { type VolumeDirectories, volumeNamesIn } from './volume-directory.ts';
import { mountedPaths } from './volume-object.ts';

export class VolumeHolders {
  /** A PersistentVolume by the name of a directory. */
  readonly #holders = new Map<string, string>();
  /** A PersistentVolume of NFS that has the whole export directory, or one above it, on whatever server. */
  readonly above: string | undefined;

  constructor(volumes: readonly PersistentVolume[], directories: Pick<VolumeDirectories, 'root'>) {
    for (const { metadata, spec } of volumes) {
      // anywhere in it: each driver for NFS has attributes and handles of its own
      for (const name of volumeNamesIn(JSON.stringify([metadata.name, spec]))) this.#holders.set(name, metadata.name);
    }
    const isHolder = (volume: PersistentVolume) => mountedPaths(volume).some((path) => isAbove(path, directories.root));
    this.above = volumes.find(isHolder)?.metadata.name;
  }

  /** The PersistentVolume that has the directory of this name or a part of it, or that has its name. */
  of(name: string): string | undefined {
    return this.#holders.get(name);
  }
}

function isAbove(mounted: string, root: string): boolean {
  return path.relative(mounted, root).split(path.sep, 1)[0] !== '..';
}
