import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { CommandChoice, Focus } from './commands.ts';

/** Which sequences are run, and with which guards. */
export type ModelCheck = { numRuns: number; seed?: number } & (
  | { focus: Focus | CommandChoice }
  | {
      /** The case of `brokenCases`. */
      without: string;
      /** Whether its guard is broken, or its commands run with all guards. */
      isBroken: boolean;
    }
);

/** What fast-check found. */
export interface ModelResult {
  failed: boolean;
  numRuns: number;
  /** What was thrown. */
  error: string;
  /** The sequence that fails; undefined unless one does. */
  report: string | undefined;
}

/**
 * Runs checks in a thread of its own: `node:test` follows each promise of the thread that it is loaded in, which takes more than
 * the checks themselves. It ends with the process.
 */
export class ModelThread {
  readonly #worker = new Worker(new URL('./model-checks.ts', import.meta.url), { execArgv: [] });
  readonly #failed: Promise<never>;

  constructor() {
    this.#failed = once(this.#worker, 'exit').then(([code]) => {
      throw new Error(`the thread of the model has ended with code ${code}`);
    });
    this.#failed.catch(() => undefined); // the check that runs then rejects
    this.#worker.unref();
  }

  /**
   * One at a time.
   *
   * @throws what nobody caught in the thread, rejections of promises included.
   */
  async run(check: ModelCheck): Promise<ModelResult> {
    const answered = once(this.#worker, 'message');
    this.#worker.ref();
    this.#worker.postMessage(check);
    const [result] = (await Promise.race([answered, this.#failed])) as [ModelResult];
    this.#worker.unref();
    return result;
  }
}
