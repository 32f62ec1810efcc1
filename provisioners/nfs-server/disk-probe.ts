/** Probes whether the export directory answers: a disk that hangs is reported, and is no reason to restart the server. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../src/index.ts';

export interface DiskProbeOptions {
  directory: string;
  /** Pause between two probes, in milliseconds. */
  intervalMs: number;
  /** After this time without an answer the directory counts as hung, in milliseconds. */
  patienceMs: number;
  /** Called when that changes: what is wrong, or undefined once it answers again. */
  onChange: (problem: string | undefined) => void;
  logger: Logger;
}

/** Written each time, as some file systems that hang can still be read. */
const fileName = '.nfs-provisioner.probe';

/**
 * Writes a file from a separate process again and again: a file system call that hangs blocks a thread for ever, but a process
 * can be killed. Any failure but silence is an answer. There is at most one such process, even if a kill has no
 * effect until the disk answers. Disposing it does not wait for a disk that hangs.
 */
export class DiskProbe implements AsyncDisposable {
  readonly #options: DiskProbeOptions;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #asking: Promise<boolean> | undefined;
  #helper: ChildProcess | undefined;
  #problem: string | undefined;

  constructor(options: DiskProbeOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  /** What is wrong with the directory, for people; undefined while it answers. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** @throws while the directory does not answer: an operation on it would hang, too. */
  check(): void {
    if (this.#problem !== undefined) throw new Error(this.#problem);
  }

  /** Whether it answers within this time, in milliseconds. */
  async answersWithin(ms: number): Promise<boolean> {
    const over = new AbortController();
    const late = delay(ms, false, { signal: over.signal }).catch(() => false);
    try {
      return await Promise.race([this.#ask(), late]);
    } finally {
      over.abort();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
    this.#helper?.kill('SIGKILL');
  }

  async #run(): Promise<void> {
    const { intervalMs, patienceMs } = this.#options;
    const { signal } = this.#stop;
    const stopped = once(signal, 'abort').then(() => undefined);
    while (!signal.aborted) {
      const answers = await Promise.race([this.answersWithin(patienceMs), stopped]);
      if (answers === undefined) return;
      if (!answers) this.#helper?.kill('SIGKILL'); // one that cannot be killed ends once the disk answers
      this.#set(answers);
      await delay(intervalMs, undefined, { signal }).catch(() => undefined);
    }
  }

  #ask(): Promise<boolean> {
    this.#asking ??= this.#write().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  async #write(): Promise<boolean> {
    const file = path.join(this.#options.directory, fileName);
    const args = ['if=/dev/zero', `of=${file}`, 'bs=16', 'count=1', 'conv=fsync,notrunc', 'oflag=nofollow'];
    const helper = spawn('dd', args, { stdio: 'ignore' });
    helper.unref();
    this.#helper = helper;
    try {
      await once(helper, 'exit');
    } catch (err) {
      this.#options.logger.debug({ err }, 'The export directory could not be probed');
    }
    this.#helper = undefined;
    return helper.signalCode === null; // a helper that was killed has had no answer
  }

  #set(answers: boolean): void {
    const { directory, patienceMs, onChange, logger } = this.#options;
    if (answers === (this.#problem === undefined)) return;
    this.#problem = answers
      ? undefined
      : `the export directory ${directory} does not answer a write within ${patienceMs / 1000} s`;
    if (answers) logger.info({ directory }, 'The export directory answers again');
    else logger.error({ directory }, 'The export directory does not answer: check the disk behind it');
    onChange(this.#problem);
  }
}
