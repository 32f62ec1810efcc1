import { randomUUID } from 'node:crypto';
import { errnoOf } from './errno.ts';
import { type EntryName, NotDirectoryError, OpenedDirectory } from './opened-directory.ts';

/** Directories that are open at once: deeper ones are moved up first, so that no depth exhausts file descriptors. */
const maxDepth = 32;
/** Number of passes over a directory in which others keep creating entries; into the top one those of too deep ones are moved. */
const maxLists = 10;
const maxListsAtTop = 1000;

/** The file system itself has failed: every further call would fail as well, each perhaps only after a timeout. */
const endingCodes = new Set(['EIO', 'ENOTCONN', 'ESTALE', 'ETIMEDOUT', 'EHOSTDOWN', 'EHOSTUNREACH', 'ENODEV']);
/** Max number of entries that are tried while none could be removed, such as where all is read-only. */
const maxVainTries = 1000;

/**
 * Removes an entry with all that is in it, while others may work in it: no symbolic link is followed, also none that takes
 * the place of a directory meanwhile. `node:fs` gives no such promise for `rm`. May be repeated; nothing there is a success.
 *
 * Where an entry cannot be removed, the rest is removed all the same, and its directory is tried, too: some entries, such as the
 * `.snapshot` of a file server, only go with their directory. One call of the file system at a time, so that a server which does not respond
 * holds up one thread of Node.js.
 *
 * @throws the first error of the file system, such as `ENOTEMPTY` where others go on making entries, with the number of entries
 * that are left; these can be removed later. The reason of `signal` when it aborts.
 */
export async function removeTree(
  parent: OpenedDirectory,
  name: EntryName,
  { signal }: { signal?: AbortSignal } = {},
): Promise<void> {
  const left = await remove(parent, name, { top: undefined, depth: 0, signal, tries: { removed: 0, vain: 0 } });
  if (left === undefined) return;
  const { first, count } = left;
  if (first instanceof Error) first.message += `; ${count === 1 ? '1 entry is' : `${count} entries are`} left`;
  throw first;
}

interface Removal {
  /** Where directories that lie too deep are moved to; undefined: there is none yet. */
  top: OpenedDirectory | undefined;
  depth: number;
  signal: AbortSignal | undefined;
  tries: { removed: number; vain: number };
}

/** What could not be removed. */
interface Left {
  first: unknown;
  count: number;
}

async function remove(directory: OpenedDirectory, name: EntryName, removal: Removal): Promise<Left | undefined> {
  const { top, depth, tries } = removal;
  try {
    if (!(await removeLeaf(directory, name))) {
      if (top === undefined || depth < maxDepth) return await removeDirectory(directory, name, removal);
      await directory.moveTo(name, top, randomUUID()).catch(unlessGone);
    }
    tries.removed++;
    return undefined;
  } catch (error) {
    unlessEnding(error, removal);
    return { first: error, count: 1 };
  }
}

async function removeDirectory(
  directory: OpenedDirectory,
  name: EntryName,
  removal: Removal,
): Promise<Left | undefined> {
  let inside: Left | undefined;
  try {
    await using inner = await directory.enter(name);
    inside = await empty(inner, { ...removal, top: removal.top ?? inner, depth: removal.depth + 1 });
  } catch (error) {
    if (isGone(error)) return undefined;
    if (error instanceof NotDirectoryError) {
      const isRemoved = await removeLeaf(directory, name); // swapped meanwhile
      return isRemoved || removal.depth > 0 ? undefined : { first: error, count: 1 };
    }
    unlessEnding(error, removal);
    inside = { first: error, count: 0 };
  }
  try {
    await removeEmptied(directory, name);
    removal.tries.removed++;
    return undefined;
  } catch (error) {
    if (inside === undefined) throw error;
    return { first: inside.first, count: inside.count + 1 };
  }
}

async function empty(directory: OpenedDirectory, removal: Removal): Promise<Left | undefined> {
  const lists = removal.depth === 1 ? maxListsAtTop : maxLists;
  const kept = new Set<string>();
  let left: Left | undefined;
  for (let count = 0; count < lists; count++) {
    let found = false; // removing while listing may leave entries out: it is listed until nothing is found
    for await (const entry of directory.list()) {
      removal.signal?.throwIfAborted();
      const key = entry.toString('latin1');
      if (kept.has(key)) continue;
      found = true;
      const more = await remove(directory, entry, removal);
      if (more === undefined) continue;
      kept.add(key);
      left = { first: left?.first ?? more.first, count: (left?.count ?? 0) + more.count };
    }
    if (!found) return left;
  }
  return left;
}

/** @throws the error where nothing more is to be tried. */
function unlessEnding(error: unknown, { signal, tries }: Removal): void {
  signal?.throwIfAborted();
  tries.vain++;
  if (endingCodes.has(errnoOf(error) ?? '') || (tries.removed === 0 && tries.vain >= maxVainTries)) throw error;
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
