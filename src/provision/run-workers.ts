/** Workers that sync the keys of a queue. */
import { joinSignals } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import { nextSlice, sliceSpent } from '../base/event-loop.ts';
import type { Logger } from '../base/logger.ts';
import { TaskGroup } from '../base/task-group.ts';
import type { WorkQueue } from '../kube/queue/work-queue.ts';

/** What a sync of a key has ended with: when the next one is due, unless something wakes the key before. */
export type SyncEnd =
  /** Nothing is left to do until something changes. */
  | { readonly next: 'change' }
  /** Something else has to end first, and nothing has failed: after the back-off. */
  | { readonly next: 'back-off' }
  | { readonly next: 'time'; readonly afterMs: number }
  /** It has failed: after the back-off, until it is given up. */
  | { readonly next: 'retry'; readonly error: unknown };

interface WorkersOptions {
  queue: WorkQueue;
  /** Max workers; each is started when all others are busy. */
  count: number;
  /** Works on a key. Nothing stands for `change`, and a rejection, which nobody expected, for `retry`. */
  sync: (key: string, signal: AbortSignal) => Promise<SyncEnd> | Promise<void>;
  /** Consecutive failures after which a key is left alone until something changes; 0: never. */
  failureThreshold: number;
  onGiveUp?: (key: string) => void;
  /** Time of one sync, in milliseconds; 0: no limit. */
  timeoutMs: number;
  /** Once it aborts, no more keys are taken; syncs under way go on. */
  stop: AbortSignal;
  /** Ends the syncs under way. */
  abort: AbortSignal;
  clock: Clock;
  logger: Logger;
  /** What the keys are, for the log: `claim` or `volume`. */
  what: string;
  /** The fields by which log lines name a key. Default: the key under `what`. */
  describe?: (key: string) => object;
  /** Further fields of the log line about a failed sync. Default: none. */
  describeError?: (error: unknown) => object;
  /** Min pause after a failed sync of the key, in milliseconds, where the back-off is shorter. Default: 0. */
  minPauseMs?: (key: string) => number;
}

/**
 * Works on the keys of a queue until it is stopped; resolves when the last sync has ended. What `sync` fails with is only
 * logged; any other error ends all workers and is thrown.
 */
export async function runWorkers(options: WorkersOptions): Promise<void> {
  const { queue, stop, count } = options;
  const workers = new TaskGroup(stop);
  const shutDown = (): void => queue.shutDown();
  workers.signal.addEventListener('abort', shutDown, { once: true });
  if (workers.signal.aborted) shutDown();
  let [started, idle] = [0, 0];
  const startOne = (): void => {
    started++;
    idle++;
    workers.start((signal) =>
      work({
        ...options,
        stop: signal,
        onTaken: () => {
          if (--idle === 0 && started < count) startOne();
        },
        onDone: () => idle++,
      }),
    );
  };
  startOne();
  await workers.ended();
}

async function work(options: WorkersOptions & { onTaken: () => void; onDone: () => void }): Promise<void> {
  const { queue, stop, onTaken, onDone } = options;
  for (let key = await queue.get(); key !== undefined; key = await queue.get()) {
    onTaken();
    if (sliceSpent()) await nextSlice();
    try {
      if (!stop.aborted) await syncKey(key, options);
    } finally {
      queue.done(key);
      onDone();
    }
  }
}

async function syncKey(key: string, options: WorkersOptions): Promise<void> {
  const { queue, sync, failureThreshold, onGiveUp, timeoutMs, abort, clock, logger, what } = options;
  const named = options.describe?.(key) ?? { [what]: key }; // before the sync, in which it may be deleted
  using joined = joinSignals([abort], { clock, timeoutMs: timeoutMs === 0 ? undefined : timeoutMs });
  const end = await endOf(() => sync(key, joined.signal));
  if (end.next === 'change') queue.forget(key);
  else if (end.next === 'back-off') queue.addRateLimited(key);
  else if (end.next === 'time') queue.addAfter(key, end.afterMs);
  else {
    const { error } = end;
    const failures = queue.failures(key);
    const fields = { ...named, failures, threshold: failureThreshold, ...options.describeError?.(error), err: error };
    if (failureThreshold === 0 || failures < failureThreshold) {
      queue.addRateLimited(key, options.minPauseMs?.(key));
      logger.warn(fields, `Error syncing ${what}, trying again`);
    } else {
      onGiveUp?.(key);
      logger.error(fields, `Error syncing ${what}, giving up until it changes`);
    }
  }
}

async function endOf(sync: () => ReturnType<WorkersOptions['sync']>): Promise<SyncEnd> {
  try {
    const end = await sync();
    return end ?? { next: 'change' };
  } catch (error) {
    return { next: 'retry', error };
  }
}

/** How long a run lasts. */
export interface RunOptions {
  /** Take no new work; what is under way is finished. */
  stop: AbortSignal;
  /** Take no new work, and abandon what is under way, too: such as a leader election's `lost`. Default: never. */
  abort?: AbortSignal;
}
