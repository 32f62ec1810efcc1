import { setTimeout as delay } from 'node:timers/promises';

export interface EventuallyOptions {
  /** Default 60 s. */
  timeoutMs?: number;
  /** Asked between attempts; a text ends the waiting, for instance because a process died. */
  hopeless?: () => string | undefined;
}

/**
 * Repeats `check` every 50 ms until it stops throwing, and gives its result.
 *
 * @throws the last failure with a note of how long it went on.
 */
export async function eventually<T>(check: () => T | Promise<T>, options: EventuallyOptions = {}): Promise<T> {
  const { timeoutMs = 60_000, hopeless = () => undefined } = options;
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      const reason = hopeless() ?? (performance.now() > deadline ? `still so after ${timeoutMs} ms` : undefined);
      if (reason !== undefined) {
        throw new Error(`${reason}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
      }
    }
    await delay(50);
  }
}
