/**
 * Probes from a separate process whether the export responds: a file system call that hangs blocks a thread until the
 * export is back, but a process can be killed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Clock } from '../../src/index.ts';
import { identityFile } from './share-identity.ts';

/** A read and a write, since either can hang alone; an error is a response, too. */
const script = `
const fs = require('node:fs');
const [folder, file] = process.argv.slice(1);
const now = new Date();
for (const ask of [() => fs.statSync(folder), () => fs.readFileSync(file), () => fs.utimesSync(file, now, now)]) {
  try { ask(); } catch {}
}
process.reallyExit(0);`;

export interface ShareProbeOptions {
  mountPoint: string;
  /** After this time without a response the helper is killed, and the export counts as silent, in milliseconds. */
  patienceMs: number;
  clock: Clock;
}

/** At most one helper at a time, even if a kill has no effect until the export responds. */
export class ShareProbe {
  readonly #options: ShareProbeOptions;
  #helper: ChildProcess | undefined;

  constructor(options: ShareProbeOptions) {
    this.#options = options;
  }

  /** Whether the export responds in time. A helper that cannot be started says nothing against it. */
  async responds(): Promise<boolean> {
    if (this.#helper !== undefined) return false; // killed, and still waiting
    const { mountPoint, patienceMs, clock } = this.#options;
    const args = ['--no-warnings', '-e', script, mountPoint, `${mountPoint}/${identityFile}`];
    const helper = spawn(process.execPath, args, { stdio: 'ignore', env: {} });
    helper.unref();
    this.#helper = helper;
    return await new Promise<boolean>((resolve) => {
      const timer = clock.after(patienceMs, () => {
        helper.kill('SIGKILL');
        resolve(false);
      });
      const ended = (): void => {
        timer.cancel();
        this.#helper = undefined;
        resolve(true);
      };
      helper.once('exit', ended);
      helper.once('error', ended);
    });
  }
}
