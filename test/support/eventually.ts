import { setTimeout as delay } from 'node:timers/promises';
import { patienceMs } from './patience.ts';

export interface EventuallyOptions {
  /** Asked between attempts; a text ends the waiting, for instance because a process died. */
  hopeless?: () => string | undefined;
  /** For a condition that by its nature takes a minute or more, in milliseconds; default `patienceMs`. */
  withinMs?: number;
}

/**
 * Repeats `check` every 50 ms until it stops throwing, and gives its result.
 *
 * @throws the last failure with a note of how long it went on.
 */
export async function eventually<T>(check: () => T | Promise<T>, options: EventuallyOptions = {}): Promise<T> {
  const { hopeless = () => undefined, withinMs = patienceMs } = options;
  const deadline = performance.now() + withinMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      const reason = hopeless() ?? (performance.now() > deadline ? `still so after ${withinMs} ms` : undefined);
      if (reason !== undefined) {
        throw new Error(`${reason}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
      }
    }
    await delay(50);
  }
}
