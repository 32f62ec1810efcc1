/** What runs while this instance leads, or always without leader election: CSI provisioner, controller, features. */
import { capacityObserver } from '../capacity/capacity-observer.ts';
import { volumeName } from '../csi/create/validate-claim.ts';
import type { CsiProvisionerOptions } from '../csi/csi-provisioner-options.ts';
import { CsiProvisioner } from '../csi/csi-provisioner.ts';
import { provisionerIdentity } from '../csi/identity.ts';
import { csiStorage, driverMigration } from '../csi/migration/driver-migration.ts';
import { isProvisionerOf, replacedPlugin } from '../csi/migration/in-tree-plugins.ts';
import { PlanWaits } from '../csi/plan-waits.ts';
import { type OpenSource, openSources } from '../csi/sources/data-source.ts';
import type { TopologyHook } from '../csi/topology/planned-topology.ts';
import { textMeaning } from '../explain/causes/causes.ts';
import type { Lister } from '../kube/cache/store.ts';
import { KubeClient } from '../kube/client/kube-client.ts';
import { EventRecorder } from '../kube/events/event-recorder.ts';
import { BucketLimiter, ExponentialLimiter, MaxOfLimiter } from '../kube/queue/rate-limiter.ts';
import { provisionInformers } from '../provision/cache/informers.ts';
import type { KeptFields } from '../provision/cache/kept-fields.ts';
import type { PersistentVolume, PersistentVolumeClaim, ReferenceGrant } from '../provision/objects.ts';
import { ProvisionController } from '../provision/provision-controller.ts';
import { withCures } from '../provision/event-reasons.ts';
import { type Feature, runFeatures, RunningCaches } from '../run/feature.ts';
import { unreadyLeader } from '../run/leader-events.ts';
import type { Config } from './config.ts';
import { Attachments } from './features/attachments-feature.ts';
import { auditFeature } from './features/audit-feature.ts';
import { type CapacityFeature, capacityFeature } from './features/capacity-feature.ts';
import { goneNodesFeature, otherJournalsFeature, sidecarJournal } from './features/journal-features.ts';
import {
  attributesClassesFeature,
  type AttributesClassesFeature,
  cloneProtectionFeature,
  type GrantsFeature,
  grantsFeature,
  snapshotSweepFeature,
} from './features/sources-feature.ts';
import { startGarbageFeature } from './features/start-garbage-feature.ts';
import { nodeDeploymentFeature, type TopologyFeature, topologyFeature } from './features/topology-feature.ts';
import { fieldManager } from './kubernetes.ts';
import type { FeatureOptions, RunPhaseOptions } from './run-phase-options.ts';
import { ClusterMisfits } from './status/cluster-misfits.ts';

/** Runs until `shutdown.stop` or `abort` aborts; resolves when what was under way has ended. */
export async function runPhase(options: RunPhaseOptions): Promise<void> {
  const { driver, transport, ready, shutdown, abort, clock, logger } = options;
  const client = new KubeClient({ transport, fieldManager });
  await using events = new EventRecorder({ client, component: 'external-provisioner', clock, logger });
  const recorder = withCures(events, textMeaning);
  using caches = new RunningCaches({ ready, clock });
  const ending = AbortSignal.any([shutdown.stop, abort]);
  const parts = { ...options, client, informers: informersFor(options), recorder, caches, ending };

  const attachments = new Attachments(parts);
  const grants = await grantsFeature(parts);
  const attributesClasses = attributesClassesFeature(parts);
  const topology = topologyFeature(parts);
  const plannedSources = (): Iterable<OpenSource> => openSources(controller.openPlans()); // called when it is there
  using planWaits = planWaitsOf(parts, { grants, topology });
  const settings = provisionerSettings(parts, {
    plannedSources,
    planWaits,
    attachments,
    grants: grants?.grants,
    attributesClasses,
    topology: topology.topology,
  });
  const node = nodeDeploymentFeature(parts, settings);
  const capacity = capacityFeature(parts, topology.nodes);
  const controller = makeController(parts, { provisioner: new CsiProvisioner({ ...settings, node }), capacity });
  options.status?.follow(controller.status, topology.nodes);
  options.status?.checks(clusterMisfits(parts));
  options.causes?.follow(controller.status);
  attachments.onDetached((name) => controller.wakeVolume(name));
  planWaits.onClaimChanged((uid) => controller.wakeClaim(uid));
  node?.onClaimChanged((uid) => controller.wakeClaim(uid));
  using _back = driver.onReconnected(() => {
    controller.retryFailed();
    node?.recheckDeclined();
  });

  const provisioning: Feature = {
    caches: { ...parts.informers },
    run: (until) => {
      logger.info({ component: controller.component }, 'Starting provisioner controller');
      return controller.run(until);
    },
  };
  const sources = { loaded: controller.loaded, openSources: plannedSources };
  const clones = cloneProtectionFeature(parts, sources);
  const sweep = snapshotSweepFeature(parts, sources);
  const goneNodes = goneNodesFeature(parts);
  const otherJournals = otherJournalsFeature(parts);
  const garbage = startGarbageFeature(parts);
  const audit = auditFeature(parts);
  const features = [
    provisioning,
    attachments,
    grants,
    attributesClasses,
    topology,
    node,
    capacity,
    clones,
    sweep,
    goneNodes,
    otherJournals,
    garbage,
    unreadyLeader(parts),
    audit,
  ];
  await runFeatures(features, { caches, shutdown, abort, clock, logger });
}

