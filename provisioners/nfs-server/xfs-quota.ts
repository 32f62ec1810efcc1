/** Commands of xfs_quota(8), none of which may block us for ever: on a file system that hangs, it hangs as well. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Clock, Logger } from '../../src/index.ts';

const exec = promisify(execFile);

/** What takes longer than this is reported, in milliseconds. */
const slowMs = 30_000;

export interface XfsQuotaOptions {
  /** When to kill it, in milliseconds. */
  maxMs: number;
  clock: Clock;
  logger: Logger;
  signal?: AbortSignal | undefined;
}

/**
 * Runs `xfs_quota`, and kills it after `maxMs` or when the signal aborts. All commands may be repeated.
 *
 * @throws {Error} with what `xfs_quota` says or why it was killed.
 */
export async function xfsQuota(args: readonly string[], options: XfsQuotaOptions): Promise<void> {
  const { maxMs, clock, logger, signal } = options;
  const command = commandText(args);
  const late = new AbortController();
  const ended = signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]);
  const slow = clock.after(slowMs, () => logger.warn({ command }, 'A command of xfs_quota takes long'));
  const timer = clock.after(maxMs, () => {
    late.abort(new Error(`it did not end within ${maxMs / 1000} s; check whether the file system hangs`));
  });
  const running = exec('xfs_quota', args, { signal: ended, killSignal: 'SIGKILL' });
  try {
    await running;
    logger.debug({ command }, 'xfs_quota has run');
  } catch (error) {
    running.child.unref(); // a process that waits for the disk cannot be killed, and would keep ours from ending
    throw new Error(`${command} failed: ${reasonOf(error, ended)}`, { cause: error });
  } finally {
    slow.cancel();
    timer.cancel();
  }
}

function reasonOf(error: unknown, ended: AbortSignal): string {
  if (ended.aborted) return ended.reason instanceof Error ? ended.reason.message : String(ended.reason);
  const { stderr = '' } = error as { stderr?: string };
  return stderr.trim() === '' ? String(error) : stderr.trim();
}

/** As in a shell. */
function commandText(args: readonly string[]): string {
  return ['xfs_quota', ...args.map((arg) => (arg.includes(' ') ? JSON.stringify(arg) : arg))].join(' ');
}
