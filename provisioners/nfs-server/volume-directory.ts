/** The directories of volumes: one per volume, directly below the export directory, with its name. */
import { lstat, readdir, statfs } from 'node:fs/promises';
import path from 'node:path';
import { errnoOf, makeDirectory, OpenedDirectory, removeTree } from '../../src/index.ts';

/** A directory that does not belong to a volume, or may hold what somebody else put there. */
class DirectoryError extends Error {
  override readonly name = 'DirectoryError';
}

/** With the bit that gives new files the group of the directory. */
const openMode = 0o2777;
/** For a group: its members may do everything, others only pass. */
const groupMode = 0o2071;

const volumeNames = /^pvc-[\w.-]+$/;

/** All that could be names of volumes in a text. */
export function volumeNamesIn(text: string): string[] {
  return text.match(/pvc-[\w.-]+/g) ?? [];
}

/** The directories of volumes. */
export class VolumeDirectories {
  /** The export directory. */
  readonly root: string;

  /** @param root - the export directory, which exists. */
  constructor(root: string) {
    this.root = root;
  }

  /**
   * Where a volume lies.
   *
   * @throws {DirectoryError} for a name that no volume of this provisioner has: the export directory also holds the
   * configuration of the server, our identity, and what the server has to remember.
   */
  of(volumeName: string): string {
    if (volumeNames.test(volumeName)) return this.named(volumeName);
    throw new DirectoryError(`${JSON.stringify(volumeName)} is not the name of a volume that was provisioned here`);
  }

  /** Whether a path is one that `of` gives, written in the same way. */
  isVolume(directory: string): boolean {
    const name = path.basename(directory);
    return volumeNames.test(name) && directory === this.named(name);
  }

  /** The directory of the volume that a path is or lies in; for a path elsewhere the path itself, normalized. */
  around(given: string): string {
    const clean = path.resolve('/', given);
    const below = path.relative(this.root, clean);
    if (below === '' || below.split(path.sep, 1)[0] === '..') return clean;
    return this.named(below.split(path.sep, 1)[0] ?? '');
  }

  /** As `of`, for comparing alone: any name will do. */
  named(volumeName: string): string {
    return path.join(this.root, volumeName);
  }

  /** Whether it exists and is itself a directory: a symbolic link leads elsewhere. */
  async isDirectory(directory: string): Promise<boolean> {
    return (await statOf(directory))?.isDirectory() === true;
  }

  /** Whether it is there. */
  async exists(directory: string): Promise<boolean> {
    return (await statOf(directory)) !== undefined;
  }

  /**
   * Makes the directory of a volume, with exactly the mode that its group asks for.
   *
   * @param options.gid - the group; undefined: everybody may write.
   * @param options.isOurs - whether an earlier attempt may have made it: then it is taken as it is.
   * @returns whether it is new.
   * @throws {DirectoryError} `the path already exists`, when it is there, not empty, and not ours.
   */
  async make(directory: string, { gid, isOurs }: { gid: number | undefined; isOurs: boolean }): Promise<boolean> {
    const found = await statOf(directory);
    const isFree = found === undefined || (found.isDirectory() && (isOurs || (await readdir(directory)).length === 0));
    if (!isFree) throw new DirectoryError(`the path already exists: ${directory}`);
    return await makeDirectory(directory, gid === undefined ? { mode: openMode } : { mode: groupMode, gid });
  }

  /** Removes the directory with all that is in it; no symbolic link is followed. Safe to repeat. */
  async remove(directory: string, signal: AbortSignal): Promise<void> {
    const found = await statOf(directory);
    if (found === undefined) return;
    if (!found.isDirectory()) {
      throw new DirectoryError(`${directory} is not a directory; remove it so that the volume can be deleted`);
    }
    await using root = await OpenedDirectory.open(this.root);
    await removeTree(root, path.basename(directory), { signal });
  }

  /** Bytes that can be written. */
  async freeBytes(): Promise<bigint> {
    const { bavail, bsize } = await statfs(this.root, { bigint: true });
    return bavail * bsize;
  }
}

async function statOf(directory: string): Promise<Awaited<ReturnType<typeof lstat>> | undefined> {
  try {
    return await lstat(directory); // of a symbolic link itself
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
