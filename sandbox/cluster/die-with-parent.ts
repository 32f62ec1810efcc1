import { spawn } from 'node:child_process';
import { Socket } from 'node:net';

/** What the shell does once its pipe is closed: TERM first, as the process may have children of its own; KILL for one that does not end. */
const script = 'read -r _; kill -TERM "$1" && sleep 2 && kill -KILL "$1"';

/**
 * Ends the process `pid` when this one has ended, however: SIGKILL, too, leaves nothing behind. A shell waits at a pipe
 * that only this process holds open.
 *
 * @param pid - a negative one is a process group.
 * @returns to be called once `pid` has ended.
 */
export function dieWithParent(pid: number): () => void {
  const guard = spawn('/bin/sh', ['-c', script, 'die-with-parent', String(pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true, // a Ctrl-C at the terminal must not end it first
  });
  guard.on('error', () => undefined); // without a shell there is no guard
  guard.unref();
  if (guard.stdin instanceof Socket) guard.stdin.unref();
  guard.stdin.on('error', () => undefined);
  return () => {
    guard.kill('SIGKILL');
    guard.stdin.destroy();
  };
}
