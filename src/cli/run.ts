/** The sidecar: wires everything together in the order in which it is needed; disposal is in reverse. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { createRegistry, gauge, type MetricRegistry } from '../base/metrics.ts';
import { csiCallMetrics, traceCall } from '../csi/call-observers.ts';
import { CsiAddressError } from '../csi/csi-address.ts';
import { Driver } from '../csi/driver.ts';
import { missingCapability } from '../csi/driver-info.ts';
import type { CallObserver } from '../csi/unary-call.ts';
import { addBuildInfo, addProcessMetrics } from '../diagnostics/process-metrics.ts';
import { MissingPermissions } from '../kube/client/missing-permissions.ts';
import type { Transport } from '../kube/client/transport.ts';
import { leadAndWork, type Leading } from '../run/election.ts';
import { startEndpoint } from '../run/endpoint.ts';
import { failureExit, fatalExit, leaveTerminationMessage } from '../run/exit.ts';
import { Health } from '../run/health.ts';
import { onceAborted, type Shutdown } from '../run/shutdown.ts';
import { type CapacitySetup, setUpCapacity } from './capacity.ts';
import type { Config } from './config.ts';
import { connectionsFor, fieldManager, kubernetesCredentials, kubernetesTransport } from './kubernetes.ts';
import { runPhase } from './run-phase.ts';
import { controllerMetrics } from './run-phase-options.ts';
import { CauseMetrics } from './status/cause-metrics.ts';
import { SidecarStatus } from './status/sidecar-status.ts';
import { startTraces } from './traces/start-traces.ts';
import { version } from './program.ts';

/** Max size of a response where the driver is asked for its volumes: some give all of them at once, in bytes. */
const maxListBytes = 64 * 1024 * 1024;

interface SidecarOptions {
  config: Config;
  environment: Record<string, string | undefined>;
  shutdown: Shutdown;
  /** A number from 0 up to 1, exclusive: for what nodes wait at random. Default: `Math.random`. */
  random?: (() => number) | undefined;
  clock: Clock;
  logger: Logger;
}

/**
 * Runs until a signal or a failure; resolves when all work under way is done and the lease, if held, is released.
 *
 * @throws {ExitError} with the exit code that belongs to the failure.
 */
export async function runSidecar(options: SidecarOptions): Promise<void> {
  const { config, shutdown, clock, logger } = options;
  logger.info({ version }, 'Version');
  const kubernetes = {
    config: config.kubernetes,
    argv0: config.argv0,
    environment: options.environment,
    clock,
    logger,
  };
  const credentials = kubernetesCredentials(kubernetes);
  const registry = createRegistry();
  addBuildInfo(registry, version);
  addProcessMetrics(registry);
  using status = config.http?.statusPage === true ? new SidecarStatus(options) : undefined;
  const registered = controllerMetrics(registry, config, clock); // also on a standby: series at zero, as dashboards expect
  const metrics = status?.counting(registered) ?? registered;
  gauge({ registry, name: 'csi_call_timeout_seconds', help: 'Deadline of each call to the driver.' }).set(
    config.csiTimeoutMs / 1000,
  );
  const causes = config.http === null ? undefined : new CauseMetrics({ registry, clock });
  const missingPermissions = new MissingPermissions({ clock, logger, onMissing: metrics.forbidden });
  await using traces = await startTraces({ ...options, end: shutdown.end });
  const tracer = traces?.tracer;
  const connection = { ...kubernetes, credentials, missingPermissions, onRequest: status?.onRequest };
  await using transport = kubernetesTransport({
    ...connection,
    rateLimit: config.kubernetes.rateLimit,
    maxConnections: connectionsFor(config),
  });
  await using driver = await connectDriver(options, registry, [
    ...(status === undefined ? [] : [status.onCall]),
    ...(tracer === undefined ? [] : [traceCall]),
  ]);
  using _requirements = reportMissingCapability(driver, logger);
  await using capacityTransport = ownCapacityTransport(config)
    ? kubernetesTransport({ ...connection, rateLimit: config.kubernetes.capacityRateLimit })
    : undefined;
  const guarded = {
    fence: (reason: Error): void => {
      transport.fence(reason);
      capacityTransport?.fence(reason);
    },
  };
  onceAborted(shutdown.quiet, guarded.fence);
  const capacity = await findCapacity(options, { driver, transport: capacityTransport ?? transport });
  const ready = new Health();
  ready.add(() => (driver.connected ? undefined : 'the CSI driver does not respond'));
  const pages = status?.page({ driver, ready });
  await using endpoint = await startEndpoint({ http: config.http, logger, registry, ready, pages });
  const work = (abort: AbortSignal, { permit, lock }: Partial<Leading> = {}): Promise<void> => {
    status?.works();
    const phase = {
      ...options,
      transport,
      driver,
      capacity,
      metrics,
      abort,
      permit,
      lease: lock,
      ready,
      status,
      causes,
      tracer,
    };
    return runPhase(phase).finally(shutdown.workEnded);
  };
  if (config.leaderElection === null || config.nodeDeployment !== null) {
    endpoint.serveHealth(() => undefined); // nobody leads, yet a probe of that path must not end the process
    await work(shutdown.abort);
  } else {
    await using electionTransport = kubernetesTransport({
      ...connection,
      rateLimit: config.kubernetes.rateLimit,
      component: 'leader-election',
    });
    await leadAndWork({
      ...options,
      settings: config.leaderElection,
      name: driver.name,
      fieldManager,
      releaseOnExit: config.featureGates.releaseLeaderElectionOnExit,
      transport: electionTransport,
      guarded,
      registry,
      ready,
      onNamesake: (namesake) => status?.waits(namesake),
      serveHealth: (check) => endpoint.serveHealth(check),
      work,
    });
  }
  if (shutdown.failure !== undefined) throw failureExit(shutdown.failure.message, {}, shutdown.failure);
  if (shutdown.hasAbortedWork) throw failureExit('Work under way did not end in time and was aborted');
}

