/** Checks the export from time to time, even if nobody needs it: a problem is found before a claim or volume waits. */
import { type Clock, gauge, type Logger, type MetricRegistry } from '../../src/index.ts';

/** Pause between two checks, in milliseconds: longer while all is well. */
const pauseMs = { usable: 15_000, unusable: 5000 };

export interface ShareWatchOptions {
  check: (signal: AbortSignal) => Promise<void>;
  /** The first check waits for this. */
  synced: Promise<void>;
  /** A problem that was not there before. */
  onProblem: (problem: string) => void;
  /** It can be used again. */
  onUsable: () => void;
  registry: MetricRegistry;
  clock: Clock;
  logger: Logger;
}

export class ShareWatch {
  readonly #options: ShareWatchOptions;
  #problem: string | undefined = 'the export has not been checked yet';

  constructor(options: ShareWatchOptions) {
    this.#options = options;
    gauge({
      registry: options.registry,
      name: 'nfs_subdir_share_usable',
      help: '1 while the export is the share of the volumes and responds, otherwise 0.',
      collect: (metric) => metric.set(this.#problem === undefined ? 1 : 0),
    });
  }

  /** Why the export cannot be used; undefined while it can. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Checks until the signal aborts; never rejects. Does not keep the process alive. */
  async run(signal: AbortSignal): Promise<void> {
    const { synced, clock } = this.#options;
    await synced;
    while (!signal.aborted) {
      await this.#check(signal);
      const ms = this.#problem === undefined ? pauseMs.usable : pauseMs.unusable;
      await new Promise<void>((resolve) => clock.after(ms, resolve));
    }
  }

  async #check(signal: AbortSignal): Promise<void> {
    const { check, onProblem, onUsable, logger } = this.#options;
    const before = this.#problem;
    try {
      await check(signal);
      this.#problem = undefined;
      if (before !== undefined) {
        logger.info({}, 'The export can be used');
        onUsable();
      }
    } catch (error) {
      if (signal.aborted) return;
      const problem = error instanceof Error ? error.message : String(error);
      this.#problem = problem;
      if (problem === before) return;
      logger.error({ problem }, 'The export cannot be used');
      onProblem(problem);
    }
  }
}
