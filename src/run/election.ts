import os from 'node:os';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { MetricRegistry } from '../base/metrics.ts';
import { EventRecorder } from '../kube/event-recorder.ts';
import { KubeClient } from '../kube/kube-client.ts';
import { LeaderElector, LeaseLostError } from '../kube/leader-elector.ts';
import type { Transport } from '../kube/transport.ts';
import { electionMetrics } from './election-metrics.ts';
import { failureExit } from './exit.ts';
import type { Health } from './health.ts';
import { leaseName, sanitised } from './lease-name.ts';
import { ownNamespace } from './own-namespace.ts';
import type { Shutdown } from './shutdown.ts';

/** The Lease and its timings, in milliseconds; their defaults are those of `LeaderElector`. */
export interface ElectionSettings {
  /** Of the Lease. Default, also when empty: the pod's own, else `default`. */
  readonly namespace?: string | undefined;
  readonly labels?: Readonly<Record<string, string>>;
  readonly leaseDurationMs?: number;
  readonly renewDeadlineMs?: number;
  readonly retryPeriodMs?: number;
}

export interface ElectionOptions {
  settings: ElectionSettings;
  /** The Lease is named after it: instances of one name elect one leader. */
  name: string;
  /** The holder identity; no two processes may share it. Default: the host's name, which in a pod is the pod's. */
  identity?: string | undefined;
  /** Release the lease at the end, so that another instance leads at once. */
  releaseOnExit: boolean;
  fieldManager: string;
  /** The election's own, so that a busy controller cannot miss a renewal. */
  transport: Transport;
  /** The transport of the work: fenced when the lease is lost. */
  guarded: Pick<Transport, 'fence'>;
  registry: MetricRegistry;
  shutdown: Shutdown;
  clock: Clock;
  logger: Logger;
  serveHealth: (check: () => string | undefined) => void;
  /** Fails while this process lacks permission to hold the lease. */
  ready: Health;
  /** What only the leader does. */
  work: (abort: AbortSignal) => Promise<void>;
}

/**
 * Waits for the lease, works while it is held, and releases it.
 *
 * @throws {ExitError} with code 1 when the lease was lost, or could not be released at the end.
 * @throws {RangeError} when the timings cannot work.
 */
export async function leadAndWork(options: ElectionOptions): Promise<void> {
  const { settings, name, fieldManager, transport, guarded, registry, shutdown, clock, logger } = options;
  const client = new KubeClient({ transport, fieldManager });
  const component = `${name.replaceAll('/', '-')}/${os.hostname()}`;
  await using recorder = new EventRecorder({ client, component, clock, logger });
  const { namespace = '', ...rest } = settings;
  const elector = new LeaderElector({
    ...rest,
    transport,
    guarded,
    recorder,
    namespace: namespace === '' ? ownNamespace() : namespace,
    name: leaseName(name, logger),
    fieldManager,
    identity: sanitised(options.identity ?? os.hostname()),
    releaseOnExit: options.releaseOnExit,
    clock,
    logger,
    metrics: electionMetrics(registry),
  });
  options.serveHealth(() => elector.unhealthyReason);
  options.ready.add(() => elector.forbidden);
  const outcome = await elector.run({
    stop: shutdown.stop,
    work: (lost) => {
      lost.addEventListener('abort', () => {
        transport.fence(lost.reason as Error); // also for events: nothing holds up the end
        shutdown.fail(lost.reason as Error);
      });
      return options.work(shutdown.abort);
    },
  });
  if (outcome === 'lost') {
    const cause = shutdown.failure ?? new LeaseLostError('the lease was lost');
    throw failureExit('Stopped leading', { err: cause }, cause);
  }
  if (outcome === 'done' && options.releaseOnExit && !elector.released && shutdown.failure === undefined) {
    throw failureExit('Stopped leading without releasing the lease, another leads once it has expired');
  }
}
