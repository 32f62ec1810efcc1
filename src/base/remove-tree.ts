import { randomUUID } from 'node:crypto';
import { errnoOf } from './errno.ts';
import { type EntryName, NotDirectoryError, OpenedDirectory } from './opened-directory.ts';

/** Directories that are open at once: deeper ones are moved up first, so that no depth exhausts file descriptors. */
const maxDepth = 32;
/** Number of passes over a directory in which others keep creating entries; into the top one those of too deep ones are moved. */
const maxLists = 10;
const maxListsAtTop = 1000;

/**
 * Removes an entry with all that is in it, while others may work in it: no symbolic link is followed, also none that takes
 * the place of a directory meanwhile. `node:fs` gives no such promise for `rm`. May be repeated; nothing there is a success.
 *
 * One call of the file system at a time, so that a server which does not respond holds up one thread of Node.js.
 *
 * @throws the error of the file system, such as `ENOTEMPTY` where others go on making entries: what is left can be removed
 * later. The reason of `signal` when it aborts.
 */
export async function removeTree(
  parent: OpenedDirectory,
  name: EntryName,
  { signal }: { signal?: AbortSignal } = {},
): Promise<void> {
  if (await removeLeaf(parent, name)) return;
  let directory: OpenedDirectory;
  try {
    directory = await parent.enter(name);
  } catch (error) {
    if (isGone(error)) return;
    if (error instanceof NotDirectoryError && (await removeLeaf(parent, name))) return; // swapped meanwhile
    throw error;
  }
  {
    await using top = directory;
    await empty(top, { top, depth: 1, signal });
  }
  await removeEmptied(parent, name);
}

interface Removal {
  /** Where directories that lie too deep are moved to. */
  top: OpenedDirectory;
  depth: number;
  signal: AbortSignal | undefined;
}

async function empty(directory: OpenedDirectory, removal: Removal): Promise<void> {
  const lists = removal.depth === 1 ? maxListsAtTop : maxLists;
  for (let count = 0; count < lists; count++) {
    let found = false; // removing while listing may leave entries out: it is listed until nothing is found
    for await (const entry of directory.list()) {
      removal.signal?.throwIfAborted();
      found = true;
      await removeEntry(directory, entry, removal);
    }
    if (!found) return;
  }
}

async function removeEntry(directory: OpenedDirectory, name: EntryName, removal: Removal): Promise<void> {
  if (await removeLeaf(directory, name)) return;
  if (removal.depth >= maxDepth) {
    await directory.moveTo(name, removal.top, randomUUID()).catch(unlessGone);
    return;
  }
  try {
    await using inner = await directory.enter(name);
    await empty(inner, { ...removal, depth: removal.depth + 1 });
  } catch (error) {
    if (!isGone(error) && !(error instanceof NotDirectoryError)) throw error;
    await removeLeaf(directory, name);
    return;
  }
  await removeEmptied(directory, name);
}

/** What was a directory a moment ago may be something else by now. */
async function removeEmptied(directory: OpenedDirectory, name: EntryName): Promise<void> {
  try {
    await directory.removeEmpty(name);
  } catch (error) {
    if (errnoOf(error) === 'ENOTDIR') await removeLeaf(directory, name);
    else unlessGone(error);
  }
}

/** @returns false when it is a directory. */
async function removeLeaf(directory: OpenedDirectory, name: EntryName): Promise<boolean> {
  try {
    await directory.unlink(name);
    return true;
  } catch (error) {
    if (isGone(error)) return true;
    const code = errnoOf(error);
    if (code === 'EISDIR') return false;
    if (code === 'EPERM' || code === 'EACCES' || code === 'EBUSY') return !(await isDirectory(directory, name, error));
    throw error;
  }
}

/** POSIX lets `unlink` of a directory fail with EPERM. @throws the error, where it is none. */
async function isDirectory(directory: OpenedDirectory, name: EntryName, error: unknown): Promise<true> {
  try {
    await using _found = await directory.enter(name);
    return true;
  } catch {
    throw error;
  }
}

function isGone(error: unknown): boolean {
  return errnoOf(error) === 'ENOENT';
}

function unlessGone(error: unknown): void {
  if (!isGone(error)) throw error;
}
