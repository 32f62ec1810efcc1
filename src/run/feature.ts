import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { TaskGroup } from '../base/task-group.ts';
import { waitForSync } from '../kube/cache/wait-for-sync.ts';
import type { RunOptions } from '../provision/run-workers.ts';
import { type AnyInformer, type Caches, checkCaches, type Health } from './health.ts';
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

interface RunFeaturesOptions {
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

/** Caches that run until their group is aborted; each is started once, however many features need it. */
export class RunningCaches implements Disposable {
  /** Background tasks of the features, which end after them. */
  readonly group = new TaskGroup();
  readonly #health: { ready: Health; clock: Clock };
  readonly #running = new Set<AnyInformer>();
  readonly #checks = new DisposableStack();

  /** @param options.ready - fails while a needed cache has not synced or is silent, until this is disposed. */
  constructor(options: { ready: Health; clock: Clock }) {
    this.#health = options;
  }

  /** Runs caches that readiness does not depend on. */
  start(caches: Caches): void {
    for (const informer of Object.values(caches)) {
      if (!this.#running.has(informer)) this.group.start((signal) => informer.run(signal));
      this.#running.add(informer);
    }
  }

  /** Runs caches and makes readiness depend on them. */
  need(caches: Caches): void {
    this.start(caches);
    this.#checks.use(checkCaches(this.#health, caches));
  }

  [Symbol.dispose](): void {
    this.#checks.dispose();
  }
}
