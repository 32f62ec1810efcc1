import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { dieWithParent } from './die-with-parent.ts';

/** What is started, and where its log goes. */
export interface ChildProgramOptions {
  /** As the banner and the reports name it: `sidecar`. */
  readonly what: string;
  /** For `process.execPath`, the script first. */
  readonly args: readonly string[];
  /** What it writes to standard error is added to this file. */
  readonly logFile: string;
  /** Added to this process's environment. */
  readonly env?: Readonly<Record<string, string>>;
}

const keptLines = 15;
const graceMs = 10_000;

/** A program of the cluster as a process of its own; ended with SIGTERM, and with SIGKILL when that does not help. */
export class ChildProgram implements AsyncDisposable {
  readonly what: string;
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;
  readonly #firstLine = Promise.withResolvers<string>();
  #lastLines: string[] = [];
  #onLine: ((line: string) => void) | undefined;
  #stopping = false;

  /** Starts it. */
  constructor({ what, args, logFile, env: further }: ChildProgramOptions) {
    this.what = what;
    const env = { ...process.env, ...further };
    delete env['KUBECONFIG']; // it would win over the flag
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
    const unguard = child.pid === undefined ? () => undefined : dieWithParent(child.pid);
    this.#process = child;
    this.#ended = Promise.race([once(child, 'close'), once(child, 'error')]);
    this.#ended.catch(() => undefined).finally(unguard); // who waits for the end hears of it
    createInterface({ input: child.stdout }).once('line', (line) => this.#firstLine.resolve(line));
    child.stderr.pipe(createWriteStream(logFile, { flags: 'a' }));
    createInterface({ input: child.stderr }).on('line', (line) => {
      this.#lastLines = [...this.#lastLines, line].slice(-keptLines);
      this.#onLine?.(line);
    });
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  /** Resolves when it ended without being asked to, with how: `exit code 1` or `signal SIGKILL`. */
  async death(): Promise<string> {
    await this.#ended;
    if (this.#stopping) return new Promise(() => undefined);
    const { exitCode, signalCode } = this.#process;
    return signalCode === null ? `exit code ${exitCode ?? '?'}` : `signal ${signalCode}`;
  }

  /** The end of its log, for a report. */
  lastLines(): string {
    return this.#lastLines.map((line) => `  ${line}\n`).join('');
  }

  /** Its first line of standard output. @throws when it ends before that. */
  firstLine(): Promise<string> {
    return this.#orEnd(this.#firstLine.promise);
  }

  /** Waits for a text in the log. @throws when it ends before that. */
  logs(text: string): Promise<void> {
    return this.#orEnd(
      new Promise((resolve) => {
        this.#onLine = (line) => {
          if (line.includes(text)) resolve();
        };
        for (const line of this.#lastLines) this.#onLine(line);
      }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping = true;
    if (this.#process.exitCode === null && this.#process.signalCode === null) this.#process.kill('SIGTERM');
    const late = setTimeout(() => this.#process.kill('SIGKILL'), graceMs);
    await this.#ended;
    clearTimeout(late);
  }

  #orEnd<T>(wanted: Promise<T>): Promise<T> {
    const ended = this.death().then((how) => {
      throw new Error(`the ${this.what} ended with ${how}:\n${this.lastLines()}`);
    });
    return Promise.race([wanted, ended]);
  }
}
