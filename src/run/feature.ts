import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { TaskGroup } from '../base/task-group.ts';
import { waitForSync } from '../kube/wait-for-sync.ts';
import type { RunOptions } from '../provision/provision-controller.ts';
import type { Caches } from './cache-health.ts';
import type { RunningCaches } from './running-caches.ts';
import type { Shutdown } from './shutdown.ts';

/** One part of what a leader does, or whoever works alone. */
export interface Feature {
  /** Must be filled before any feature runs. */
  readonly caches?: Caches | undefined;
  /**
   * Begins with the caches and holds up nobody. It ends when the signal aborts, after all that runs has ended: work
   * under way may still need it.
   */
  follow?(signal: AbortSignal): Promise<void>;
  /** Begins once the caches of all features are filled. */
  run?(until: Required<RunOptions>): Promise<void>;
}

/** What features run with. */
export interface RunFeaturesOptions {
  /** Ends last. What is in it already ends with the features, too. */
  background: TaskGroup;
  /** In the same group. */
  caches: RunningCaches;
  /** Its `stop` ends the features, which finish what is under way. A part that fails before that drains the process. */
  shutdown: Pick<Shutdown, 'stop' | 'drain'>;
  /** Abandon what is under way, too. */
  abort: AbortSignal;
  clock: Clock;
  logger: Logger;
}

/**
 * Runs features until they are told to end; resolves when all have ended. One that fails stops the others, which finish
 * what they have under way.
 *
 * @throws what failed first, where the drain that follows does not end the process.
 */
export async function runFeatures(features: readonly Feature[], options: RunFeaturesOptions): Promise<void> {
  const { background, caches, shutdown, abort, clock, logger } = options;
  const until = { stop: shutdown.stop, abort };
  const work = new TaskGroup(until.stop, background.signal);
  work.signal.addEventListener('abort', () => {
    if (until.stop.aborted || until.abort.aborted) return;
    const error = work.signal.reason as Error;
    logger.error({ err: error }, 'A part of the program has failed, shutting down');
    shutdown.drain(error);
  });
  const needed: Caches = Object.fromEntries(features.flatMap(({ caches = {} }) => Object.entries(caches)));
  try {
    try {
      caches.need(needed);
      for (const feature of features) background.start(async (signal) => feature.follow?.(signal));
      await waitForSync(needed, { signal: AbortSignal.any([work.signal, until.abort]), clock, logger });
      for (const feature of features) work.start(async (stop) => feature.run?.({ stop, abort: until.abort }));
      await work.ended();
    } finally {
      background.abort(new Error('the work has ended'));
      await background.ended();
    }
  } catch (error) {
    if (!until.stop.aborted && !until.abort.aborted) throw error;
  }
}
