import { execFile } from 'node:child_process';
import { chmod, mkdir, open } from 'node:fs/promises';
import { promisify } from 'node:util';
import { CallError } from './call-error.ts';
import type { AccessType } from './hostpath-state.ts';

const run = promisify(execFile);

/** Makes an empty volume: a directory anybody may write to, or a sparse file of the volume's size. */
export async function makeContent(contentPath: string, accessType: AccessType, bytes: bigint): Promise<void> {
  if (accessType === 'block') return resizeBlockContent(contentPath, bytes);
  await mkdir(contentPath);
  await chmod(contentPath, 0o777); // whatever the umask is
}

/** Copies a volume or snapshot with owners, modes, times, links and holes. */
export async function copyContent(from: string, to: string): Promise<void> {
  await run('cp', ['--archive', '--sparse=auto', '--no-target-directory', '--', from, to]);
}

/** Makes the file of a block volume, or grows it; never shrinks it. */
export async function resizeBlockContent(contentPath: string, bytes: bigint): Promise<void> {
  await using file = await open(contentPath, 'a');
  if ((await file.stat({ bigint: true })).size >= bytes) return;
  try {
    await file.truncate(Number(bytes));
  } catch (error) {
    // EFBIG is the file system's error, the other one Node's own for numbers it cannot hold.
    if (!['EFBIG', 'ERR_OUT_OF_RANGE'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    throw new CallError('OUT_OF_RANGE', `${bytes} bytes are more than one file can hold here`, { cause: error });
  }
}
