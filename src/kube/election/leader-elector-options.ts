/** What a leader election is given, and which timings can work. */
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import type { LockName } from './lease-record.ts';
import type { Recorder } from '../events/event-recorder.ts';
import type { Transport } from '../client/transport.ts';

/** The Lease, the identity to hold it with, and the timings, whose defaults are those of Kubernetes' own controllers. */
export interface LeaderElectorOptions {
  /** A transport of its own, so that a busy controller cannot delay a renewal. */
  transport: Transport;
  /**
   * The transport of the work: fenced when the lease is lost, before `lost` aborts, so that no request of the work leaves
   * the process any more. Default: none, the work has to ensure that.
   */
  guarded?: Pick<Transport, 'fence'>;
  /** Records events on the Lease about who leads. Default: no events. */
  recorder?: Recorder;
  namespace: string;
  /** Name of the Lease. */
  name: string;
  /**
   * The kind of the lock: a Lease, or an annotation of an Endpoints object, as programs use that are older than Leases. Default
   * `lease`.
   */
  lock?: LockName;
  /** The program that the server records as the author of the Lease. Default: the name of the Lease. */
  fieldManager?: string;
  /**
   * The holder identity, such as the name of the pod. Of several processes that share it one leads. The others wait until it releases the
   * lease, has been silent for its duration, or is known to have ended: where it ran on this machine, in the same network namespace.
   */
  identity: string;
  /** Machine and network namespace of this process. Default: read from `/proc`; empty where that fails: others cannot know that this process has ended. */
  place?: string;
  labels?: Readonly<Record<string, string>>;
  /** How long a lease holds without renewal. Default 15,000. */
  leaseDurationMs?: number;
  /** How long renewals may fail before the lease counts as lost. Default 10,000. */
  renewDeadlineMs?: number;
  /** Pause between renewals, and between attempts. Default 2,000. */
  retryPeriodMs?: number;
  /** Release the lease when the work has ended. Default true. */
  releaseOnExit?: boolean;
  /** Default: the machine's own time. */
  clock?: Clock;
  /** Uniform in [0, 1); default `Math.random`. */
  random?: () => number;
  /** Default: warnings and errors, to standard error. */
  logger?: Logger;
  metrics?: LeaderElectorMetrics;
  /** Called with the error of each request that failed, and with undefined once the Lease was written, or is held by another. Default: nothing. */
  onRequest?: (error: unknown) => void;
  /** Called when the lease has our identity and is of another process, which may have ended; again once that was seen to renew it. Default: nothing. */
  onNamesake?: (namesake: { isAlive: boolean }) => void;
}

/** What an election reports. */
export interface LeaderElectorMetrics {
  leading(isLeader: boolean): void;
  slowPath(): void;
}

/** Attempts are spread over retry period × (1 + this factor). */
export const jitterFactor = 1.2;

/** @throws {RangeError} naming the option, when the timings cannot work. */
export function checkElectionTimings(timings: {
  leaseDurationMs: number;
  renewDeadlineMs: number;
  retryPeriodMs: number;
}): void {
  const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = timings;
  if (retryPeriodMs <= 0) throw new RangeError('retryPeriod must be greater than zero');
  if (leaseDurationMs <= renewDeadlineMs) throw new RangeError('leaseDuration must be greater than renewDeadline');
  if (renewDeadlineMs <= jitterFactor * retryPeriodMs) {
    throw new RangeError('renewDeadline must be greater than retryPeriod*JitterFactor');
  }
  if (leaseDurationMs < 1000) throw new RangeError('leaseDuration must be at least 1s: a Lease counts whole seconds');
}
