import os from 'node:os';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { counter, gauge, type MetricRegistry } from '../base/metrics.ts';
import { allOf, type Permit } from '../base/permit.ts';
import { mayUse } from '../kube/client/own-account.ts';
import { ApiError, TransportError } from '../kube/client/api-error.ts';
import { KubeClient } from '../kube/client/kube-client.ts';
import type { Transport } from '../kube/client/transport.ts';
import type { LeaderElectorOptions } from '../kube/election/leader-elector-options.ts';
import { LeaderElector, LeaseLostError } from '../kube/election/leader-elector.ts';
import { leases, lockKinds, type LockName, lockVerbs } from '../kube/election/lease-record.ts';
import { EventRecorder } from '../kube/events/event-recorder.ts';
import { failureExit } from './exit.ts';
import type { Health } from './health.ts';
import { ForbiddenLock, type Namesake, namesakeText, recordNamesake } from './leader-events.ts';
import { leaseName, ownNamespace, sanitised } from './lock-name.ts';
import { onceAborted, type Shutdown } from './shutdown.ts';

/** The Lease and its timings, in milliseconds; their defaults are those of `LeaderElector`. */
export interface ElectionSettings {
  /** Of the Lease. Default, also when empty: the pod's own, else `default`. */
  readonly namespace?: string | undefined;
  /** Name of the Lease. Default: made from the name of the provisioner. */
  readonly lockName?: string | undefined;
  /**
   * Also hold the Endpoints object of the same name where that is permitted, so that no older program, which locks Endpoints,
   * leads beside this one. Without permissions on Leases only the Endpoints object is held. Default false.
   */
  readonly endpointsLock?: boolean | undefined;
  readonly labels?: Readonly<Record<string, string>>;
  readonly leaseDurationMs?: number;
  readonly renewDeadlineMs?: number;
  readonly retryPeriodMs?: number;
}

/**
 * An election that also excludes programs on the Go library from before Leases, `sig-storage-lib-external-provisioner` up to v8: on the
 * Endpoints object that they lock, if that is permitted, and on a Lease of the same name. A replacement of such a program has the
 * permissions on its lock already.
 *
 * @param namespace - of the lock. Default: the pod's own, else `default`.
 */
export function compatibleElection(provisionerName: string, namespace?: string): ElectionSettings {
  return { namespace, lockName: provisionerName.replaceAll('/', '-'), endpointsLock: true };
}

interface ElectionOptions {
  settings: ElectionSettings;
  /** The Lease is named after it: instances of one name elect one leader. */
  name: string;
  /** The holder identity; one of the processes that share it works. Default: the host's name, which in a pod is the pod's. */
  identity?: string | undefined;
  /** What events about the lock name as their source. Default: the name, with `-` for `/`, and the host's name. */
  component?: string | undefined;
  /** Release the lease at the end, so that another instance leads at once. */
  releaseOnExit: boolean;
  fieldManager: string;
  /** The election's own, so that a busy controller cannot miss a renewal. */
  transport: Transport;
  /** The transport of the work: fenced when the lease is lost, and once the work has ended. */
  guarded: Pick<Transport, 'fence'>;
  registry: MetricRegistry;
  shutdown: Shutdown;
  clock: Clock;
  logger: Logger;
  serveHealth: (check: () => string | undefined) => void;
  /** Called when this process waits for another one with its identity, which it describes. Default: nothing. */
  onNamesake?: ((whom: string) => void) | undefined;
  /** Fails while this process lacks permission to hold the lease. */
  ready: Health;
  /**
   * What only the leader does.
   *
   * @param leading - the locks that make it the leader, and the permit for what another leader may do, too.
   */
  work: (abort: AbortSignal, leading: Leading) => Promise<void>;
}

/** What makes this process the leader. */
export interface Leading {
  readonly held: readonly LockName[];
  /** Of each of the locks. */
  readonly lock: { readonly namespace: string; readonly name: string };
  readonly permit: Permit;
}

