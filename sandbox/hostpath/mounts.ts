/** Bind mounts and loop devices, through the tools that every Linux has: mount, umount, losetup. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { CallError } from './call-error.ts';

const notPermitted = /permission denied|operation not permitted|must be superuser|only root/i;

async function run(command: string, args: string[]): Promise<string> {
  try {
    return (await promisify(execFile)(command, args)).stdout.trim();
  } catch (error) {
    const { stderr = '', message } = error as { stderr?: string; message: string };
    const reason = (stderr.trim() || message).replaceAll(/\s*\n\s*/g, '; ');
    if (notPermitted.test(reason) || (error as { code?: unknown }).code === 'ENOENT') {
      const text = `this process may not mount (it needs root and CAP_SYS_ADMIN): ${reason}`;
      throw new CallError('FAILED_PRECONDITION', text, { cause: error });
    }
    throw new CallError('INTERNAL', `${command} failed: ${reason}`, { cause: error });
  }
}

/** Whether something is mounted exactly at `target`, whatever it is. */
export function isMountPoint(target: string): boolean {
  const resolved = resolve(target);
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .some((line) => line !== '' && unescape(line.split(' ')[4] ?? '') === resolved);
}

/** Whether both paths lead to the same file, directory or device. */
export function isSameFile(a: string, b: string): boolean {
  const [left, right] = [a, b].map((file) => statSync(file, { throwIfNoEntry: false }));
  if (left === undefined || right === undefined) return false;
  if (left.isBlockDevice() && right.isBlockDevice()) return left.rdev === right.rdev;
  return left.dev === right.dev && left.ino === right.ino;
}

/**
 * Mounts `from` at `to`, which exists.
 *
 * @param flags - further mount options, as in `noexec`.
 * @throws {CallError} `FAILED_PRECONDITION` where this process may not mount, `INTERNAL` for other failures; nothing
 *   stays mounted then.
 */
export async function bindMount(from: string, to: string, flags: readonly string[] = []): Promise<void> {
  await run('mount', ['--bind', from, to]);
  if (flags.length === 0) return;
  try {
    await run('mount', ['-o', ['remount', 'bind', ...flags].join(','), to]); // a first bind takes no options
  } catch (error) {
    await unmount(to);
    throw error;
  }
}

/** Unmounts everything at `target`; nothing there is a success. */
export async function unmount(target: string): Promise<void> {
  while (isMountPoint(target)) await run('umount', [target]);
}

/** The loop device that shows `file` as a block device, if there is one. */
function loopDeviceOf(file: string): string | undefined {
  return readdirSync('/sys/block')
    .filter((name) => name.startsWith('loop'))
    .find((name) => backingFile(name) === file)
    ?.replace(/^/, '/dev/');
}

/** Shows `file` as a block device. Repeatable. */
export async function attachLoopDevice(file: string): Promise<string> {
  return loopDeviceOf(file) ?? run('losetup', ['--find', '--show', file]);
}

/** Ends what `attachLoopDevice` began; no device is a success. */
export async function detachLoopDevice(file: string): Promise<void> {
  const device = loopDeviceOf(file);
  if (device !== undefined) await run('losetup', ['--detach', device]);
}

/** Tells the loop device of `file` that the file has grown. */
export async function growLoopDevice(file: string): Promise<void> {
  const device = loopDeviceOf(file);
  if (device !== undefined) await run('losetup', ['--set-capacity', device]);
}

function backingFile(loop: string): string | undefined {
  try {
    return readFileSync(`/sys/block/${loop}/loop/backing_file`, 'utf8').trimEnd();
  } catch {
    return undefined; // a free device has no backing file
  }
}

function resolve(target: string): string {
  try {
    return realpathSync(target);
  } catch {
    return path.resolve(target);
  }
}

/** mountinfo writes blanks, tabs, newlines and backslashes as three octal digits. */
function unescape(field: string): string {
  return field.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)));
}
