/** What the leader does, or whoever runs alone: the caches, the CSI provisioner on them, and the controllers. */
import { collectGarbage } from '../base/collect-garbage.ts';
import { capacityObserver } from '../capacity/capacity-observer.ts';
import { CloningProtectionController } from '../csi/sources/cloning-protection.ts';
import { CsiProvisioner } from '../csi/csi-provisioner.ts';
import { replacedPlugin } from '../csi/migration/in-tree-plugins.ts';
import { OptionalApi } from '../csi/optional-api.ts';
import { referenceGrants } from '../csi/sources/reference-grants.ts';
import { volumeSnapshots } from '../csi/sources/snapshot-objects.ts';
import { runSnapshotSweep } from '../csi/sources/snapshot-sweep.ts';
import type { NodeInformers } from '../csi/topology/topology-nodes.ts';
import { untilCapable } from '../csi/until-capable.ts';
import { volumeAttributesClasses } from '../csi/volume-attributes-class.ts';
import { volumeName } from '../csi/volume-name.ts';
import { EventRecorder } from '../kube/event-recorder.ts';
import { KubeClient } from '../kube/kube-client.ts';
import type { Resource } from '../kube/kube-object.ts';
import { BucketLimiter, ExponentialLimiter, MaxOfLimiter } from '../kube/rate-limiter.ts';
import type { Recorder } from '../kube/recorder.ts';
import { waitForSync } from '../kube/wait-for-sync.ts';
import { type ProvisionInformers, provisionInformers } from '../provision/informers.ts';
import type { PersistentVolumeClaim } from '../provision/objects.ts';
import { ProvisionController } from '../provision/provision-controller.ts';
import type { Provisioner } from '../provision/provisioner.ts';
import { AttachmentCache } from './attachment-cache.ts';
import { type CapacityWork, capacityWork } from './capacity.ts';
import type { Config } from './config.ts';
import { type AnyInformer, checkCaches } from '../run/cache-health.ts';
import { clusterNodes, grantInformer } from './caches.ts';
import { clusterTopology, nodeDeployment, nodeTopology, provisionerSettings } from './provisioner-parts.ts';
import { fieldManager } from './kubernetes.ts';
import type { RunPhaseOptions } from './run-phase-options.ts';

