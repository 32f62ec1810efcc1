import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import path from 'node:path';

/**
 * The process that listens on a unix socket, as Linux shows it below /proc.
 *
 * @returns undefined if there is none, or it is another user's, or this is not Linux.
 */
export function listeningProcess(socketPath: string): number | undefined {
  const inode = inodeOf(socketPath);
  if (inode === undefined) return undefined;
  return processes().find((pid) => descriptors(pid).includes(`socket:[${inode}]`));
}

/**
 * Of the socket that was bound to the path last: one of a process that has ended may have had it before. Some Go drivers bind to
 * `//path`.
 */
function inodeOf(socketPath: string): string | undefined {
  const lines = read(() => readFileSync('/proc/net/unix', 'utf8').split('\n'), []);
  const bound = lines
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , , , , , at = '']) => path.normalize(at) === socketPath);
  return bound.at(-1)?.[6];
}

function processes(): number[] {
  return read(() => readdirSync('/proc'), [])
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid);
}

function descriptors(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  return read(() => readdirSync(folder), []).map((name) => read(() => readlinkSync(`${folder}/${name}`), ''));
}

/** What is not permitted, or has ended meanwhile, is as good as not there. */
function read<T>(from: () => T, otherwise: T): T {
  try {
    return from();
  } catch {
    return otherwise;
  }
}
