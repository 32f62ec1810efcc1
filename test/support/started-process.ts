import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { guarded } from './guarded.ts';
import { patienceMs } from './patience.ts';

/** A child process whose standard error is kept. */
export interface StartedProcess {
  readonly pid: number;
  /** Whether it still runs. */
  running(): boolean;
  /** Everything it wrote to standard error so far. */
  log(): string;
  /** `exit code 1` or `signal SIGKILL`, once it ended. */
  ending(): Promise<string>;
  /** Sends the signal and waits for the end; does nothing to an ended process. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

export interface StartedProcessOptions {
  program: string;
  args: readonly string[];
  /** Added to this process's environment; `undefined` takes a variable out. */
  env?: Record<string, string | undefined>;
}

/** Starts a program. @throws when it cannot be started. */
export async function startProcess(options: StartedProcessOptions): Promise<StartedProcess> {
  return (await startWithOutput(options)).process;
}

/**
 * Starts a program that says on its first line of standard output, in JSON, that it is ready and where.
 *
 * @throws when it ends or does not say so in time; the message has what it wrote to standard error.
 */
export async function startAnnounced<T>(
  options: StartedProcessOptions,
): Promise<{ process: StartedProcess; announced: T }> {
  const { process: started, firstLine } = await startWithOutput(options);
  const ended = started.ending().then((how) => {
    throw new Error(`${options.args.join(' ')}: ${how} before it was ready\n${started.log()}`);
  });
  const late = AbortSignal.timeout(patienceMs);
  const tooLate = once(late, 'abort').then(() => {
    throw new Error(`${options.args.join(' ')}: not ready within ${patienceMs} ms\n${started.log()}`);
  });
  try {
    return { process: started, announced: JSON.parse(await Promise.race([firstLine, ended, tooLate])) as T };
  } catch (error) {
    await started.stop('SIGKILL');
    throw error;
  } finally {
    for (const promise of [ended, tooLate]) promise.catch(() => undefined); // the race is over
  }
}

async function startWithOutput({ program, args, env = {} }: StartedProcessOptions) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  const firstLine = new Promise<string>((resolve) => {
    createInterface({ input: child.stdout }).once('line', resolve);
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
  child.stdout.resume();
  const closed = once(child, 'close');
  await once(child, 'spawn');
  const { pid } = child;
  if (pid === undefined) throw new Error(`${program} has no process id`);
  const release = guarded(pid);
  const ending = closed.then(() => {
    release();
    return child.signalCode === null ? `exit code ${child.exitCode ?? '?'}` : `signal ${child.signalCode}`;
  });
  const running = (): boolean => child.exitCode === null && child.signalCode === null;
  const started: StartedProcess = {
    pid,
    running,
    log: () => log,
    ending: () => ending,
    async stop(signal = 'SIGTERM') {
      if (running()) child.kill(signal);
      await ending;
    },
  };
  return { process: started, firstLine };
}
