import { joinSignals } from '../../base/abort.ts';
import type { Clock } from '../../base/clock.ts';

/**
 * Starts a try, and further ones after a pause each while none has settled the matter. Earlier ones stay under way, since
 * their response may just be late. The first that settles it ends all.
 *
 * @param options.start - one try, numbered from 0. @returns whether it settled the matter; must not throw.
 * @param options.pauseMs - how long until the next try, in milliseconds.
 * @param options.signal - ends all of them.
 * @returns whether one settled it.
 */
export async function hedgedTries(options: {
  start: (number: number, signal: AbortSignal) => Promise<boolean>;
  pauseMs: () => number;
  clock: Clock;
  signal: AbortSignal;
}): Promise<boolean> {
  const { start, pauseMs, clock } = options;
  const settled = new AbortController();
  using joined = joinSignals([options.signal, settled.signal], { clock });
  const { signal } = joined;
  const tries: Promise<void>[] = [];
  while (!signal.aborted) {
    const number = tries.length;
    tries.push(
      start(number, signal).then((isSettled) => {
        if (isSettled) settled.abort(new Error('another try has settled it'));
      }),
    );
    await clock.sleep(pauseMs(), { signal }).catch(() => undefined); // the loop ends with the signal
  }
  await Promise.all(tries);
  return settled.signal.aborted;
}