/**
 * Waits for the lease, works while it is held, and releases it.
 *
 * @throws {ExitError} with code 1 when the lease was lost, or could not be released at the end.
 * @throws {RangeError} when the timings cannot work.
 */
export async function leadAndWork(options: ElectionOptions): Promise<void> {
  const { settings, name, fieldManager, transport, shutdown, clock, logger } = options;
  const client = new KubeClient({ transport, fieldManager });
  const { component = `${name.replaceAll('/', '-')}/${os.hostname()}` } = options;
  await using recorder = new EventRecorder({ client, component, clock, logger });
  const { namespace = '', lockName = leaseName(name, logger), endpointsLock = false, ...timings } = settings;
  const lock = { namespace: namespace === '' ? ownNamespace() : namespace, name: lockName };
  const lockText = `${lock.namespace}/${lock.name}`;
  const held: readonly LockName[] = endpointsLock
    ? await permittedLocks({ client, ...lock, stop: shutdown.stop, clock, logger })
    : ['lease'];
  if (endpointsLock && !held.includes('lease')) {
    const fields = { lock: lockText, addRule: leaseRule };
    logger.warn(
      fields,
      'Not permitted to use Leases: leader election is on the Endpoints object, as before there were Leases',
    );
  }
  if (shutdown.stop.aborted) return;
  const metrics = electionMetrics(options.registry);
  const identity = sanitised(options.identity ?? os.hostname());
  const electors = held.map((kind, index) => {
    const isLast = index === held.length - 1; // whoever holds the last lock holds all
    const reported = isLast ? metrics : { ...metrics, leading: () => undefined };
    const forbidden = new ForbiddenLock({ client, recorder, lock: lockText, signal: shutdown.stop, clock });
    const onRequest = (error: unknown): void => {
      if (error !== undefined) metrics.failed(error);
      forbidden.note(error);
    };
    const onNamesake = (namesake: Namesake): void => {
      options.onNamesake?.(namesakeText(identity, namesake));
      void recordNamesake(namesake, { client, recorder, lock, identity, signal: shutdown.stop });
    };
    return makeElector(
      { ...timings, ...lock, identity, lock: kind, recorder, metrics: reported, onRequest, onNamesake },
      options,
    );
  });
  options.serveHealth(() =>
    electors.map(({ unhealthyReason }) => unhealthyReason).find((reason) => reason !== undefined),
  );
  options.ready.add(() => electors.map(({ forbidden }) => forbidden).find((reason) => reason !== undefined));
  const waiting = new AbortController();
  const observed = electors.slice(1).map((elector) => elector.observe(waiting.signal));
  try {
    await holdAll(electors, options, async () => {
      waiting.abort(new Error('all locks are held'));
      try {
        await options.work(shutdown.abort, { held, lock, permit: allOf(electors.map(({ permit }) => permit)) });
      } finally {
        endWork(options);
      }
    });
  } finally {
    waiting.abort(new Error('the election has ended'));
    await Promise.all(observed);
  }
}

/**
 * To be called before the lease is released. From now on no request of the work is sent, not even one that nothing
 * waits for: another process may lead. Only now may the election's own requests end with the shutdown: until the work
 * ended, the lease had to be renewed.
 */
function endWork({ guarded, transport, shutdown }: Pick<ElectionOptions, 'guarded' | 'transport' | 'shutdown'>): void {
  guarded.fence(new Error('the work has ended'));
  onceAborted(shutdown.end, (reason) => transport.fence(reason));
}

const leaseRule = `- apiGroups: ["${leases.group}"]\n  resources: ["${leases.plural}"]\n  verbs: ${JSON.stringify(leases.verbs)}`;

