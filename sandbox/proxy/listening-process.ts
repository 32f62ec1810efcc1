import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import path from 'node:path';

/** In the column `Flags` of /proc/net/unix: the socket listens. One that was accepted, or waits for that, has the path, too. */
const listens = '00010000';

/**
 * The process that listens on a unix socket, as Linux shows it below /proc.
 *
 * @returns undefined if there is none, or it is another user's, or this is not Linux.
 */
export function listeningProcess(socketPath: string): number | undefined {
  const sockets = new Set(listeningInodes(socketPath).map((inode) => `socket:[${inode}]`));
  if (sockets.size === 0) return undefined;
  const listening = processes().filter((pid) => descriptors(pid).some((open) => sockets.has(open)));
  // Where a process took over the path while an earlier one still runs, clients reach the one that started last.
  return listening.toSorted((a, b) => startOf(b) - startOf(a))[0];
}

/** Some Go drivers bind to `//path`. */
function listeningInodes(socketPath: string): string[] {
  return read(() => readFileSync('/proc/net/unix', 'utf8').split('\n'), [])
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , flags, , , , at = '']) => flags === listens && path.normalize(at) === socketPath)
    .map(([, , , , , , inode = '']) => inode);
}

/** In clock ticks since the system started: `starttime` of /proc/PID/stat, whose second field may hold blanks. */
function startOf(pid: number): number {
  const stat = read(() => readFileSync(`/proc/${pid}/stat`, 'utf8'), '');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? 0);
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
