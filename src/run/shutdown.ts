import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';

/** How a process is told to end. */
export interface Shutdown extends Disposable {
  /** Take no new work; finish what is under way. */
  readonly stop: AbortSignal;
  /** Abandon what is under way, too. */
  readonly abort: AbortSignal;
  /** Ends the process at once for a reason of its own: what is under way is aborted. The first reason counts. */
  fail(error: Error): void;
  /** Ends the process for a reason of its own as a signal would: what is under way may end in time. */
  drain(error: Error): void;
  /** Why the process ends, when it was not by a signal. */
  readonly failure: Error | undefined;
}

/** What is under way gets at least this long after SIGTERM, in milliseconds: a pod is killed after 30 s by default. */
const shortestDrainMs = 25_000;

/** The part of `process` that signals come from. */
export interface SignalSource {
  on(signal: 'SIGTERM' | 'SIGINT', listener: () => void): unknown;
  off(signal: 'SIGTERM' | 'SIGINT', listener: () => void): unknown;
}

/**
 * Listens for SIGTERM and SIGINT. The first one starts the drain, a second one ends the process at once.
 *
 * @param options.callTimeoutMs - longest call to the driver: the drain is long enough for its answer. A pod that wants
 * to see it must have a termination grace period above that.
 * @param options.onSecondSignal - must not return to the work; it ends the process.
 */
export function listenForShutdown(options: {
  signals: SignalSource;
  clock: Clock;
  logger: Logger;
  callTimeoutMs: number;
  /** Absent: the first signal starts the drain. Else it ends the process, which is what this function must do. */
  dieAtOnce?: ((signal: 'SIGTERM' | 'SIGINT') => void) | undefined;
  onSecondSignal: () => void;
}): Shutdown {
  const { signals, clock, logger } = options;
  const drainMs = Math.max(shortestDrainMs, options.callTimeoutMs + 5000);
  const stop = new AbortController();
  const abort = new AbortController();
  let failure: Error | undefined;
  let signalled = false;
  const drain = (reason: Error): void => {
    stop.abort(reason);
    clock.after(drainMs, () => abort.abort(new Error('what was under way did not end in time')));
  };
  const onSignal = (signal: 'SIGTERM' | 'SIGINT'): void => {
    if (options.dieAtOnce !== undefined) {
      options.dieAtOnce(signal);
      return;
    }
    if (signalled || abort.signal.aborted) {
      options.onSecondSignal();
      return;
    }
    signalled = true;
    logger.info({}, 'Received SIGTERM or SIGINT signal, shutting down controller.');
    if (!stop.signal.aborted) drain(new Error('the process was told to end'));
  };
  const onTerm = (): void => onSignal('SIGTERM');
  const onInterrupt = (): void => onSignal('SIGINT');
  signals.on('SIGTERM', onTerm);
  signals.on('SIGINT', onInterrupt);
  return {
    stop: stop.signal,
    abort: abort.signal,
    get failure() {
      return failure;
    },
    fail: (error) => {
      failure ??= error;
      stop.abort(error);
      abort.abort(error);
    },
    drain: (error) => {
      if (stop.signal.aborted) return;
      failure = error;
      drain(error);
    },
    [Symbol.dispose]: () => {
      signals.off('SIGTERM', onTerm);
      signals.off('SIGINT', onInterrupt);
    },
  };
}
