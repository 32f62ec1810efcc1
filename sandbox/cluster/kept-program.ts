import { setTimeout as delay } from 'node:timers/promises';
import type { ChildProgram } from './child-program.ts';

/** How a program is started again and again. */
export interface KeptProgramOptions {
  /** Starts it and waits until it works; ends it when the signal aborts before that. */
  readonly start: (signal: AbortSignal) => Promise<ChildProgram>;
  /** Takes the report of every death, one text of one or more lines. */
  readonly report: (text: string) => void;
}

const minBackoffMs = 1000;
const maxBackoffMs = 30_000;
/** Who ran for so long begins with the shortest back-off again. */
const stableMs = 60_000;

/** A program that is restarted with a back-off whenever it dies, as a kubelet restarts a container. */
export class KeptProgram implements AsyncDisposable {
  readonly #options: KeptProgramOptions;
  readonly #stop = new AbortController();
  #child: ChildProgram;
  readonly #running: Promise<void>;

  private constructor(first: ChildProgram, options: KeptProgramOptions) {
    this.#child = first;
    this.#options = options;
    this.#running = this.#keep();
  }

  /** @throws when it cannot be started the first time, or when the signal aborts before it works. */
  static async start(options: KeptProgramOptions, signal: AbortSignal): Promise<KeptProgram> {
    return new KeptProgram(await options.start(signal), options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.#child[Symbol.asyncDispose]();
  }

  async #keep(): Promise<void> {
    const { signal } = this.#stop;
    const { start, report } = this.#options;
    const stopped = new Promise<undefined>((resolve) => signal.addEventListener('abort', () => resolve(undefined)));
    let backoffMs = minBackoffMs;
    for (;;) {
      const startedMs = performance.now();
      const how = await Promise.race([this.#child.death(), stopped]);
      if (how === undefined) return;
      if (performance.now() - startedMs > stableMs) backoffMs = minBackoffMs;
      report(
        `The ${this.#child.what} ended with ${how} and is started again. The end of its log:\n${this.#child.lastLines()}`,
      );
      for (let again = true; again;) {
        try {
          await delay(backoffMs, undefined, { signal });
          backoffMs = Math.min(2 * backoffMs, maxBackoffMs);
          this.#child = await start(signal);
          again = false;
          report(`The ${this.#child.what} runs again, as process ${this.#child.pid}.`);
        } catch (error) {
          if (signal.aborted) return;
          report(error instanceof Error ? error.message : String(error));
        }
      }
    }
  }
}
