import { type ChildProcess, spawn } from 'node:child_process';
import { Socket } from 'node:net';

/** Reads `+ PID` and `- PID` until its pipe is closed, and then ends those that are left. */
const script = `pids=' '
while read -r change pid; do
  case $change in
    +) pids="$pids$pid " ;;
    -) pids="\${pids%% $pid *} \${pids#* $pid }" ;;
  esac
done
for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done`;

let guard: ChildProcess | undefined;

/**
 * Ends the process `pid` when this one has ended, however: SIGKILL, too, leaves nothing behind. One shell waits for all of them at a
 * pipe that only this process holds open, since to start one takes long in a process with a large heap.
 *
 * @returns to be called once `pid` has ended.
 */
export function guarded(pid: number): () => void {
  guard ??= startGuard();
  guard.stdin?.write(`+ ${pid}\n`);
  return () => guard?.stdin?.write(`- ${pid}\n`);
}

function startGuard(): ChildProcess {
  const started = spawn('/bin/sh', ['-c', script, 'die-with-parent'], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true, // a Ctrl-C at the terminal must not end it first
  });
  started.unref();
  if (started.stdin instanceof Socket) started.stdin.unref();
  return started;
}