/** Works until it is told to stop; resolves when what was under way has ended. */
export async function runPhase(options: RunPhaseOptions): Promise<void> {
  const { config, transport, driver, metrics, shutdown, abort, clock, logger } = options;
  collectGarbage(); // what the start left behind; with full caches it would take too long
  const client = new KubeClient({ transport, fieldManager });
  const pluginName = replacedPlugin(driver.name)?.name;
  const informers = provisionInformers({
    transport,
    isKnownProvisioner: (name) => name === driver.name || name === pluginName, // asked of every volume in the cluster
    metrics: metrics.reflector,
    clock,
    logger,
  });
  const attachments = new AttachmentCache(options, (name) => controller.wakeVolume(name));
  const grants = config.featureGates.crossNamespaceVolumeDataSource ? grantInformer(options) : undefined;
  await using recorder = new EventRecorder({ client, component: 'external-provisioner', clock, logger });
  const lasting = new AbortController(); // caches and lookers: they end last, work under way reads them
  const ending = AbortSignal.any([shutdown.stop, abort]);
  const attributesClasses = await attributesClassGate(options, client, ending);
  const background: Promise<void>[] = [];
  using checks = new DisposableStack();
  const running = new Set<AnyInformer>();
  const run = (caches: Record<string, AnyInformer>): void => {
    for (const informer of Object.values(caches)) {
      if (!running.has(informer)) background.push(informer.run(lasting.signal));
      running.add(informer);
    }
  };
  const follow = (caches: Record<string, AnyInformer>): void => {
    run(caches);
    checks.use(checkCaches(options, caches));
  };
  const nodes = clusterNodes(options);
  const topology =
    nodes === undefined
      ? nodeTopology(options)
      : clusterTopology(options, { nodes, startCaches: () => follow({ ...nodes }), signal: ending });
  const settings = provisionerSettings(options, {
    client,
    informers,
    attachments,
    grants,
    recorder,
    attributesClasses,
    topology,
  });
  const node = nodeDeployment(options, settings, (uid) => controller.wakeClaim(uid));
  const capacity = makeCapacity(options, { informers, nodes });
  const provisioner = new CsiProvisioner({ ...settings, node });
  const controller = makeController(options, { provisioner, informers, capacity });
  checks.use(driver.onBack(() => controller.retryFailed()));
  const grantsApi = new OptionalApi({ client, resource: referenceGrants, clock, logger });
  // Where grants are served they must be known before the first claim: an empty cache grants nothing.
  const grantsNeeded = grants !== undefined && (await grantsApi.look(ending)) === 'present';
  const attachmentInformer = attachments.needed();
  const needed: Record<string, AnyInformer> = {
    ...informers,
    ...(attachmentInformer && { attachments: attachmentInformer }),
    ...(grantsNeeded && { grants }),
    ...(topology !== undefined && driver.capabilities.volumeAccessibilityConstraints && nodes),
  };
  follow(needed);
  checks.use(
    driver.onBack(() => {
      const late = attachments.needed();
      if (late !== undefined) follow({ attachments: late });
      attachments.release();
    }),
  );
  if (capacity !== undefined) {
    // Not needed: where they may not be read no capacity is published, and claims are served all the same.
    run({ ...nodes });
    background.push(capacity.follow(lasting.signal));
  }
  if (grants !== undefined && !grantsNeeded)
    background.push(onceServed(options, client, referenceGrants, lasting.signal, (s) => grants.run(s)));
  try {
    await waitForSync(needed, { signal: ending, clock, logger });
    background.push(sweepSnapshots(options, client, informers, lasting.signal));
    logger.info({ component: controller.component }, 'Starting provisioner controller');
    const until = { stop: shutdown.stop, abort };
    await Promise.all([
      controller.run(until),
      node?.run(until),
      protectClones(options, { client, informers, recorder, ending }),
      capacity?.controller.run(until),
    ]);
  } catch (error) {
    if (!shutdown.stop.aborted && !abort.aborted) throw error;
  } finally {
    lasting.abort(new Error('the sidecar has ended'));
    await Promise.all(background);
  }
}

/** The controller with the values of the original: no thresholds, no time-outs of its own, saving in the background. */
function makeController(
  { config, driver, transport, metrics, clock, logger }: RunPhaseOptions,
  parts: { provisioner: Provisioner; informers: ProvisionInformers; capacity: CapacityWork | undefined },
): ProvisionController {
  const { workerThreads, retryIntervalStartMs, retryIntervalMaxMs } = config.provisioning;
  const plugin = replacedPlugin(driver.name);
  return new ProvisionController({
    provisionerName: driver.name,
    additionalProvisionerNames: plugin === undefined ? [] : [plugin.name],
    provisioner: parts.provisioner,
    // What is provisioned and deleted changes the room that is left.
    observer: parts.capacity && capacityObserver({ capacity: parts.capacity.controller, logger }),
    transport,
    fieldManager,
    informers: parts.informers,
    workers: workerThreads,
    limiter: new ExponentialLimiter({ baseMs: retryIntervalStartMs, maxMs: retryIntervalMaxMs }),
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
    volumeName: (claim) => expectedName(config, claim),
    metrics: metrics.controller,
    queueMetrics: (queue) => metrics.queues[queue],
    clock,
    logger,
  });
}

/**
 * The name that a claim's volume will have, so that one that was just saved is recognised. Where no name can be made the
 * attempt itself says why, in an event.
 */
function expectedName({ provisioning }: Config, { metadata: { uid } }: PersistentVolumeClaim): string {
  try {
    return volumeName(provisioning.volumeNamePrefix, uid, provisioning.volumeNameUuidLength);
  } catch {
    return `pvc-${uid ?? ''}`;
  }
}

