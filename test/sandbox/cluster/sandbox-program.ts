import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { eventually } from '../../support/eventually.ts';
import { programFile } from '../../support/program-file.ts';

const file = programFile('csi-sandbox');

/** `csi-sandbox` as a process whose output is kept, standard error included; ended with its children. */
export class SandboxProgram implements AsyncDisposable {
  output = '';
  /** `exit code 0` or `signal SIGKILL`, once it ended. */
  ending: string | undefined;
  readonly #process: ChildProcess;
  readonly #ended: Promise<void>;

  private constructor(args: readonly string[]) {
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (this.output += text));
    }
    this.#process = child;
    this.#ended = once(child, 'close').then(() => {
      this.ending = child.signalCode === null ? `exit code ${child.exitCode ?? '?'}` : `signal ${child.signalCode}`;
    });
  }

  static start(...flags: string[]): SandboxProgram {
    return SandboxProgram.startWith([], ...flags);
  }

  /** As `start`, with flags for Node.js before the program. */
  static startWith(nodeFlags: readonly string[], ...flags: string[]): SandboxProgram {
    return new SandboxProgram([...nodeFlags, file, ...flags]);
  }

  /** Waits until the text was printed; gives everything printed so far. */
  prints(text: string): Promise<string> {
    return eventually(
      () => {
        if (!this.output.includes(text)) throw new Error(`${text} is not in:\n${this.output}`);
        return this.output;
      },
      { hopeless: () => this.ending },
    );
  }

  /** Waits for its end. */
  async end(): Promise<string | undefined> {
    await this.#ended;
    return this.ending;
  }

  async stop(signal: NodeJS.Signals): Promise<void> {
    if (this.ending === undefined) this.#process.kill(signal);
    await this.#ended;
  }

  /** Process id of the child whose command line has the text. */
  async childPid(text: string): Promise<number> {
    const parent = String(this.#process.pid);
    for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
      const [status, command] = await Promise.all(
        ['status', 'cmdline'].map((name) => readFile(`/proc/${pid}/${name}`, 'utf8').catch(() => '')),
      );
      if (status?.includes(`\nPPid:\t${parent}\n`) === true && command?.includes(text) === true) return Number(pid);
    }
    throw new Error(`no child of ${parent} has ${text} in its command line`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('SIGTERM');
  }
}
