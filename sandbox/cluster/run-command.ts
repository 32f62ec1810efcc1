import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { dieWithParent } from './die-with-parent.ts';

/** Where and for how long a command runs. */
export interface CommandOptions {
  /** For its environment. */
  readonly kubeconfig: string;
  /** Its abort reason is a signal, which the command gets; SIGKILL follows when that does not end it. */
  readonly signal: AbortSignal;
}

const graceMs = 10_000;

/** Runs the command with the cluster as its kubectl's. @returns its exit code. @throws when it cannot be started. */
export async function runCommand(command: readonly string[], { kubeconfig, signal }: CommandOptions): Promise<number> {
  const [program = '', ...args] = command;
  const child = spawn(program, args, { stdio: 'inherit', env: { ...process.env, KUBECONFIG: kubeconfig } });
  const unguard = child.pid === undefined ? () => undefined : dieWithParent(child.pid);
  let late: NodeJS.Timeout | undefined;
  signal.addEventListener('abort', () => {
    child.kill(signal.reason as NodeJS.Signals);
    late = setTimeout(() => child.kill('SIGKILL'), graceMs);
  });
  try {
    const [code, by] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    return by === null ? (code ?? 1) : 128 + constants.signals[by];
  } finally {
    clearTimeout(late);
    unguard();
  }
}
