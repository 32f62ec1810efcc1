import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';

/** The stages of a shutdown, which share one time limit, and the ways to start it. */
export interface Shutdown extends Disposable {
  /** Take no new work; finish what is under way. */
  readonly stop: AbortSignal;
  /** Abandon what is under way, too. */
  readonly abort: AbortSignal;
  /** Send nothing more for the work, not even its last events: the rest of the time is for the lease. */
  readonly quiet: AbortSignal;
  /** Wait for nothing any more. */
  readonly end: AbortSignal;
  /** Shuts down at once because of a failure: what is under way is aborted. The first failure counts. */
  fail(error: Error): void;
  /** Shuts down because of a failure as a signal would: what is under way may end in time. */
  drain(error: Error): void;
  /**
   * To be called when the work has ended, by itself or aborted. A later abort does not count as one of the work: it
   * concerns only what follows, such as the release of the lease.
   */
  readonly workEnded: () => void;
  /** Whether work was aborted. */
  readonly hasAbortedWork: boolean;
  /** Why the process shuts down, unless a signal was the reason. */
  readonly failure: Error | undefined;
}

/** When the stages of a shutdown begin, in milliseconds after its start; see the signals of `Shutdown`. */
interface ShutdownTimes {
  readonly abortMs: number;
  readonly quietMs: number;
  readonly endMs: number;
  /** The process has ended by then. */
  readonly totalMs: number;
  /** The `terminationGracePeriodSeconds` that a Pod needs for it. */
  readonly gracePeriodSeconds: number;
}

/** A shutdown may take at least this long, in milliseconds: a pod is killed after 30 s by default. */
export const minTotalMs = 25_000;
/** A shutdown may take this much longer than a call to the driver, in milliseconds. */
const besideCallMs = 5000;
/** The last part of a shutdown, for everything after the work has ended or was aborted, in milliseconds. */
const closingMs = 4000;
/** The last part of `closingMs`, for the lease alone, in milliseconds: a read and a write of a slow API server. */
const leavingMs = 2500;
/** The last part of `leavingMs`, for open connections, such as those of the HTTP endpoint, in milliseconds. */
const lastMs = 1000;
/** The margin of the grace period, in milliseconds: the kubelet starts to count before it sends the signal. */
const marginMs = 5000;

/** @param callTimeoutMs - max duration of a call to the driver, in milliseconds. */
export function shutdownTimes(callTimeoutMs: number): ShutdownTimes {
  const totalMs = Math.max(minTotalMs, callTimeoutMs + besideCallMs);
  return {
    abortMs: totalMs - closingMs,
    quietMs: totalMs - leavingMs,
    endMs: totalMs - lastMs,
    totalMs,
    gracePeriodSeconds: Math.ceil((totalMs + marginMs) / 1000),
  };
}

/** The part of `process` that signals come from. */
export interface SignalSource {
  on(signal: 'SIGTERM' | 'SIGINT', listener: () => void): unknown;
  off(signal: 'SIGTERM' | 'SIGINT', listener: () => void): unknown;
}

/** Calls `call` when the signal aborts, or immediately if it has. The listener is never removed. */
export function onceAborted(signal: AbortSignal, call: (reason: Error) => void): void {
  const listener = (): void => call(signal.reason as Error);
  if (signal.aborted) listener();
  else signal.addEventListener('abort', listener, { once: true });
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
 * @param options.callTimeoutMs - max duration of a call to the driver, in milliseconds, as for `shutdownTimes`.
 * @param options.onSecondSignal - must not return to the work; it ends the process.
 * @param options.onOverdue - called when the time of a shutdown is over and the `Shutdown` is not disposed yet.
 * Default: the process keeps waiting for what is under way.
 */
export function listenForShutdown(options: {
  signals: SignalSource;
  clock: Clock;
  logger: Logger;
  callTimeoutMs: number;
  /** Replaces the drain: called at the first signal, must end the process. Absent: the first signal starts the drain. */
  dieAtOnce?: ((signal: 'SIGTERM' | 'SIGINT') => void) | undefined;
  onSecondSignal: () => void;
  onOverdue?: () => void;
}): Shutdown {
  const { signals, clock, logger, dieAtOnce } = options;
  const times = shutdownTimes(options.callTimeoutMs);
  if (dieAtOnce === undefined) logNeeds(logger, times);
  const stages = beginStages();
  const { stop, abort } = stages;
  let failure: Error | undefined;
  let signalled = false;
  let hasAbortedWork: boolean | undefined;
  let isOver = false;
  const begin = (reason: Error): void => {
    if (stop.signal.aborted) return;
    stop.abort(reason);
    clock.after(times.abortMs, () => abort.abort(new Error('what was under way did not end in time')));
    clock.after(times.quietMs, () => stages.quiet.abort(new Error('the time to end what was under way is over')));
    clock.after(times.endMs, () => stages.end.abort(new Error('the time to shut down is over')));
    clock.after(times.totalMs, () => {
      if (isOver) return;
      logger.error({}, 'Work under way has not ended, although it was aborted');
      options.onOverdue?.();
    });
  };
  const onSignal = (signal: 'SIGTERM' | 'SIGINT'): void => {
    if (dieAtOnce !== undefined) {
      dieAtOnce(signal);
      return;
    }
    if (signalled || abort.signal.aborted) {
      options.onSecondSignal();
      return;
    }
    signalled = true;
    logger.info({}, 'Received SIGTERM or SIGINT signal, shutting down controller.');
    begin(new Error('a signal has started the shutdown'));
  };
  const onTerm = (): void => onSignal('SIGTERM');
  const onInterrupt = (): void => onSignal('SIGINT');
  signals.on('SIGTERM', onTerm);
  signals.on('SIGINT', onInterrupt);
  return {
    stop: stop.signal,
    abort: abort.signal,
    quiet: stages.quiet.signal,
    end: stages.end.signal,
    workEnded: () => {
      hasAbortedWork ??= abort.signal.aborted;
    },
    get hasAbortedWork() {
      return hasAbortedWork ?? abort.signal.aborted;
    },
    get failure() {
      return failure;
    },
    fail: (error) => {
      failure ??= error;
      begin(error);
      abort.abort(error);
    },
    drain: (error) => {
      if (stop.signal.aborted) return;
      failure = error;
      begin(error);
    },
    [Symbol.dispose]: () => {
      isOver = true;
      signals.off('SIGTERM', onTerm);
      signals.off('SIGINT', onInterrupt);
    },
  };
}

function beginStages(): Record<'stop' | 'abort' | 'quiet' | 'end', AbortController> {
  return {
    stop: new AbortController(),
    abort: new AbortController(),
    quiet: new AbortController(),
    end: new AbortController(),
  };
}

function logNeeds(logger: Logger, { totalMs, gracePeriodSeconds }: ShutdownTimes): void {
  const fields = { shutdownSeconds: totalMs / 1000, terminationGracePeriodSeconds: gracePeriodSeconds };
  logger.info(fields, 'Max duration of a shutdown, and the terminationGracePeriodSeconds that the Pod needs for it');
}
