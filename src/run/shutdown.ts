import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';

/** The two stages of a shutdown, and the ways to start them. */
export interface Shutdown extends Disposable {
  /** Take no new work; finish what is under way. */
  readonly stop: AbortSignal;
  /** Abandon what is under way, too. */
  readonly abort: AbortSignal;
  /** Shuts down at once because of a failure: what is under way is aborted. The first failure counts. */
  fail(error: Error): void;
  /** Shuts down because of a failure as a signal would: what is under way may end in time. */
  drain(error: Error): void;
  /** Why the process shuts down, unless a signal was the reason. */
  readonly failure: Error | undefined;
}

/** What is under way gets at least this long after SIGTERM, in milliseconds: a pod is killed after 30 s by default. */
const minDrainMs = 25_000;

/** The part of `process` that signals come from. */
export interface SignalSource {
  on(signal: 'SIGTERM' | 'SIGINT', listener: () => void): unknown;
  off(signal: 'SIGTERM' | 'SIGINT', listener: () => void): unknown;
}

/** What to do when a part of the program fails: log it, and shut down once the rest has finished what is under way. */
export function drainOnFailure(shutdown: Pick<Shutdown, 'drain'>, logger: Logger): (error: unknown) => void {
  return (error) => {
    logger.error({ err: error }, 'A part of the program has failed, shutting down');
    shutdown.drain(error as Error);
  };
}

/**
 * Listens for SIGTERM and SIGINT. The first one starts the drain, a second one ends the process at once.
 *
 * @param options.callTimeoutMs - max duration of a call to the driver, in milliseconds: the drain lasts 5 s longer. The
 * termination grace period of the pod must be longer still.
 * @param options.onSecondSignal - must not return to the work; it ends the process.
 */
export function listenForShutdown(options: {
  signals: SignalSource;
  clock: Clock;
  logger: Logger;
  callTimeoutMs: number;
  /** Replaces the drain: called at the first signal, must end the process. Absent: the first signal starts the drain. */
  dieAtOnce?: ((signal: 'SIGTERM' | 'SIGINT') => void) | undefined;
  onSecondSignal: () => void;
}): Shutdown {
  const { signals, clock, logger } = options;
  const drainMs = Math.max(minDrainMs, options.callTimeoutMs + 5000);
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
    if (!stop.signal.aborted) drain(new Error('a signal has started the shutdown'));
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
