import { setTimeout as delay } from 'node:timers/promises';

/** Between two attempts, in milliseconds. */
const pauseMs = 50;

export interface EventuallyOptions {
  /** In milliseconds. */
  withinMs: number;
  /** Asked between attempts; a text ends the waiting, for instance because a process has ended. */
  hopeless?: (() => string | undefined) | undefined;
  /** Its reason ends the waiting. */
  signal?: AbortSignal | undefined;
}

/**
 * Repeats `check` until it no longer throws, and returns its result.
 *
 * @throws the last failure, with a note of how long it went on.
 */
export async function eventually<T>(check: () => T | Promise<T>, options: EventuallyOptions): Promise<T> {
  const { withinMs, hopeless, signal } = options;
  const deadline = performance.now() + withinMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      signal?.throwIfAborted();
      const isLate = performance.now() > deadline;
      const reason = hopeless?.() ?? (isLate ? `still so after ${withinMs / 1000} s` : undefined);
      if (reason !== undefined) throw withReason(error, reason);
    }
    await delay(pauseMs, undefined, { signal }).catch(() => signal?.throwIfAborted());
  }
}

function withReason(error: unknown, reason: string): Error {
  const message = error instanceof Error ? error.message : String(error);
  return new Error(`${message} (${reason})`, { cause: error });
}
