/**
 * The mounted export. Pods write in it at the same time, possibly with malicious intent: all work is done below opened
 * directories, and no symbolic link is followed.
 */
import { access, constants } from 'node:fs/promises';
import { errnoOf, OpenedDirectory, removeTree } from '../../src/index.ts';
import { ShareError, type ShareGuard } from './share-guard.ts';
import type { VolumePath } from './volume-path.ts';

/** Permission bits of a volume: every user of a pod may write in it. Directories above it get what the umask leaves of them. */
const volumeMode = 0o777;
/** Bytes that a name may have in a file system. */
const maxNameBytes = 255;

/** Each method throws a `ShareError`, and does nothing, while what is mounted is not the share of the volumes. */
export class Share {
  readonly #mountPoint: string;
  readonly #guard: Pick<ShareGuard, 'check'>;

  /** @param guard - asked on the opened root, directly before each work below that very root. */
  constructor(mountPoint: string, guard: Pick<ShareGuard, 'check'>) {
    this.#mountPoint = mountPoint;
    this.#guard = guard;
  }

  /** @throws {ShareError}, and what fails, when the share cannot be used now, also because it is mounted read-only. */
  async check(signal: AbortSignal): Promise<void> {
    await using _root = await this.#root(signal);
    await access(this.#mountPoint, constants.W_OK).catch((error: unknown) => {
      if (errnoOf(error) === 'EROFS') throw readOnly(this.#mountPoint); // other errors need not be of the volumes
    });
  }

  /**
   * Makes the directory of a volume; what is there already is used, as it may be of an earlier attempt. Where that fails, such
   * as on a full file system, the directories above it that were made for it go again.
   *
   * @throws the error of the file system, or `NotDirectoryError` where anything but directories is in the way.
   */
  async make(path: VolumePath, signal: AbortSignal): Promise<void> {
    const { parents, name } = split(path);
    await using root = await this.#root(signal);
    const there = await depthOf(root, parents);
    try {
      await using parent = await root.walk(parents, { make: true });
      await parent.make(name, { mode: volumeMode });
    } catch (error) {
      for (let depth = parents.length; depth > there; depth--) await removeIfEmpty(root, parents.slice(0, depth));
      throw error;
    }
  }

  /** Whether the directory is there. @throws `NotDirectoryError` where something else is, also a symbolic link. */
  async has(path: VolumePath, signal: AbortSignal): Promise<boolean> {
    await using root = await this.#root(signal); // what is missing there is no missing directory
    try {
      await using _directory = await root.walk(path);
      return true;
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return false;
      throw error;
    }
  }

  /** Removes the directory with all that is in it; directories above it stay. May be repeated. */
  async remove(path: VolumePath, signal: AbortSignal): Promise<void> {
    const { parents, name } = split(path);
    await using parent = await this.#open(parents, signal);
    await removeTree(parent, name, { signal });
  }

  /** Whether nothing is in the directory. */
  async isEmpty(path: VolumePath, signal: AbortSignal): Promise<boolean> {
    await using directory = await this.#open(path, signal);
    for await (const _entry of directory.list()) return false;
    return true;
  }

  /**
   * A path under which the directory can be archived: `archived-` and its last name, in the root of the export or in the folder;
   * if that is taken or too long, followed by the volume's name, and then by a number.
   *
   * @param folder - in the root; created if it is missing.
   */
  async archivePath(
    path: VolumePath,
    { volumeName, folder }: { volumeName: string; folder: string | undefined },
    signal: AbortSignal,
  ): Promise<VolumePath> {
    const parents = folder === undefined ? [] : [folder];
    await using target = await this.#open(parents, signal, { make: true });
    const { name } = split(path);
    const plain = `archived-${name}`;
    if (Buffer.byteLength(plain) <= maxNameBytes && !(await target.has(plain))) return [...parents, plain];
    for (let number = 1; ; number++) {
      const end = `-${volumeName}${number === 1 ? '' : `-${number}`}`;
      const longer = shortened(plain, maxNameBytes - Buffer.byteLength(end)) + end;
      if (!(await target.has(longer))) return [...parents, longer];
    }
  }

  /**
   * Moves the directory to a path that does not exist yet.
   *
   * @param before - awaited directly before that, with the root and the number of the directory's inode.
   */
  async archive(
    path: VolumePath,
    archive: VolumePath,
    { before, signal }: { before?: (root: OpenedDirectory, inode: string) => Promise<void>; signal: AbortSignal },
  ): Promise<void> {
    const [from, to] = [split(path), split(archive)];
    await using root = await this.#root(signal);
    await using parent = await root.walk(from.parents);
    await using target = await root.walk(to.parents);
    if (before !== undefined) {
      await using directory = await parent.enter(from.name);
      await before(root, String((await directory.stat()).ino));
    }
    await parent.moveTo(from.name, target, to.name);
  }

  /** Works below the root of the share. */
  async within<T>(work: (root: OpenedDirectory) => Promise<T>, signal: AbortSignal): Promise<T> {
    await using root = await this.#root(signal);
    return await work(root);
  }

  async #open(path: readonly string[], signal: AbortSignal, options?: { make: boolean }): Promise<OpenedDirectory> {
    await using root = await this.#root(signal);
    return await root.walk(path, options);
  }

  async #root(signal: AbortSignal): Promise<OpenedDirectory> {
    const root = await OpenedDirectory.open(this.#mountPoint).catch((error: unknown) => {
      throw notMounted(this.#mountPoint, error);
    });
    try {
      await this.#guard.check(root, signal);
      return root;
    } catch (error) {
      await root[Symbol.asyncDispose]();
      throw error;
    }
  }
}

/** How many directories of the path exist. */
async function depthOf(root: OpenedDirectory, path: readonly string[]): Promise<number> {
  for (let depth = path.length; depth > 0; depth--) {
    try {
      await using _directory = await root.walk(path.slice(0, depth));
      return depth;
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') return path.length; // something else is wrong, and nothing is ours to remove
    }
  }
  return 0;
}

/** Others may have put something into it meanwhile: then it stays. */
async function removeIfEmpty(root: OpenedDirectory, path: readonly string[]): Promise<void> {
  try {
    await using parent = await root.walk(path.slice(0, -1));
    await parent.removeEmpty(path.at(-1) ?? '');
  } catch {
    // the failure that led here is the one to report
  }
}

function notMounted(mountPoint: string, error: unknown): ShareError {
  const reason = error instanceof Error ? error.message : String(error);
  return new ShareError(`the export is not mounted at ${mountPoint}: ${reason}. Nothing is created or deleted`);
}

function readOnly(mountPoint: string): ShareError {
  return new ShareError(`the export at ${mountPoint} is mounted read-only. Nothing is created or deleted`);
}

function split(path: VolumePath): { parents: readonly string[]; name: string } {
  return { parents: path.slice(0, -1), name: path.at(-1) ?? '' };
}

/** The longest beginning of a text that fits, in whole characters. */
function shortened(text: string, maxBytes: number): string {
  let kept = '';
  for (const character of text) {
    if (Buffer.byteLength(kept) + Buffer.byteLength(character) > maxBytes) break;
    kept += character;
  }
  return kept;
}
