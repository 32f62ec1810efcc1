import { spawn } from 'node:child_process';
import { Socket } from 'node:net';

/**
 * Sees to it that the process `pid` does not outlive this one, however this one ends: a timed-out or crashed test,
 * SIGKILL included, must not leave servers behind.
 *
 * A shell waits at the end of a pipe that only this process holds open, and kills `pid` when the pipe closes.
 *
 * @returns to be called once `pid` has ended by itself.
 */
export function dieWithParent(pid: number): () => void {
  const guard = spawn('sh', ['-c', 'read -r _; kill -9 "$1" 2>/dev/null', 'die-with-parent', String(pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true, // out of reach of a Ctrl-C at the terminal, which would end it too early
  });
  guard.unref();
  if (guard.stdin instanceof Socket) guard.stdin.unref();
  return () => {
    guard.kill('SIGKILL');
    guard.stdin.destroy();
  };
}
