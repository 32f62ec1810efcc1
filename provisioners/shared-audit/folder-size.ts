import { lstat } from 'node:fs/promises';
import { errnoOf, NotDirectoryError, type OpenedDirectory } from '../../src/index.ts';

/** Bytes of a block, whatever the file system (POSIX, `stat`). */
const blockBytes = 512;

/**
 * Bytes that a directory takes with all that is in it, as far as it can be read: no symbolic link is followed, and what
 * vanishes meanwhile does not count.
 *
 * @throws the error of the file system; the reason of `signal` when it aborts.
 */
export async function folderBytes(folder: OpenedDirectory, signal: AbortSignal): Promise<number> {
  let bytes = 0;
  for await (const name of folder.list()) {
    signal.throwIfAborted();
    try {
      const found = await lstat(folder.entry(name));
      bytes += found.blocks * blockBytes;
      if (!found.isDirectory()) continue;
      await using inner = await folder.enter(name);
      bytes += await folderBytes(inner, signal);
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT' && !(error instanceof NotDirectoryError)) throw error;
    }
  }
  return bytes;
}
