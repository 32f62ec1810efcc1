import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { TaskGroup } from '../base/task-group.ts';
import { waitForSync } from '../kube/cache/wait-for-sync.ts';
import type { RunOptions } from '../provision/run-options.ts';
import type { Caches } from './cache-health.ts';
import type { RunningCaches } from './running-caches.ts';
import { drainOnFailure, type Shutdown } from './shutdown.ts';

/** One part of the work: run by the leader, or by the only instance where there is no leader election. */
export interface Feature {
  /** Must have synced before any feature runs. */
  readonly caches?: Caches | undefined;
  /** Starts together with the caches. No feature runs before it has ended; one that fails ends all. */
  prepare?(signal: AbortSignal): Promise<void>;
  /**
   * Starts together with the caches and blocks no other feature. The signal aborts after every `run` has ended: work
   * under way may still need it.
   */
  follow?(signal: AbortSignal): Promise<void>;
  /** Starts once the caches of all features have synced and all are prepared. */
  run?(until: Required<RunOptions>): Promise<void>;
}

export interface RunFeaturesOptions {
  /** Their group is aborted after the features have ended. */
  caches: RunningCaches;
  /** Its `stop` ends the features, which finish what is under way. A feature that fails before that drains the process. */
  shutdown: Pick<Shutdown, 'stop' | 'drain'>;
  /** Abandon what is under way, too. */
  abort: AbortSignal;
  clock: Clock;
  logger: Logger;
}

/**
 * Runs features until `shutdown.stop` or `abort` aborts; resolves when all have ended. If one fails, the others finish what they have
 * under way.
 *
 * @param given - undefined: a feature that is off.
 * @throws the first failure, unless a shutdown has begun: before it, or as the drain that it starts.
 */
export async function runFeatures(given: readonly (Feature | undefined)[], options: RunFeaturesOptions): Promise<void> {
  const { caches, shutdown, abort, clock, logger } = options;
  const features = given.filter((feature) => feature !== undefined);
  const background = caches.group;
  const until = { stop: shutdown.stop, abort };
  const work = new TaskGroup(until.stop, background.signal);
  work.signal.addEventListener('abort', () => {
    if (until.stop.aborted || until.abort.aborted) return;
    drainOnFailure(shutdown, logger)(work.signal.reason);
  });
  const needed: Caches = Object.fromEntries(features.flatMap(({ caches = {} }) => Object.entries(caches)));
  try {
    try {
      caches.need(needed);
      for (const feature of features) background.start(async (signal) => feature.follow?.(signal));
      const signal = AbortSignal.any([work.signal, until.abort]);
      const prepared = Promise.all(features.flatMap((feature) => feature.prepare?.(signal) ?? []));
      work.start(() => prepared);
      await waitForSync(needed, { signal, clock, logger });
      await prepared;
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
