import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import path from 'node:path';

/** `Flags` of a listening socket in /proc/net/unix (`__SO_ACCEPTCON`). Connections, accepted or waiting, have the same path. */
const listeningFlags = '00010000';

/**
 * The process that listens on a unix socket, as Linux shows it below /proc.
 *
 * @returns undefined if there is none, or it is another user's, or this is not Linux.
 */
export function listeningProcess(socketPath: string): number | undefined {
  const sockets = listeningInodes(socketPath).map((inode) => `socket:[${inode}]`);
  if (sockets.length === 0) return undefined;
  const open = processes().map((pid) => ({ pid, descriptors: new Set(descriptors(pid)) }));
  // children may have inherited the socket
  const owners = sockets.flatMap((socket) =>
    byStart(open.filter(({ descriptors }) => descriptors.has(socket)).map(({ pid }) => pid)).slice(0, 1),
  );
  // if several processes have bound the path, clients reach the last to bind it, normally the one that started last
  return byStart(owners).at(-1);
}

/** Some Go drivers bind to `//path`. */
function listeningInodes(socketPath: string): string[] {
  return read(() => readFileSync('/proc/net/unix', 'utf8').split('\n'), [])
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , flags, , , , at = '']) => flags === listeningFlags && path.normalize(at) === socketPath)
    .map(([, , , , , , inode = '']) => inode);
}

/** Those that started earlier first. */
function byStart(pids: readonly number[]): number[] {
  return pids.toSorted((a, b) => startOf(a) - startOf(b) || a - b);
}

/** In clock ticks since the system started: `starttime` of /proc/PID/stat, whose second field may contain spaces. */
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
