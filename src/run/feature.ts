import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { TaskGroup } from '../base/task-group.ts';
import { waitForSync } from '../kube/wait-for-sync.ts';
import type { RunOptions } from '../provision/provision-controller.ts';
import type { Caches } from './cache-health.ts';
import type { RunningCaches } from './running-caches.ts';

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
  until: Required<RunOptions>;
  /** Called once, with what failed, when a part fails before `until` says to end: `until.stop` should abort then. */
  onFailure: (error: unknown) => void;
  clock: Clock;
  logger: Logger;
}

/**
 * Runs features until they are told to end; resolves when all have ended. One that fails stops the others, which finish
 * what they have under way.
 *
 * @throws what failed first, unless it was told to end before that, or `onFailure` did so.
 */
export async function runFeatures(features: readonly Feature[], options: RunFeaturesOptions): Promise<void> {
  const { background, caches, until, onFailure, clock, logger } = options;
  const work = new TaskGroup(until.stop, background.signal);
  work.signal.addEventListener('abort', () => {
    if (!until.stop.aborted && !until.abort.aborted) onFailure(work.signal.reason);
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
