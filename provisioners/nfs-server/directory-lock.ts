/** Lets one process at a time use an export directory: two would overwrite each other's exports, and assign ids twice. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type FileHandle, open } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../src/index.ts';

/** Pause between two attempts, in milliseconds. */
const pauseMs = 1000;
/** Exit code of `flock` while another process holds the lock. */
const inUse = 1;

type LockResult = 'held' | 'in-use' | 'impossible';

/** Disposing it releases the lock. */
export interface ExportDirectoryLock extends AsyncDisposable {
  /** False where the directory could not be locked. */
  readonly isHeld: boolean;
}

/**
 * Locks the directory itself (flock(2)), without a lock file. The kernel releases the lock when the process that holds it ends, for
 * whatever reason. While another process holds it, waits without a timeout.
 *
 * @param options.signal - aborts the wait.
 * @returns the lock; one that is not held where the directory cannot be locked, which is logged.
 * @throws the reason of the signal; the error of the file system when the directory cannot be opened.
 */
export async function lockDirectory(
  directory: string,
  { signal, logger }: { signal: AbortSignal; logger: Logger },
): Promise<ExportDirectoryLock> {
  const handle = await open(directory, 'r');
  try {
    let waits = false;
    let result: LockResult;
    while ((result = await tryLock(handle, logger)) === 'in-use') {
      if (!waits)
        logger.warn({ directory }, 'Another nfs-provisioner has locked the export directory: waiting until it ends');
      waits = true;
      await delay(pauseMs, undefined, { signal });
    }
    if (waits) logger.info({ directory }, 'Acquired the lock on the export directory');
    return { isHeld: result === 'held', [Symbol.asyncDispose]: () => handle.close() };
  } catch (error) {
    await handle.close();
    signal.throwIfAborted();
    throw error;
  }
}

/** Node.js has no call for flock(2). The lock belongs to the open file description, which the helper shares with this process. */
async function tryLock(handle: FileHandle, logger: Logger): Promise<LockResult> {
  const helper = spawn('flock', ['-x', '-n', '3'], { stdio: ['ignore', 'ignore', 'ignore', handle.fd] });
  try {
    const [code] = (await once(helper, 'exit')) as [number | null];
    if (code === 0) return 'held';
    if (code === inUse) return 'in-use';
    throw new Error(`flock ended with code ${code}`);
  } catch (err) {
    logger.warn({ err }, 'The export directory could not be locked: make sure that no other process uses it');
    return 'impossible';
  }
}