function clusterMisfits({ client, clock, config, driver, ending, informers, lease }: FeatureOptions): ClusterMisfits {
  return new ClusterMisfits({
    ...{ client, clock, lease, signal: ending, driverName: driver.name },
    classes: () => informers.classes.list(),
    publishesCapacity: config.capacity !== null,
    isOnEachNode: config.nodeDeployment !== null,
  });
}

/** What is watched in any case: no cache is only for this. */
function planWaitsOf(
  { informers, clock }: FeatureOptions,
  { grants, topology }: { grants: GrantsFeature | undefined; topology: TopologyFeature },
): PlanWaits {
  const planWaits = new PlanWaits({ clock });
  planWaits.followClaims(informers.claims);
  if (grants !== undefined) planWaits.follow(grants.grants, 'grants');
  if (topology.nodes !== undefined) {
    planWaits.follow(topology.nodes.nodes, 'nodes');
    planWaits.follow(topology.nodes.csiNodes, 'nodes');
  }
  return planWaits;
}

function informersFor({
  config,
  driver,
  transport,
  metrics,
  clock,
  logger,
}: RunPhaseOptions): FeatureOptions['informers'] {
  const plugin = replacedPlugin(driver.name);
  const storage = csiStorage({ isDriver: (name) => name === driver.name, migration: driverMigration(driver.name) });
  return provisionInformers(
    {
      transport,
      isKnownProvisioner: isProvisionerOf(driver.name),
      storageKeys: storage.storageKeys,
      ownsSource: storage.ownsSource,
      volumeFields: auditedFields(config),
      storageSources: ['csi', ...(plugin === undefined ? [] : [plugin.sourceField])],
      metrics: metrics.reflector,
      clock,
      logger,
    },
    metrics.claimBudget,
  );
}

/** In node deployment an audit asks the driver of a node for nothing of the others, which these fields tell apart. */
function auditedFields({ auditIntervalMs, nodeDeployment }: Config): KeptFields<PersistentVolume> | undefined {
  return auditIntervalMs === null || nodeDeployment === null ? undefined : { spec: ['csi', 'nodeAffinity'] };
}

/** The controller with the values of the original: no thresholds, no time-outs of its own, saving in the background. */
function makeController(
  options: FeatureOptions,
  { provisioner, capacity }: { provisioner: CsiProvisioner; capacity: CapacityFeature | undefined },
): ProvisionController {
  const { config, driver, transport, permit, informers, metrics, clock, logger } = options;
  const { workerThreads, retryIntervalStartMs, retryIntervalMaxMs } = config.provisioning;
  const plugin = replacedPlugin(driver.name);
  return new ProvisionController({
    provisionerName: driver.name,
    additionalProvisionerNames: plugin === undefined ? [] : [plugin.name],
    provisioner,
    // each volume made or deleted changes the capacity
    observer: capacity && capacityObserver({ capacity: capacity.controller, logger }),
    transport,
    permit,
    fieldManager,
    informers,
    workers: workerThreads,
    tracer: options.tracer,
    meaningOf: textMeaning,
    keepLastErrors: options.status !== undefined || (options.causes !== undefined && 'short'),
    limiter: new ExponentialLimiter({ baseMs: retryIntervalStartMs, maxMs: retryIntervalMaxMs }),
    failedProvisionThreshold: 0,
    failedDeleteThreshold: 0,
    saveLimiter: new MaxOfLimiter([
      new ExponentialLimiter({ baseMs: 5, maxMs: 1_000_000 }),
      new BucketLimiter({ qps: 10, burst: 100, clock }),
    ]),
    intentJournal: sidecarJournal(options),
    maxCallMs: config.csiTimeoutMs,
    ...(metrics.journal && { journalMetrics: metrics.journal }),
    addFinalizer: true,
    volumeName: (claim) => expectedName(config, claim),
    metrics: metrics.controller,
    queueMetrics: (queue) => metrics.queues[queue],
    clock,
    logger,
  });
}

/**
 * The name that a claim's volume will have, so that one that was just saved is recognised. Where no name can be built the
 * attempt fails with an event that says why.
 */
function expectedName({ provisioning }: Config, { metadata: { uid } }: PersistentVolumeClaim): string {
  try {
    return volumeName(provisioning.volumeNamePrefix, uid, provisioning.volumeNameUuidLength);
  } catch {
    return `pvc-${uid ?? ''}`;
  }
}

/** The options of the CSI provisioner, from the configuration. */
function provisionerSettings(
  { config, driver, client, informers, recorder, clock, logger }: FeatureOptions,
  parts: {
    attachments: Attachments;
    grants: Lister<ReferenceGrant> | undefined;
    attributesClasses: AttributesClassesFeature;
    topology: TopologyHook | undefined;
    plannedSources: () => Iterable<OpenSource>;
    planWaits: PlanWaits;
  },
): CsiProvisionerOptions {
  return {
    driverName: driver.name,
    identity: provisionerIdentity({
      driverName: driver.name,
      wallMs: clock.wallMs(),
      random: Math.random(),
      nodeName: config.nodeDeployment?.nodeName,
    }),
    capabilities: () => driver.capabilities,
    controller: driver.calls,
    progress: driver.progress,
    client,
    claims: informers.claims,
    classes: informers.classes,
    attachments: parts.attachments,
    referenceGrants: parts.grants,
    recorder,
    logger,
    clock,
    timeoutMs: config.csiTimeoutMs,
    ...config.provisioning,
    gates: config.featureGates,
    attributesClasses: parts.attributesClasses.api,
    topology: parts.topology,
    plannedSources: parts.plannedSources,
    planWaits: parts.planWaits,
    migration: driverMigration(driver.name),
  };
}
