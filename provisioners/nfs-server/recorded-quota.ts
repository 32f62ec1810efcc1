/** The quota that a PersistentVolume names: what is needed to restore it when it is missing in the projects file. */
import { type PersistentVolume, quantityBytes } from '../../src/index.ts';
import type { VolumeDirectories } from './volume-directory.ts';

/** A quota that a PersistentVolume names. */
export interface LostQuota {
  /** The project id. */
  readonly id: number;
  readonly directory: string;
  readonly bytes: bigint;
}

/** Project ids have 32 bits in XFS; of these only the lower half is used, as in the original. */
export const largestProjectId = 2 ** 31 - 1;

/**
 * Reads the quota of a volume. It uses only numbers, and the path, which must be that of a volume: the text in `Project_block`
 * must not reach a file from which commands are built. The size is the capacity of the volume.
 *
 * @returns undefined when the volume has no quota; else the quota, or why it cannot be set.
 */
export function recordedQuota(
  { metadata: { annotations = {} }, spec: { nfs, capacity } }: PersistentVolume,
  directories: Pick<VolumeDirectories, 'isVolume' | 'root'>,
): LostQuota | { readonly problem: string } | undefined {
  const given = annotations['Project_Id'] ?? '0';
  if (given === '0') return undefined;
  const id = projectIdOf(annotations);
  if (id === undefined) {
    return {
      problem: `annotation Project_Id ${JSON.stringify(given.slice(0, 200))}: it must be a number up to ${largestProjectId}`,
    };
  }
  const directory = nfs?.path ?? '';
  if (!directories.isVolume(directory)) {
    return {
      problem: `spec.nfs.path ${JSON.stringify(directory)} is not a directory pvc-... directly below ${directories.root}`,
    };
  }
  const bytes = bytesOf(capacity?.['storage']);
  return bytes === undefined ? { problem: 'spec.capacity.storage is not a size' } : { id, directory, bytes };
}

/** The project id that a volume names; undefined if it has none, or one that no project can have. */
export function projectIdOf(annotations: Readonly<Record<string, string>>): number | undefined {
  const text = annotations['Project_Id'] ?? '';
  return /^[1-9]\d{0,9}$/.test(text) && Number(text) <= largestProjectId ? Number(text) : undefined;
}

function bytesOf(size: string | number | undefined): bigint | undefined {
  try {
    const bytes = quantityBytes(size ?? '');
    return bytes > 0n ? bytes : undefined; // 0 is no limit
  } catch {
    return undefined;
  }
}