function makeElector(
  lock: Pick<
    LeaderElectorOptions,
    'namespace' | 'name' | 'identity' | 'lock' | 'recorder' | 'metrics' | 'onRequest' | 'onNamesake'
  >,
  { transport, guarded, fieldManager, releaseOnExit, clock, logger }: ElectionOptions,
): LeaderElector {
  return new LeaderElector({
    ...lock,
    transport,
    guarded,
    fieldManager,
    releaseOnExit,
    clock,
    logger,
  });
}

/** Works once all locks are held, taken one after the other in this order; losing any of them ends the work. */
async function holdAll(
  [elector, ...others]: readonly LeaderElector[],
  options: ElectionOptions,
  work: () => Promise<void>,
): Promise<void> {
  if (elector === undefined) return work();
  const { transport, shutdown, releaseOnExit } = options;
  const outcome = await elector.run({
    stop: shutdown.stop,
    work: (lost) => {
      lost.addEventListener('abort', () => {
        transport.fence(lost.reason as Error); // also for events: nothing holds up the end
        shutdown.fail(lost.reason as Error);
      });
      return holdAll(others, options, work);
    },
  });
  if (outcome === 'lost') {
    const cause = shutdown.failure ?? new LeaseLostError('the lease was lost');
    throw failureExit('Stopped leading', { err: cause }, cause);
  }
  if (outcome === 'done' && releaseOnExit && !elector.released && shutdown.failure === undefined) {
    throw failureExit('Stopped leading without releasing the lease, another leads once it has expired');
  }
}

/** Pause until a review that the API server did not respond to is repeated, in milliseconds. */
const reviewPauseMs = 2000;

/**
 * The locks that this process is permitted to hold, in the order in which all processes must take them: Endpoints first,
 * then the Lease. A process with both holds both, so that it competes with programs from before there were Leases as well
 * as with those that know nothing else. The Lease where neither is permitted: what is missing is then reported.
 *
 * @returns an empty list when `stop` aborts first.
 */
async function permittedLocks(options: {
  client: KubeClient;
  namespace: string;
  name: string;
  stop: AbortSignal;
  clock: Clock;
  logger: Logger;
}): Promise<LockName[]> {
  const { client, namespace, name, stop, clock, logger } = options;
  while (!stop.aborted) {
    try {
      const found: LockName[] = [];
      for (const lock of ['endpoints', 'lease'] as const) {
        const { resource } = lockKinds[lock];
        if (await mayUse(client, resource, { namespace, name, verbs: lockVerbs }, { signal: stop })) found.push(lock);
      }
      return found.length === 0 ? ['lease'] : found;
    } catch (error) {
      logger.warn({ err: error }, 'The permitted locks could not be determined, trying again');
      await clock.sleep(reviewPauseMs, { signal: stop }).catch(() => undefined);
    }
  }
  return [];
}

/**
 * The metrics of Kubernetes' own controllers, and the failures. The label `name` is empty, as in the Go sidecar: dashboards select
 * it that way.
 */
function electionMetrics(registry: MetricRegistry) {
  const status = gauge({
    registry,
    name: 'leader_election_master_status',
    help: 'Whether this process is the leader (1) or a standby (0)',
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
  const failures = counter({
    registry,
    name: 'leader_election_failures_total',
    help: 'Failed requests for the lease, by reason; Forbidden: a permission on leases is missing, and this process cannot become leader',
    labels: ['name', 'reason'],
  });
  failures.inc({ name: '', reason: 'Forbidden' }, 0);
  return {
    leading: (isLeader: boolean) => status.set({ name: '' }, isLeader ? 1 : 0),
    slowPath: () => slowPath.inc({ name: '' }),
    /** Counts a failed request for the lock. */
    failed: (error: unknown) => failures.inc({ name: '', reason: reasonOf(error) }),
  };
}

function reasonOf(error: unknown): string {
  if (error instanceof ApiError) return error.reason === '' ? String(error.code) : error.reason;
  return error instanceof TransportError ? error.code : 'Timeout'; // of the request, or of the time to renew
}
