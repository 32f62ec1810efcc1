import { readFileSync } from 'node:fs';
import os from 'node:os';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { counter, gauge, type MetricRegistry } from '../base/metrics.ts';
import { EventRecorder } from '../kube/event-recorder.ts';
import { KubeClient } from '../kube/kube-client.ts';
import { LeaderElector, type LeaderElectorMetrics, LeaseLostError } from '../kube/leader-elector.ts';
import type { Transport } from '../kube/transport.ts';
import type { LeaderElectionConfig } from './config.ts';
import { failureExit } from './exit.ts';
import { fieldManager } from './kubernetes.ts';
import type { Health } from './health.ts';
import type { Shutdown } from './shutdown.ts';

export interface ElectionOptions {
  config: LeaderElectionConfig;
  driverName: string;
  releaseOnExit: boolean;
  /** The election's own. */
  transport: Transport;
  /** Fenced off when the lease is lost. */
  guarded: Pick<Transport, 'fence'>;
  registry: MetricRegistry;
  shutdown: Shutdown;
  clock: Clock;
  logger: Logger;
  serveHealth: (check: () => string | undefined) => void;
  /** Fails while the lease may not be had. */
  ready: Health;
  /** What only the leader does. */
  work: (abort: AbortSignal) => Promise<void>;
}

const namespaceFile = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/**
 * Waits for the lease, works while it is held, and lets go of it.
 *
 * @throws {ExitError} with code 1 when the lease was lost, or could not be released at the end.
 */
export async function leadAndWork(options: ElectionOptions): Promise<void> {
  const { config, driverName, transport, guarded, registry, shutdown, clock, logger } = options;
  const client = new KubeClient({ transport, fieldManager });
  const component = `${driverName.replaceAll('/', '-')}/${os.hostname()}`;
  await using recorder = new EventRecorder({ client, component, clock, logger });
  const elector = new LeaderElector({
    transport,
    guarded,
    recorder,
    namespace: config.namespace === '' ? ownNamespace() : config.namespace,
    name: leaseName(driverName, logger),
    fieldManager,
    identity: sanitised(os.hostname()),
    labels: config.labels,
    leaseDurationMs: config.leaseDurationMs,
    renewDeadlineMs: config.renewDeadlineMs,
    retryPeriodMs: config.retryPeriodMs,
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

/** The pod's own namespace, else `default`. @param file - where a pod finds it. */
export function ownNamespace(file = namespaceFile): string {
  try {
    const text = readFileSync(file, 'utf8').trim();
    return text === '' ? 'default' : text;
  } catch {
    return 'default'; // not in a pod
  }
}

/** Every character outside letters, digits and dashes becomes a dash; a last dash gets an `X`. */
export function sanitised(text: string): string {
  return text.replaceAll(/[^a-zA-Z0-9-]/g, '-').replace(/-$/, '-X');
}

/**
 * Name of the Lease: the driver's, sanitised. Where that is no valid object name (upper case, which the API refuses) it
 * is lower-cased, with one warning.
 */
export function leaseName(driverName: string, logger: Logger): string {
  const name = sanitised(driverName);
  const valid = name.toLowerCase();
  if (valid !== name) {
    logger.warn(
      { driver: driverName, lease: valid },
      'The driver name gives no valid Lease name, a lower-case one is used',
    );
  }
  return valid;
}

/** The label is empty, as in the original: dashboards select it so. */
function electionMetrics(registry: MetricRegistry): LeaderElectorMetrics {
  const status = gauge({
    registry,
    name: 'leader_election_master_status',
    help: 'Whether this process leads (1) or stands by (0)',
    stability: 'ALPHA',
    labels: ['name'],
  });
  const slowPath = counter({
    registry,
    name: 'leader_election_slowpath_total',
    help: 'Renewals of the lease that needed more than one request',
    stability: 'ALPHA',
    labels: ['name'],
  });
  return {
    leading: (isLeader) => status.set({ name: '' }, isLeader ? 1 : 0),
    slowPath: () => slowPath.inc({ name: '' }),
  };
}
