/** The sidecar: everything is made and put together here, in the order in which it is needed, and undone in reverse. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { createRegistry, type MetricRegistry } from '../base/metrics.ts';
import { attachedVolume, attachmentsByVolume, type VolumeAttachment, volumeAttachments } from '../csi/attachments.ts';
import { csiCallMetrics } from '../csi/call-metrics.ts';
import { CsiAddressError } from '../csi/csi-address.ts';
import { CsiProvisioner } from '../csi/csi-provisioner.ts';
import { Driver } from '../csi/driver.ts';
import { provisionerIdentity } from '../csi/identity.ts';
import { healthHandler } from '../diagnostics/health-handler.ts';
import { healthPath } from '../diagnostics/paths.ts';
import { metricsHandler } from '../diagnostics/metrics-handler.ts';
import { startDiagnosticsServer } from '../diagnostics/http-server.ts';
import { addProcessMetrics } from '../diagnostics/process-metrics.ts';
import { startProfiles } from '../diagnostics/profiles.ts';
import { EventRecorder } from '../kube/event-recorder.ts';
import { Informer, Tombstone } from '../kube/informer.ts';
import { KubeClient } from '../kube/kube-client.ts';
import { BucketLimiter, ExponentialLimiter, MaxOfLimiter } from '../kube/rate-limiter.ts';
import type { Transport } from '../kube/transport.ts';
import { waitForSync } from '../kube/wait-for-sync.ts';
import { workQueueMetrics } from '../kube/work-queue-metrics.ts';
import { provisionInformers, withoutManagedFields } from '../provision/informers.ts';
import { prometheusMetrics } from '../provision/prometheus-metrics.ts';
import { ProvisionController } from '../provision/provision-controller.ts';
import type { Config } from './config.ts';
import { httpFailure } from './config-checks.ts';
import { leadAndWork } from './election.ts';
import { failureExit, fatalExit } from './exit.ts';
import { kubernetesCredentials, kubernetesTransport } from './kubernetes.ts';
import type { Shutdown } from './shutdown.ts';
import { version } from './version.ts';

export interface SidecarOptions {
  config: Config;
  environment: Record<string, string | undefined>;
  shutdown: Shutdown;
  clock: Clock;
  logger: Logger;
}

/** Name of everything we write as, where Kubernetes asks for one. */
const fieldManager = 'csi-provisioner';

/**
 * Runs until it is told to end; resolves when all work under way is done.
 *
 * @throws {ExitError} with the exit code that belongs to the failure.
 */
export async function runSidecar(options: SidecarOptions): Promise<void> {
  const { config, shutdown, clock, logger } = options;
  refuseWhatIsMissing(config);
  logger.info({ version }, 'Version');
  const kubernetes = {
    config: config.kubernetes,
    argv0: config.argv0,
    environment: options.environment,
    clock,
    logger,
  };
  const credentials = kubernetesCredentials(kubernetes);
  await using transport = kubernetesTransport({ ...kubernetes, credentials, rateLimit: config.kubernetes.rateLimit });
  const registry = createRegistry();
  addProcessMetrics(registry);
  await using driver = await connectDriver(options, registry);
  if (!driver.capabilities.controllerService || !driver.capabilities.createDeleteVolume) {
    const missing = driver.capabilities.controllerService
      ? 'controller CREATE_DELETE_VOLUME'
      : 'plugin CONTROLLER_SERVICE';
    throw failureExit(`CSI driver does not support dynamic provisioning: ${missing} capability is not reported`);
  }
  await using endpoint = await startEndpoint(options, registry);
  const work = (cut: AbortSignal): Promise<void> => provision(options, { transport, driver, registry, cut });
  if (config.leaderElection === null) {
    await work(shutdown.cut);
  } else {
    await using electionTransport = kubernetesTransport({
      ...kubernetes,
      credentials,
      rateLimit: config.kubernetes.rateLimit,
      component: 'leader-election',
    });
    await leadAndWork({
      ...options,
      config: config.leaderElection,
      driverName: driver.name,
      releaseOnExit: config.featureGates.releaseLeaderElectionOnExit,
      transport: electionTransport,
      guarded: transport,
      registry,
      serveHealth: (check) => endpoint.serveHealth(check),
      work,
    });
  }
  if (shutdown.failure !== undefined) throw failureExit(shutdown.failure.message, {}, shutdown.failure);
}

/** Flags whose work is not built yet end the start with a clear line: doing nothing in silence would be worse. */
function refuseWhatIsMissing(config: Config): void {
  const missing = {
    '--enable-capacity': config.capacity !== null,
    '--node-deployment': config.nodeDeployment !== null,
  };
  for (const [flag, asked] of Object.entries(missing)) {
    if (asked) throw failureExit(`${flag} is not supported by this version, leave it out`);
  }
}