/** Logs once what the driver lacks, and again when it lacks something else; every claim and volume fails meanwhile. */
function reportMissingCapability(driver: Driver, logger: Logger): Disposable {
  let reported: string | undefined;
  const check = (): void => {
    const missing = missingCapability(driver.capabilities);
    if (missing !== undefined && missing !== reported) logger.error({ driver: driver.name }, missing);
    reported = missing;
  };
  check();
  return driver.onReconnected(check);
}

/** Where neither client is limited, both are one: a rate that only one of them has must not slow the other. */
function ownCapacityTransport({ capacity, kubernetes }: Config): boolean {
  return capacity !== null && (kubernetes.rateLimit !== null || kubernetes.capacityRateLimit !== null);
}

/** Where and as whose capacity is published, looked up on every replica; undefined when it is off. @throws as `setUpCapacity`. */
async function findCapacity(
  { config, shutdown, clock, logger }: SidecarOptions,
  { driver, transport }: { driver: Driver; transport: Transport },
): Promise<CapacitySetup | undefined> {
  if (config.capacity === null) return undefined;
  return await setUpCapacity({
    config: config.capacity,
    nodeDeployment: config.nodeDeployment && {
      nodeName: config.nodeDeployment.nodeName,
      nodeLabels: driver.nodeInfo?.segments ?? {},
    },
    driverName: driver.name,
    transport,
    signal: shutdown.stop,
    clock,
    logger,
  });
}

async function connectDriver(
  { config, shutdown, clock, logger }: SidecarOptions,
  registry: MetricRegistry,
  observers: readonly CallObserver[],
): Promise<Driver> {
  try {
    return await Driver.connect({
      address: config.csiAddress,
      timeoutMs: config.csiTimeoutMs,
      askNodeInfo: config.nodeDeployment !== null,
      clock,
      logger,
      onCall: csiCallMetrics(registry),
      observers,
      ...(config.auditIntervalMs !== null && { maxResponseBytes: maxListBytes }),
      ...(config.csiReconnectLimitMs !== null && { awayLimitMs: config.csiReconnectLimitMs }),
      onGone: (error) => {
        leaveTerminationMessage(error.message, { logger });
        shutdown.fail(error);
      },
      signal: shutdown.stop,
    });
  } catch (error) {
    shutdown.stop.throwIfAborted();
    const { message } = error as Error;
    if (error instanceof CsiAddressError || message.startsWith('CSI driver probe failed'))
      throw failureExit(message, {}, error);
    throw fatalExit(message, error);
  }
}
