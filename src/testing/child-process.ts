/** A program in a process group of its own, which does not outlive the tests. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Socket } from 'node:net';

/** Of its log; what is older is dropped. */
const keptCharacters = 200_000;

export interface StartOptions {
  /** The program and its arguments. */
  command: readonly string[];
  /** Added to the environment of this process; undefined removes a variable. */
  env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Default: the folder of this process. */
  cwd?: string | undefined;
  /** Called after each addition to the log. Default: nothing is. */
  onOutput?: ((log: string) => void) | undefined;
}

/** Made by `start`. */
export class StartedProgram {
  /** Aborts when it ends although nothing here has ended it; the reason says how. */
  readonly endedByItself: AbortSignal;
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  #log = '';
  #isToEnd = false;

  private constructor(child: ChildProcess, { onOutput }: Pick<StartOptions, 'onOutput'>) {
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#log = (this.#log + text).slice(-keptCharacters);
        onOutput?.(this.#log);
      });
    }
    child.once('exit', () => signalGroup(child.pid, 'SIGKILL')); // what it has left, which may hold its output open
    this.#ended = once(child, 'close');
    void this.#ended.then(killWithParent(child));
    const alone = new AbortController();
    this.endedByItself = alone.signal;
    void this.#ended.then(() => {
      if (!this.#isToEnd) alone.abort(new Error(`the program has ended by itself, with ${this.ending}`));
    });
  }

  /** @throws when it cannot be started. */
  static async start({ command, env = {}, cwd, onOutput }: StartOptions): Promise<StartedProgram> {
    const [program = '', ...args] = command;
    const { NODE_TEST_CONTEXT: _ours, ...inherited } = process.env; // a test runner of its own reports for itself
    const child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...inherited, ...env },
      cwd,
      detached: true, // a group of its own, so that what it has started ends with it, as in a container
    });
    await once(child, 'spawn');
    return new StartedProgram(child, { onOutput });
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** What it wrote to standard output and standard error, or the end of that. */
  get log(): string {
    return this.#log;
  }

  /** How it ended; undefined while it runs. */
  get ending(): string | undefined {
    if (this.isRunning) return undefined;
    return this.#child.signalCode === null ? `exit code ${this.#child.exitCode}` : `signal ${this.#child.signalCode}`;
  }

  /** SIGSTOP for it and for what it has started: nothing of it runs, and its connections stay. */
  freeze(): void {
    signalGroup(this.#child.pid, 'SIGSTOP');
  }

  /** It goes on. */
  thaw(): void {
    signalGroup(this.#child.pid, 'SIGCONT');
  }

  /** SIGKILL for it and for what it has started. Resolves when it has ended. */
  async kill(): Promise<void> {
    this.#isToEnd = true;
    signalGroup(this.#child.pid, 'SIGKILL');
    await this.#ended;
  }

  /** SIGTERM, and SIGKILL if it still runs after so many milliseconds. */
  async stop(patienceMs: number): Promise<void> {
    this.#isToEnd = true;
    if (this.isRunning) this.#child.kill('SIGTERM');
    const late = setTimeout(() => signalGroup(this.#child.pid, 'SIGKILL'), patienceMs);
    await this.#ended;
    clearTimeout(late);
  }
}

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // nothing of it is left
  }
}

/**
 * A shell waits at the end of a pipe that this process alone holds open, and kills the group when that closes: also after SIGKILL for
 * this process no provisioner is left behind.
 *
 * @returns to be called once the child has ended.
 */
function killWithParent({ pid }: ChildProcess): () => void {
  const script = 'read -r _; kill -9 "-$1" 2>/dev/null';
  const guard = spawn('sh', ['-c', script, 'die-with-parent', String(pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  guard.on('error', () => undefined); // no shell: then it is only killed at the end of a test
  guard.unref();
  if (guard.stdin instanceof Socket) guard.stdin.unref();
  return () => {
    guard.kill('SIGKILL');
    guard.stdin.destroy();
  };
}
