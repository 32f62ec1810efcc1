/**
 * The identity of a share: a UUID in a file in its root, written once by whichever provisioner finds none. It belongs to the share, so
 * all provisioners on it have the same.
 */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { link, lstat, open, unlink } from 'node:fs/promises';
import { errnoOf, type OpenedDirectory } from '../../src/index.ts';

/** Does not begin with `.nfs`: some servers and clients remove such files. */
export const identityFile = '.share-identity';
/** Everybody may read it, also with `root_squash`. */
const identityMode = 0o644;
/** More than a UUID with the line end of an editor; what is longer is no identity. */
const maxBytes = 100;

/** Whether a name in the root of the share is the identity's, or that of a file it is made from: no volume may have it. */
export function isReservedName(name: string): boolean {
  const text = name.toLowerCase(); // some shares ignore case
  return text === identityFile || text.startsWith(`${identityFile}.`);
}

/** The file is there, and is no identity. */
export class IdentityError extends Error {
  override readonly name = 'IdentityError';
}

/**
 * The identity of the share; undefined where there is none.
 *
 * @throws {IdentityError}, and the error of the file system.
 */
export async function readIdentity(root: OpenedDirectory): Promise<string | undefined> {
  let text: string;
  try {
    // not blocking: a pipe of that name would hold up a thread for ever
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    await using file = await open(root.entry(identityFile), flags);
    const { bytesRead, buffer } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0);
    text = buffer.toString('utf8', 0, bytesRead).trim();
  } catch (error) {
    const code = errnoOf(error);
    if (code === 'ENOENT') return undefined;
    if (code === 'ELOOP' || code === 'EISDIR') throw new IdentityError(`${identityFile} of the export is not a file`);
    throw error;
  }
  if (isUuid(text)) return text.toLowerCase();
  throw new IdentityError(`${identityFile} of the export contains no UUID, but ${JSON.stringify(text.slice(0, 40))}`);
}

function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}

/**
 * Gives the share an identity, unless another has done so meanwhile. Nobody ever sees half of it.
 *
 * @returns the identity that the share has now.
 * @throws as `readIdentity`.
 */
export async function writeIdentity(root: OpenedDirectory): Promise<string> {
  const identity = randomUUID();
  const unfinished = `${identityFile}.${identity}`;
  try {
    await writeFile(root, unfinished, identity);
    await link(root.entry(unfinished), root.entry(identityFile)).catch(async (error: unknown) => {
      const code = errnoOf(error);
      if (code === 'EEXIST' || code === 'ENOENT') return; // another was first, and has removed ours
      if (!hasNoLinks(code)) throw error;
      await writeFile(root, identityFile, identity).catch(unlessThere);
    });
    await removeUnfinished(root, unfinished); // ours goes last: its link tells that this was not done
  } finally {
    await unlink(root.entry(unfinished)).catch(() => undefined);
  }
  const written = await readIdentity(root);
  if (written === undefined) throw new IdentityError(`${identityFile} was removed while it was written`);
  return written;
}

/** Removes what killed processes have left: one that is still at work finds the identity instead. */
async function removeUnfinished(root: OpenedDirectory, own?: string): Promise<void> {
  for await (const name of root.list()) {
    const text = name.toString();
    if (text === identityFile || text === own || !text.startsWith(`${identityFile}.`)) continue;
    await unlink(root.entry(name)).catch(() => undefined);
  }
}

/** Removes what a process has left behind that was killed directly after it wrote the identity. */
export async function removeLeftOver(root: OpenedDirectory): Promise<void> {
  const { nlink } = await lstat(root.entry(identityFile));
  if (nlink > 1) await removeUnfinished(root);
}

async function writeFile(root: OpenedDirectory, name: string, identity: string): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  await using file = await open(root.entry(name), flags, identityMode);
  await file.chmod(identityMode); // whatever the umask
  await file.writeFile(`${identity}\n`);
  await file.sync();
}

function hasNoLinks(code: string | undefined): boolean {
  return code === 'EPERM' || code === 'ENOTSUP' || code === 'EOPNOTSUPP' || code === 'ENOSYS' || code === 'EMLINK';
}

function unlessThere(error: unknown): void {
  if (errnoOf(error) !== 'EEXIST') throw error;
}
