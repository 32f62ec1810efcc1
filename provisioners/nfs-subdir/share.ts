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
    await this.within(async () => {
      await access(this.#mountPoint, constants.W_OK).catch((error: unknown) => {
        if (errnoOf(error) === 'EROFS') throw readOnly(this.#mountPoint); // other errors need not be of the volumes
      });
    }, signal);
  }

  /**
   * Makes the directory of a volume; what is there already is used, as it may be of an earlier attempt. Where that fails, such
   * as on a full file system, the directories above it that were made for it go again.
   *
   * @throws the error of the file system, or `NotDirectoryError` where anything but directories is in the way.
   */
  async make(path: VolumePath, signal: AbortSignal): Promise<void> {
    const { parents, name } = split(path);
    await this.within(async (root) => {
      const there = await depthOf(root, parents);
      try {
        await using parent = await root.walk(parents, { make: true });
        await parent.make(name, { mode: volumeMode });
      } catch (error) {
        for (let depth = parents.length; depth > there; depth--) await removeIfEmpty(root, parents.slice(0, depth));
        throw error;
      }
    }, signal);
  }

  /** Whether the directory is there. @throws `NotDirectoryError` where something else is, also a symbolic link. */
  async has(path: VolumePath, signal: AbortSignal): Promise<boolean> {
    return await this.within(async (root) => {
      try {
        await using _directory = await root.walk(path);
        return true;
      } catch (error) {
        if (errnoOf(error) === 'ENOENT') return false; // what is missing there is no missing export
        throw error;
      }
    }, signal);
  }

  /** Removes the directory with all that is in it; directories above it stay. May be repeated. */
  async remove(path: VolumePath, signal: AbortSignal): Promise<void> {
    const { parents, name } = split(path);
    await this.within(async (root) => {
      await using parent = await root.walk(parents);
      await removeTree(parent, name, { signal });
    }, signal);
  }

  /** Whether nothing is in the directory. */
  async isEmpty(path: VolumePath, signal: AbortSignal): Promise<boolean> {
    return await this.within(async (root) => {
      await using directory = await root.walk(path);
      for await (const _entry of directory.list()) return false;
      return true;
    }, signal);
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
    return await this.within(async (root) => {
      await using target = await root.walk(parents, { make: true });
      const { name } = split(path);
      const plain = `archived-${name}`;
      if (Buffer.byteLength(plain) <= maxNameBytes && !(await target.has(plain))) return [...parents, plain];
      for (let number = 1; ; number++) {
        const end = `-${volumeName}${number === 1 ? '' : `-${number}`}`;
        const longer = shortened(plain, maxNameBytes - Buffer.byteLength(end)) + end;
        if (!(await target.has(longer))) return [...parents, longer];
      }
    }, signal);
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
    await this.within(async (root) => {
      await using parent = await root.walk(from.parents);
      await using target = await root.walk(to.parents);
      if (before !== undefined) {
        await using directory = await parent.enter(from.name);
        await before(root, String((await directory.stat()).ino));
      }
      await parent.moveTo(from.name, target, to.name);
    }, signal);
  }

  /**
   * Works below the root of the share; may be called again where what was opened has gone stale, as after a restart of the server.
   *
   * @throws what the work throws, with a cure; a `ShareError` where the mount itself has failed.
   */
  async within<T>(work: (root: OpenedDirectory) => Promise<T>, signal: AbortSignal): Promise<T> {
    for (let isFirst = true; ; isFirst = false) {
      try {
        await using root = await this.#root(signal);
        return await work(root);
      } catch (error) {
        if (isFirst && errnoOf(error) === 'ESTALE') continue;
        throw withCure(error, this.#mountPoint);
      }
    }
  }

  async #root(signal: AbortSignal): Promise<OpenedDirectory> {
    const root = await OpenedDirectory.open(this.#mountPoint).catch((error: unknown) => {
      throw hasDied(error) ? error : notMounted(this.#mountPoint, error);
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

/** Whether the error is that of a mount whose server, or whose process, is gone. */
function hasDied(error: unknown): boolean {
  return ['ESTALE', 'ENOTCONN', 'EIO', 'ENODEV', 'EHOSTDOWN', 'ETIMEDOUT'].includes(errnoOf(error) ?? '');
}

const cures: Readonly<Record<string, string>> = {
  EPERM:
    'the file server refuses it: export with no_root_squash, or remove what protects it, such as an immutable flag',
  EACCES:
    'the file server refuses it: export with no_root_squash, or give the directory to the user of the provisioner',
  EROFS: 'the export, or this part of it, is read-only: export and mount it for writing',
  ENOSPC: 'the file server has no space left: free some',
  EDQUOT: 'the quota on the file server is used up: free some space, or raise it',
};

/** An error of the file system with the cure, where there is one; the rest as it is. */
function withCure(error: unknown, mountPoint: string): unknown {
  const code = errnoOf(error) ?? '';
  if (!(error instanceof Error)) return error;
  error.message = error.message.replace(/\/proc\/self\/fd\/\d+\//, () => `${mountPoint}/`); // of a file in the root
  if (hasDied(error)) {
    const text = `the export at ${mountPoint} is mounted, but its server does not serve it: ${error.message}. This is retried. If it persists, delete the Pod of the provisioner, so that the export is mounted again`;
    return new ShareError(text, { cause: error });
  }
  const cure = Object.hasOwn(cures, code) ? cures[code] : undefined;
  if (cure !== undefined) error.message += ` (${cure})`;
  return error;
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
