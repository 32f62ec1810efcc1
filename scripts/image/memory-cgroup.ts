import { existsSync } from 'node:fs';
import { mkdir, rmdir, writeFile } from 'node:fs/promises';
import path from 'node:path';

const hierarchy = '/sys/fs/cgroup';

/** A memory cgroup; disposing removes it, for which its processes must have ended. */
export interface MemoryCgroup extends AsyncDisposable {
  /** The file that a process writes its id to, to join. */
  readonly procs: string;
}

/**
 * Makes a memory cgroup of version 1 or 2, whichever this machine has.
 *
 * @throws where this process has no permission to make one.
 */
export async function makeMemoryCgroup(name: string, limitBytes: number): Promise<MemoryCgroup> {
  const isVersion1 = existsSync(path.join(hierarchy, 'memory'));
  if (!isVersion1) await writeFile(path.join(hierarchy, 'cgroup.subtree_control'), '+memory');
  const folder = path.join(hierarchy, isVersion1 ? 'memory' : '', name);
  await mkdir(folder);
  const remove = (): Promise<void> => rmdir(folder);
  try {
    await writeFile(path.join(folder, isVersion1 ? 'memory.limit_in_bytes' : 'memory.max'), String(limitBytes));
  } catch (error) {
    await remove();
    throw error;
  }
  return { procs: path.join(folder, 'cgroup.procs'), [Symbol.asyncDispose]: remove };
}