async function connectDriver(
  { config, shutdown, clock, logger }: SidecarOptions,
  registry: MetricRegistry,
): Promise<Driver> {
  try {
    return await Driver.connect({
      address: config.csiAddress,
      timeoutMs: config.csiTimeoutMs,
      clock,
      logger,
      onCall: csiCallMetrics(registry),
      onNameChanged: (error) => shutdown.fail(error),
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

/** The HTTP endpoint, as far as the rest of the program has to do with it. */
interface Endpoint extends AsyncDisposable {
  /** Serves the leader election's health from now on, where a health path is served at all. */
  serveHealth(check: () => string | undefined): void;
}

async function startEndpoint({ config, logger }: SidecarOptions, registry: MetricRegistry): Promise<Endpoint> {
  const { http } = config;
  const opened = new AsyncDisposableStack();
  const close = (): Promise<void> => opened.disposeAsync();
  if (http === null) return { serveHealth: () => undefined, [Symbol.asyncDispose]: close };
  try {
    const server = opened.use(await startDiagnosticsServer({ address: http.address, logger }));
    server.handle(http.metricsPath, metricsHandler(registry));
    if (http.profiles) opened.use(await startProfiles()).serveOn(server);
    return {
      serveHealth: (check) => {
        if (http.health) server.handle(healthPath, healthHandler(check));
      },
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw httpFailure(http, error);
  }
}

/** The run phase: caches, the CSI provisioner on them, and the controller that drives it. */
async function provision(
  { config, shutdown, clock, logger }: SidecarOptions,
  {
    transport,
    driver,
    registry,
    cut,
  }: { transport: Transport; driver: Driver; registry: MetricRegistry; cut: AbortSignal },
): Promise<void> {
  const { provisioning } = config;
  const client = new KubeClient({ transport, fieldManager });
  const informers = provisionInformers({
    transport,
    isKnownProvisioner: (name) => name === driver.name,
    clock,
    logger,
  });
  const attachments = driver.capabilities.publishUnpublishVolume
    ? attachmentInformer(transport, clock, logger)
    : undefined;
  logger.info(
    {},
    attachments === undefined
      ? 'CSI driver does not support PUBLISH_UNPUBLISH_VOLUME, not watching VolumeAttachments'
      : 'CSI driver supports PUBLISH_UNPUBLISH_VOLUME, watching VolumeAttachments',
  );
  await using recorder = new EventRecorder({ client, component: 'external-provisioner', clock, logger });
  const provisioner = new CsiProvisioner({
    driverName: driver.name,
    identity: provisionerIdentity({ driverName: driver.name, wallMs: clock.wallMs(), random: Math.random() }),
    capabilities: () => driver.capabilities,
    controller: driver.calls,
    client,
    claims: informers.claims,
    classes: informers.classes,
    attachments,
    recorder,
    logger,
    clock,
    timeoutMs: config.csiTimeoutMs,
    volumeNamePrefix: provisioning.volumeNamePrefix,
    volumeNameUuidLength: provisioning.volumeNameUuidLength,
    defaultFsType: provisioning.defaultFsType,
    extraCreateMetadata: provisioning.extraCreateMetadata,
    controllerPublishReadOnly: provisioning.controllerPublishReadOnly,
    preventVolumeModeConversion: provisioning.preventVolumeModeConversion,
    gates: {
      crossNamespaceVolumeDataSource: config.featureGates.crossNamespaceVolumeDataSource,
      volumeAttributesClass: () => config.featureGates.volumeAttributesClass,
    },
  });
  const queueMetrics = workQueueMetrics(registry);
  const controller = new ProvisionController({
    provisionerName: driver.name,
    provisioner,
    transport,
    informers,
    workers: provisioning.workerThreads,
    limiter: new ExponentialLimiter({
      baseMs: provisioning.retryIntervalStartMs,
      maxMs: provisioning.retryIntervalMaxMs,
    }),
    failedProvisionThreshold: 0,
    failedDeleteThreshold: 0,
    save: {
      kind: 'queue',
      limiter: new MaxOfLimiter([
        new ExponentialLimiter({ baseMs: 5, maxMs: 1_000_000 }),
        new BucketLimiter({ qps: 10, burst: 100, clock }),
      ]),
    },
    addFinalizer: true,
    metrics: prometheusMetrics(registry),
    queueMetrics: (name) => queueMetrics.forQueue(name),
    clock,
    logger,
  });
  attachments?.addHandler({
    onDelete: (gone) => {
      for (const name of attachedVolume(gone instanceof Tombstone ? gone.object : gone)) controller.wakeVolume(name);
    },
  });
  const caches = new AbortController(); // they end last: work under way reads them
  const shared: Record<string, Pick<Informer<never>, 'run' | 'synced' | 'hasSynced'>> = {
    ...informers,
    ...(attachments && { attachments }),
  };
  const running = Object.values(shared).map((informer) => informer.run(caches.signal));
  try {
    await waitForSync(shared, { signal: AbortSignal.any([shutdown.stop, cut]), clock, logger });
    logger.info({ component: controller.component }, 'Starting provisioner controller');
    await controller.run({ stop: shutdown.stop, cut });
  } catch (error) {
    if (!shutdown.stop.aborted && !cut.aborted) throw error;
  } finally {
    caches.abort(new Error('the sidecar has ended'));
    await Promise.all(running);
  }
}

function attachmentInformer(transport: Transport, clock: Clock, logger: Logger): Informer<VolumeAttachment> {
  return new Informer<VolumeAttachment>({
    transport,
    resource: volumeAttachments,
    transform: withoutManagedFields<VolumeAttachment>,
    indexers: { [attachmentsByVolume]: attachedVolume },
    clock,
    logger,
  });
}
