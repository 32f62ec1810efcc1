import { randomUUID } from 'node:crypto';
import { chmod, readlink, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';

const maxLinks = 40;

/**
 * Writes a file that others may read at any time: they find the old text or the new one, never a part. A link stays, its
 * target is replaced. What cannot be replaced is written in place: a pipe, a device, a file that is a mount, or one in a
 * folder that takes no other.
 *
 * @param mode - of a file that is new; another one keeps its own.
 */
export async function replaceFile(file: string, text: string, { mode }: { mode: number }): Promise<void> {
  const target = await linkTarget(file);
  const found = await stat(target).catch(() => undefined);
  if (isOfProcess(target) || found?.isFile() === false) {
    await writeFile(file, text);
    return;
  }
  const draft = `${target}.${randomUUID().slice(0, 8)}.new`;
  try {
    await writeFile(draft, text, { mode, flag: 'wx' });
    if (found !== undefined) await chmod(draft, found.mode & 0o777);
    await rename(draft, target);
  } catch {
    await rm(draft, { force: true });
    await writeFile(file, text, { mode }); // its error is the one that helps
  }
}

/** Whether the path is an open file of this process, such as `/dev/stdout`: who reads it would not see one that replaces it. */
function isOfProcess(file: string): boolean {
  return /^\/(dev|proc)\//.test(file);
}

/** Where links lead, also when nothing is there. */
async function linkTarget(file: string): Promise<string> {
  let target = path.resolve(file);
  for (let left = maxLinks; left > 0 && !isOfProcess(target); left--) {
    const link = await readlink(target).catch(() => undefined);
    if (link === undefined) break;
    target = path.resolve(path.dirname(target), link);
  }
  return target;
}