function makeCapacity(
  { config, driver, capacity: setup, metrics, clock, logger }: RunPhaseOptions,
  { informers, nodes }: { informers: ProvisionInformers; nodes: NodeInformers | undefined },
): CapacityWork | undefined {
  if (setup === undefined || metrics.capacity === undefined) return undefined;
  return capacityWork({
    setup,
    config,
    driver: driver.calls,
    driverConnected: () => driver.connected,
    classes: informers.classes,
    nodes,
    nodeLabels: () => driver.nodeInfo?.segments ?? {},
    onDriverBack: (listener) => driver.onBack(listener),
    families: metrics.capacity,
    reflectorMetrics: metrics.reflector,
    clock,
    logger,
  });
}

/**
 * Whether attributes classes count: as the gate says where it was named, else wherever the API is served, which is
 * looked for now and, while it is missing, once a minute.
 */
async function attributesClassGate(
  { config, clock, logger }: RunPhaseOptions,
  client: KubeClient,
  signal: AbortSignal,
): Promise<() => boolean> {
  const { volumeAttributesClass, volumeAttributesClassNamed } = config.featureGates;
  if (volumeAttributesClassNamed || !volumeAttributesClass) return () => volumeAttributesClass;
  const api = new OptionalApi({ client, resource: volumeAttributesClasses, clock, logger });
  if ((await api.look(signal)) === 'absent') {
    logger.info(
      {},
      'Disabling VolumeAttributesClass feature gate because the VolumeAttributesClass v1 API is not available',
    );
    void api.waitUntilPresent(signal).catch(() => undefined); // it only rejects when we end
  }
  return () => api.presence !== 'absent';
}

/** Sources of clones are let go of when they are deleted and no clone waits for them any more. */
async function protectClones(
  { config, driver, metrics, shutdown, abort, clock, logger }: RunPhaseOptions,
  parts: { client: KubeClient; informers: ProvisionInformers; recorder: Recorder; ending: AbortSignal },
): Promise<void> {
  try {
    await untilCapable(driver, ({ cloneVolume }) => cloneVolume, parts.ending);
  } catch {
    return; // we end
  }
  const { cloningProtectionThreads, retryIntervalStartMs, retryIntervalMaxMs } = config.provisioning;
  const controller = new CloningProtectionController({
    client: parts.client,
    recorder: parts.recorder,
    claims: parts.informers.claims,
    workers: cloningProtectionThreads,
    retryStartMs: retryIntervalStartMs,
    retryMaxMs: retryIntervalMaxMs,
    queueMetrics: metrics.queues.claims,
    clock,
    logger,
  });
  await controller.run({ stop: shutdown.stop, abort });
}

/** Snapshots that no claim waits for any more lose the finalizer that a restore put on them. */
async function sweepSnapshots(
  options: RunPhaseOptions,
  client: KubeClient,
  { claims }: ProvisionInformers,
  signal: AbortSignal,
): Promise<void> {
  const { config, driver, transport, metrics, clock, logger } = options;
  const intervalMs = config.provisioning.snapshotSweepIntervalMs;
  if (intervalMs === null) return;
  try {
    await untilCapable(driver, ({ createDeleteSnapshot }) => createDeleteSnapshot, signal);
  } catch {
    return; // we end
  }
  await onceServed(options, client, volumeSnapshots, signal, (lasting) =>
    runSnapshotSweep(
      { client, transport, claims, intervalMs, clock, logger, metrics: metrics.reflector(volumeSnapshots.plural) },
      lasting,
    ),
  );
}

/** Runs something once an optional API is served, also when that is only installed later. */
async function onceServed(
  { clock, logger }: RunPhaseOptions,
  client: KubeClient,
  resource: Resource,
  signal: AbortSignal,
  run: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  try {
    await new OptionalApi({ client, resource, clock, logger }).waitUntilPresent(signal);
    await run(signal);
  } catch (error) {
    if (!signal.aborted) logger.error({ err: error, resource: resource.plural }, 'Work on an optional API has ended');
  }
}
