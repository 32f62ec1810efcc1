import { randomUUID } from 'node:crypto';
import type { Stats } from 'node:fs';
import { chmod, chown, readlink, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';

const maxLinks = 40;
/** After one of these the old text must stay: it would be lost in place, and the new one not be there. */
const noRoom = ['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO'];

/**
 * Writes a file that others may read at any time: they find the old text or the new one, never a part. A link stays, its
 * target is replaced. What cannot be replaced is written in place: a pipe, a device, a file that is a mount, or one in a
 * folder that takes no other.
 *
 * @param mode - of a file that is new; another one keeps its mode and its owner.
 */
export async function replaceFile(file: string, text: string, { mode }: { mode: number }): Promise<void> {
  const target = await linkTarget(file);
  const found = await stat(target).catch((error: unknown) => (error as NodeJS.ErrnoException).code);
  const isReplaced = found === 'ENOENT' || (typeof found === 'object' && found.isFile());
  if (!isReplaced || isOfProcess(target)) {
    await writeFile(file, text); // its error is the one that helps
    return;
  }
  const draft = `${target}.${randomUUID().slice(0, 8)}.new`;
  try {
    await writeFile(draft, text, { mode, flag: 'wx' });
    if (typeof found === 'object') await resemble(draft, found);
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { force: true });
    if (noRoom.includes((error as NodeJS.ErrnoException).code ?? '')) throw error; // nor is there in place
    await writeFile(file, text, { mode });
  }
}

/** @throws where only root may. */
async function resemble(draft: string, { uid, gid, mode }: Stats): Promise<void> {
  const made = await stat(draft);
  if (made.uid !== uid || made.gid !== gid) await chown(draft, uid, gid);
  await chmod(draft, mode & 0o777);
}

/** Whether the path is an open file of this process, such as `/dev/stdout`: who reads it would not see one that replaces it. */
function isOfProcess(file: string): boolean {
  return /^\/(dev|proc)\//.test(file);
}

/** Where links lead, also when nothing is there. What `..` is below a folder that is a link only the kernel knows. */
async function linkTarget(file: string): Promise<string> {
  let target = file;
  for (let left = maxLinks; left > 0; left--) {
    const named = path.dirname(target);
    const folder = await realpath(named).catch(() => path.resolve(named));
    target = path.join(folder, path.basename(target));
    const link = isOfProcess(target) ? undefined : await readlink(target).catch(() => undefined);
    if (link === undefined) break;
    target = path.isAbsolute(link) ? link : `${folder}/${link}`;
  }
  return target;
}
