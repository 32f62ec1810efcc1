import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { classifyFailure, forbiddenGraceMs } from './write-failure.ts';

const firstPauseMs = 50;
const maxPauseMs = 2000;
/** A failure is logged after so many others, about every half minute. */
const failuresPerLine = 15;

/**
 * Repeats reading while the API server is overloaded, away, or has just started.
 *
 * @param options.isDenied - whether a permission is missing for certain, asked when a request was forbidden.
 * @returns why it is refused; undefined when it was done.
 * @throws when the signal aborts, or no request leaves the process any more.
 */
export async function untilRead(
  read: () => Promise<void>,
  {
    isDenied,
    clock,
    logger,
    signal,
  }: { isDenied: () => Promise<boolean>; clock: Clock; logger: Logger; signal: AbortSignal },
): Promise<Error | undefined> {
  let forbiddenSinceMs: number | undefined;
  let failures = 0;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
    signal.throwIfAborted();
    try {
      await read();
      return undefined;
    } catch (error) {
      const failure = classifyFailure(error);
      if (failure === 'ended') throw error;
      forbiddenSinceMs = failure === 'forbidden' ? (forbiddenSinceMs ?? clock.monotonicMs()) : undefined;
      const isForbidden =
        failure === 'forbidden' &&
        (clock.monotonicMs() - (forbiddenSinceMs ?? Infinity) >= forbiddenGraceMs || (await isDenied()));
      if (failure === 'refused' || isForbidden) return error as Error;
      if (++failures % failuresPerLine === 0) {
        logger.error(
          { err: error },
          'The intent journal could not be read, nothing is provisioned or deleted before it is',
        );
      }
    }
    await clock.sleep(pauseMs, { signal });
  }
}
