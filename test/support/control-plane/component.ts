import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { guarded } from '../guarded.ts';

/** A started program; its output goes to `logFile`. */
export interface Component {
  readonly name: string;
  readonly pid: number;
  readonly logFile: string;
  /** Whether the process still runs. */
  running(): boolean;
  /** Ends the process and waits for its end; safe to repeat. SIGKILL by default: nothing of it is needed again. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

export interface ComponentOptions {
  name: string;
  program: string;
  args: string[];
  /** Appended to, so that a restarted component keeps its history. */
  logFile: string;
}

/**
 * Starts a program without waiting for its readiness.
 *
 * @throws when the program cannot be started at all.
 */
export async function startComponent({ name, program, args, logFile }: ComponentOptions): Promise<Component> {
  const log = openSync(logFile, 'a');
  let child: ChildProcess;
  try {
    child = spawn(program, args, { stdio: ['ignore', log, log] });
    await once(child, 'spawn');
  } finally {
    closeSync(log);
  }
  const { pid } = child;
  if (pid === undefined) throw new Error(`${name} has no process id`);
  const ended = once(child, 'exit');
  const running = (): boolean => child.exitCode === null && child.signalCode === null;
  void ended.then(guarded(pid));
  return {
    name,
    pid,
    logFile,
    running,
    async stop(signal = 'SIGKILL') {
      if (!running()) return;
      child.kill(signal);
      await ended;
    },
  };
}

/** The end of a component's log, for messages about a failed start. */
export async function logTail({ logFile }: Component, lines = 15): Promise<string> {
  const text = await readFile(logFile, 'utf8');
  return text.trimEnd().split('\n').slice(-lines).join('\n');
}
