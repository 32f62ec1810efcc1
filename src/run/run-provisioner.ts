/** The process of a provisioner built on the library: connection, election, HTTP endpoint, graceful shutdown. */
import { randomUUID } from 'node:crypto';
import os from 'node:os';
import { type Clock, systemClock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { createRegistry } from '../base/metrics.ts';
import { warningLogger } from '../base/text-logger.ts';
import { connect } from '../kube/client/connect.ts';
import { KubeConfigError } from '../kube/credentials/kubeconfig-files.ts';
import type { Transport } from '../kube/client/transport.ts';
import { KubeClient, maxFieldManagerLength } from '../kube/client/kube-client.ts';
import { workQueueMetrics } from '../kube/queue/work-queue-metrics.ts';
import { addProcessMetrics } from '../diagnostics/process-metrics.ts';
import { provisionInformers } from '../provision/cache/informers.ts';
import { measuredClaimBudget } from '../provision/cache/cached-claim.ts';
import { prometheusMetrics } from '../provision/controller-metrics.ts';
import { ProvisionController } from '../provision/provision-controller.ts';
import { ownsSourceOf } from '../provision/volume-fields.ts';
import { StorageIndex, storageKeysOf } from '../provision/volume/storage-holders.ts';
import { checkRunOptions, type RunProvisionerOptions } from './run-provisioner-options.ts';
import { leadAndWork, type Leading } from './election.ts';
import { startEndpoint } from './endpoint.ts';
import { ExitError, exitCodes } from './exit.ts';
import { type Feature, runFeatures, RunningCaches } from './feature.ts';
import { Health } from './health.ts';
import { type ProcessParts, provisionerParts, type StartedParts } from './provisioner-parts.ts';
import { otherJournals, provisionerJournal } from './provisioner-journal.ts';
import { unreadyLeader } from './leader-events.ts';
import { textMeaning } from '../explain/causes/causes.ts';
import { EventRecorder } from '../kube/events/event-recorder.ts';
import { listenForShutdown, onceAborted, type Shutdown } from './shutdown.ts';

/**
 * Runs a provisioner until SIGTERM or SIGINT. Then it takes no new work, finishes what is under way, releases the
 * Lease and resolves. To be called once in a process, as its last statement:
 *
 *     process.exitCode = await runProvisioner({ provisionerName, provisioner });
 *
 * @returns the exit code: 0 after a signal; 1 after one logged line when it could not start, lost the Lease, or had to
 * abort what was under way. Kubernetes should restart the process then.
 * @throws {TypeError} for an option that cannot work: names the option, the value, and what it must be.
 * @throws {RangeError} for timings of a leader election that exclude each other.
 */
export async function runProvisioner(options: RunProvisionerOptions): Promise<number> {
  checkRunOptions(options);
  const { clock = systemClock, logger = warningLogger, signals = process } = options;
  using shutdown = listenForShutdown({
    signals,
    clock,
    logger,
    callTimeoutMs: (options.drainMs ?? 0) - 5000,
    onSecondSignal: () => process.exit(exitCodes.failure),
  });
  try {
    await serve({ ...options, clock, logger }, shutdown);
    if (shutdown.failure !== undefined) return exitCodes.failure; // logged where it happened
    if (!shutdown.hasAbortedWork) return exitCodes.done;
    logger.error({}, 'Work under way did not end in time and was aborted');
  } catch (error) {
    if (error instanceof ExitError) logger.error(error.fields, error.line);
    else if (error instanceof KubeConfigError) logger.error({}, `Failed to create config: ${error.withCure().message}`);
    else throw error;
  }
  return exitCodes.failure;
}

type Settled = RunProvisionerOptions & { clock: Clock; logger: Logger };

async function serve(options: Settled, shutdown: Shutdown): Promise<void> {
  const { provisionerName, leaderElection = false, http, clock, logger, registry = createRegistry() } = options;
  const environment = options.environment ?? process.env;
  const connection = { ...options.connection, environment, logger, clock };
  await using transport = connect(connection);
  onceAborted(shutdown.quiet, (reason) => transport.fence(reason));
  addProcessMetrics(registry);
  const { checks = {} } = options;
  const ready = new Health();
  const live = new Health();
  if (checks.ready !== undefined) ready.add(checks.ready);
  if (checks.live !== undefined) live.add(checks.live);
  const endpoint = await startEndpoint({
    http: http === undefined ? null : { metricsPath: '/metrics', health: true, profiles: false, ...http },
    logger,
    registry,
    ready,
  });
  await using _endpoint = endpoint;
  endpoint.serveHealth(() => live.unhealthyReason);
  const work = (abort: AbortSignal, leading?: Leading): Promise<void> => {
    const hasLease = leading === undefined || leading.held.includes('lease');
    const settled: Settled = hasLease ? options : { ...options, intentJournal: 'off' };
    return provision(settled, { transport, registry, ready, shutdown, abort, leading }).finally(shutdown.workEnded);
  };
  if (leaderElection === false) {
    await work(shutdown.abort);
    return;
  }
  await using electionTransport = connect(connection);
  const identity = `${os.hostname()}_${randomUUID()}`; // two processes of one machine elect one leader, too
  await leadAndWork({
    settings: leaderElection === true ? {} : leaderElection,
    name: provisionerName,
    identity,
    component: `${provisionerName}_${identity}`,
    fieldManager: fieldManagerOf(options),
    releaseOnExit: true,
    transport: electionTransport,
    guarded: transport,
    registry,
    shutdown,
    clock,
    logger,
    serveHealth: (check) => void live.add(check),
    ready,
    work,
  });
}

/** Run by the leader, or by the only instance where there is no leader election. */
async function provision(
  given: Settled,
  { transport, registry, ready, shutdown, abort, leading }: ProcessParts & { transport: Transport; shutdown: Shutdown },
): Promise<void> {
  const { volumeFields, intentJournal: _, provisioner: source, ...options } = given;
  const { provisionerName, additionalProvisionerNames = [], freezeCache = false, clock, logger } = options;
  const names = new Set([provisionerName, ...additionalProvisionerNames]);
  const isKnownProvisioner = (name: string): boolean => names.has(name);
  const client = new KubeClient({ transport, fieldManager: fieldManagerOf(given) });
  const started: StartedParts = { synced: Promise.withResolvers<undefined>() };
  const parts = provisionerParts({ registry, ready, abort, leading, client, clock, logger }, started);
  const provisioner = typeof source === 'function' ? await source(parts) : source;
  const storageKeys = storageKeysOf(provisioner); // it says how its storage is indexed, so the caches come after it
  const informers = provisionInformers(
    {
      transport,
      isKnownProvisioner,
      ...(volumeFields && { volumeFields }),
      storageKeys,
      ownsSource: ownsSourceOf(provisioner),
      clock,
      logger,
      freeze: freezeCache,
    },
    measuredClaimBudget(registry),
  );
  started.informers = informers;
  if (storageKeys !== undefined)
    started.storage = new StorageIndex({ volumes: informers.volumes, storageKeys, client });
  const journalParts = { provisioner, isKnownProvisioner, client };
  const controller = new ProvisionController({
    meaningOf: textMeaning,
    ...options,
    provisioner,
    transport,
    permit: leading?.permit,
    informers,
    ...provisionerJournal(given, { ...journalParts, registry }),
    metrics: prometheusMetrics(registry),
    queueMetrics: workQueueMetrics(registry).forQueue,
  });
  started.controller = controller;
  options.onController?.(controller);
  using caches = new RunningCaches({ ready, clock });
  const provisioning: Feature = {
    caches: { ...informers },
    run: (until) => {
      started.synced.resolve(undefined);
      return controller.run(until);
    },
  };
  await using recorder = new EventRecorder({ client, component: controller.component, clock, logger });
  const unready = unreadyLeader({ ready, recorder, lease: leading?.lock, clock, logger });
  const features = [provisioning, otherJournals(given, journalParts), unready];
  await runFeatures(features, { caches, shutdown, abort, clock, logger });
}

function fieldManagerOf({ fieldManager, provisionerName }: Settled): string {
  return fieldManager ?? provisionerName.slice(0, maxFieldManagerLength);
}
