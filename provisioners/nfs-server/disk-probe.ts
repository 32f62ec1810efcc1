/** Probes whether the export directory is writable: a disk that hangs is reported, and is no reason to restart the server. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, constants } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { errnoOf, type Logger } from '../../src/index.ts';

/** Why the directory cannot be used. */
export interface DiskProblem {
  /** Reason of the event. */
  reason: 'ExportDirectoryHangs' | 'ExportDirectoryReadOnly';
  /** Text for event, log and `/readyz`. */
  message: string;
}

export interface DiskProbeOptions {
  directory: string;
  /** Pause between two probes, in milliseconds. */
  intervalMs: number;
  /** After this time without a response the directory counts as hung, in milliseconds. */
  patienceMs: number;
  /** Called when that changes: what is wrong, or undefined once it is writable again. */
  onChange: (problem: DiskProblem | undefined) => void;
  logger: Logger;
}

/** Written each time, as some file systems that hang can still be read. */
const fileName = '.nfs-provisioner.probe';

/**
 * Writes a file from a separate process again and again: a file system call that hangs blocks a thread for ever, but a process
 * can be killed. A write that fails is a response, too; it is a problem only if the file system is read-only. There is at most one such
 * process, even if a kill has no effect until the disk responds. Disposing it does not wait for a disk that hangs.
 */
export class DiskProbe implements AsyncDisposable {
  readonly #options: DiskProbeOptions;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #asking: Promise<boolean> | undefined;
  #helper: ChildProcess | undefined;
  #isReadOnly = false;
  #problem: DiskProblem | undefined;

  constructor(options: DiskProbeOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  /** What is wrong with the directory, for people; undefined while it is writable. */
  get problem(): string | undefined {
    return this.#problem?.message;
  }

  /** @throws while there is a problem: an operation on the directory would hang or fail, too. */
  check(): void {
    if (this.#problem !== undefined) throw new Error(this.#problem.message);
  }

  /** @throws while it does not respond; one that is read-only can be served. */
  checkResponds(): void {
    if (this.#problem?.reason === 'ExportDirectoryHangs') this.check();
  }

  /** Whether it responds within this time, in milliseconds. */
  async respondsWithin(ms: number): Promise<boolean> {
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
      const responds = await Promise.race([this.respondsWithin(patienceMs), stopped]);
      if (responds === undefined) return;
      if (!responds) this.#helper?.kill('SIGKILL'); // one that cannot be killed ends once the disk responds
      this.#set(responds ? this.#readOnly : this.#silent);
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
    if (helper.signalCode !== null) return false; // a helper that was killed has had no response
    this.#isReadOnly = helper.exitCode !== 0 && (await isReadOnly(this.#options.directory));
    return true;
  }

  get #silent(): DiskProblem {
    const { directory, patienceMs } = this.#options;
    const message = `the export directory ${directory} does not respond to a write within ${patienceMs / 1000} s`;
    return { reason: 'ExportDirectoryHangs', message };
  }

  get #readOnly(): DiskProblem | undefined {
    const message = `the export directory ${this.#options.directory} is on a read-only file system`;
    return this.#isReadOnly ? { reason: 'ExportDirectoryReadOnly', message } : undefined;
  }

  #set(problem: DiskProblem | undefined): void {
    const { directory, onChange, logger } = this.#options;
    if (problem?.reason === this.#problem?.reason) return;
    this.#problem = problem;
    if (problem === undefined) logger.info({ directory }, 'The export directory can be used again');
    else logger.error({ problem: problem.message }, 'The export directory cannot be used: check the disk behind it');
    onChange(problem);
  }
}

async function isReadOnly(directory: string): Promise<boolean> {
  try {
    await access(directory, constants.W_OK);
    return false;
  } catch (error) {
    return errnoOf(error) === 'EROFS';
  }
}
