import type { Clock, Timer } from './clock.ts';

/** A signal joined from others; disposing it removes its listeners from them. */
export interface JoinedSignal extends Disposable {
  readonly signal: AbortSignal;
}

/** The abort reason at a deadline. */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError';
}

/**
 * Joins signals and an optional deadline into one. Dispose it when the work ends: nothing then stays registered on the
 * long-lived parents.
 *
 * @param options.timeoutMs - milliseconds until it aborts with a `DeadlineError`; absent: never.
 */
export function joinSignals(
  parents: readonly (AbortSignal | undefined)[],
  options: { clock: Clock; timeoutMs?: number | undefined },
): JoinedSignal {
  const controller = new AbortController();
  const links: { parent: AbortSignal; listener: () => void }[] = [];
  for (const parent of parents) {
    if (parent === undefined) continue;
    if (parent.aborted) {
      controller.abort(parent.reason);
      break;
    }
    const listener = (): void => controller.abort(parent.reason);
    parent.addEventListener('abort', listener, { once: true });
    links.push({ parent, listener });
  }
  let timer: Timer | undefined;
  const { timeoutMs } = options;
  if (timeoutMs !== undefined && !controller.signal.aborted) {
    timer = options.clock.after(timeoutMs, () =>
      controller.abort(new DeadlineError(`no response within ${timeoutMs} ms`)),
    );
  }
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      timer?.cancel();
      for (const { parent, listener } of links) parent.removeEventListener('abort', listener);
    },
  };
}

/** Waits for a promise, but no longer than the signal allows; the work behind the promise goes on, and may fail unnoticed. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  promise.catch(() => undefined); // also where the signal has aborted before, and nobody waits
  signal.throwIfAborted();
  let listener: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    listener = () => reject(signal.reason as Error);
    signal.addEventListener('abort', listener, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    if (listener !== undefined) signal.removeEventListener('abort', listener);
  }
}
