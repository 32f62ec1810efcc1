import { constants } from 'node:fs';
import { mkdir, open, rmdir } from 'node:fs/promises';
import { errnoOf } from './errno.ts';

/**
 * Makes one directory with exactly these permission bits: `mkdir` alone is subject to the umask, and loses setuid and
 * setgid. May be repeated; of a directory that is there already the bits and the group are set, where they differ. One that
 * was made is removed again where that fails.
 *
 * @param options.mode - permission bits, such as `0o2777`.
 * @param options.gid - the group. Default: as the file system chooses.
 * @returns whether it was made now.
 * @throws the error of the file system: `ENOENT` without a parent, `ENOTDIR` or `ELOOP` where something else has the name,
 * also a symbolic link, which is never followed; `EACCES` where the mode keeps its owner from reading, unless that is root.
 */
export async function makeDirectory(
  path: string | Buffer,
  { mode, gid }: { mode: number; gid?: number },
): Promise<boolean> {
  const made = await mkdir(path, { mode: mode & 0o777 }).then(
    () => true,
    (error: unknown) => {
      if (errnoOf(error) === 'EEXIST') return false;
      throw error;
    },
  );
  try {
    await using directory = await open(path, constants.O_DIRECTORY | constants.O_NOFOLLOW);
    const found = await directory.stat();
    if (gid !== undefined && found.gid !== gid) await directory.chown(found.uid, gid); // first: it may clear bits
    const { mode: current } = await directory.stat();
    if ((current & 0o7777) !== mode) await directory.chmod(mode);
  } catch (error) {
    if (made) await rmdir(path).catch(() => undefined);
    throw error;
  }
  return made;
}
