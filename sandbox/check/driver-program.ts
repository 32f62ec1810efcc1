import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, type WriteStream } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { dieWithParent } from '../cluster/die-with-parent.ts';

export interface DriverProgramOptions {
  /** For `sh -c`. */
  readonly command: string;
  /** Takes what it prints. Default: nothing does. */
  readonly logFile?: string | undefined;
  /** Added to this process's environment. */
  readonly env: Readonly<Record<string, string>>;
}

const graceMs = 5000;
const restartMs = 300;
const maxLineLength = 300;

/** A driver that is started again whenever it ends, as a kubelet does; it and its children end together. */
export class DriverProgram implements AsyncDisposable {
  readonly #command: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #log: WriteStream | undefined;
  #child: ChildProcess | undefined;
  #stopping = false;
  #lastEnd: string | undefined;
  #lastLine = '';
  readonly #running: Promise<void>;

  private constructor({ command, logFile, env }: DriverProgramOptions) {
    this.#command = command;
    this.#env = { ...process.env, ...env };
    this.#log = logFile === undefined ? undefined : createWriteStream(logFile, { flags: 'a' });
    this.#running = this.#keep();
  }

  /** Starts it; it may not be ready yet. */
  static start(options: DriverProgramOptions): DriverProgram {
    return new DriverProgram(options);
  }

  /** As a crash; resolves when it has ended. It starts again. */
  async kill(): Promise<void> {
    const ended = this.#child === undefined ? Promise.resolve() : once(this.#child, 'exit');
    this.#signal('SIGKILL');
    await ended;
  }

  /** How it ended last, and the last line that it printed. */
  lastWords(): string {
    const end = this.#lastEnd === undefined ? 'it is running' : `it ended last with ${this.#lastEnd}`;
    return this.#lastLine === '' ? end : `${end}, and printed last: ${this.#lastLine}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping = true;
    this.#signal('SIGTERM');
    const late = setTimeout(() => this.#signal('SIGKILL'), graceMs);
    await this.#running;
    clearTimeout(late);
    this.#signal('SIGKILL'); // a child that has outlived its shell
    this.#log?.end();
  }

  async #keep(): Promise<void> {
    do {
      const child = spawn('sh', ['-c', this.#command], {
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: this.#env,
      });
      this.#child = child;
      const unguard = child.pid === undefined ? () => undefined : dieWithParent(-child.pid); // its process group
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => this.#printed(text));
      const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
      unguard();
      this.#lastEnd = signal === null ? `exit code ${code ?? '?'}` : `signal ${signal}`;
      if (!this.#stopping) await delay(restartMs);
    } while (!this.#stopping);
  }

  #printed(text: Buffer): void {
    this.#log?.write(text);
    this.#lastLine = text.toString().trim().split('\n').at(-1)?.slice(0, maxLineLength) ?? '';
  }

  /** To its process group: a shell passes signals on to nobody. */
  #signal(signal: NodeJS.Signals): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // has ended
    }
  }
}
