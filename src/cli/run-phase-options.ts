import { type AuditMetrics, auditMetrics } from '../audit/recurring-audit.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { Permit } from '../base/permit.ts';
import type { MetricRegistry } from '../base/metrics.ts';
import type { Tracer } from '../base/tracing.ts';
import type { Driver } from '../csi/driver.ts';
import { secrets } from '../csi/secrets/read-secret.ts';
import type { OpenSource } from '../csi/sources/data-source.ts';
import { volumeSnapshotContents, volumeSnapshots } from '../csi/sources/snapshot-source.ts';
import { volumeAttributesClasses } from '../csi/volume-attributes-class.ts';
import { events, type Recorder } from '../kube/events/event-recorder.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import { leases } from '../kube/election/lease-record.ts';
import { type ReflectorMetrics, reflectorMetrics } from '../kube/cache/reflector-metrics.ts';
import type { Transport } from '../kube/client/transport.ts';
import type { WorkQueueMetrics } from '../kube/queue/work-queue.ts';
import { workQueueMetrics } from '../kube/queue/work-queue-metrics.ts';
import { type ControllerMetrics, prometheusMetrics } from '../provision/controller-metrics.ts';
import type { ProvisionInformers } from '../provision/cache/informers.ts';
import { type JournalMetrics, journalMetrics } from '../provision/intent-journal/journal-metrics.ts';
import { type ClaimBudget, measuredClaimBudget } from '../provision/cache/cached-claim.ts';
import { type CapacityFamilies, capacityFamilies, type CapacitySetup } from './capacity.ts';
import type { Config } from './config.ts';
import type { Health } from '../run/health.ts';
import type { RunningCaches } from '../run/feature.ts';
import type { Shutdown } from '../run/shutdown.ts';
import type { CauseMetrics } from './status/cause-metrics.ts';
import type { SidecarStatus } from './status/sidecar-status.ts';

interface RunPhaseMetrics {
  claimBudget: ClaimBudget;
  controller: ControllerMetrics;
  queues: Record<'claims' | 'volumes' | 'unsavedpvs', WorkQueueMetrics>;
  /** Undefined when capacity is not published. */
  capacity: CapacityFamilies | undefined;
  /** Undefined without intent journal. */
  journal: JournalMetrics | undefined;
  /** Undefined without `--audit-interval`. */
  audit: AuditMetrics | undefined;
  reflector: (resource: string) => ReflectorMetrics;
  /** Counts a forbidden request by its resource. */
  forbidden: (resource: string) => void;
}

/** Resources that are read and written by single requests, besides those that are always cached. */
const requested = [events, leases, secrets, volumeAttributesClasses, volumeSnapshots, volumeSnapshotContents];

/** Registers all that the run phase counts. @throws {Error} when the registry has it already. */
export function controllerMetrics(registry: MetricRegistry, config: Config, clock: Clock): RunPhaseMetrics {
  const queues = workQueueMetrics(registry);
  const { forQueue } = queues;
  const reflector = reflectorMetrics(
    registry,
    requested.map(({ plural }) => plural),
  );
  return {
    claimBudget: measuredClaimBudget(registry),
    controller: prometheusMetrics(registry),
    queues: { claims: forQueue('claims'), volumes: forQueue('volumes'), unsavedpvs: forQueue('unsavedpvs') },
    capacity: config.capacity === null ? undefined : capacityFamilies(registry, queues, config),
    journal: config.intentJournal === null ? undefined : journalMetrics(registry, clock),
    audit: config.auditIntervalMs === null ? undefined : auditMetrics(registry),
    reflector: reflector.forResource,
    forbidden: reflector.forbidden,
  };
}

/** What the features of the run phase are made with. */
export interface FeatureOptions extends RunPhaseOptions {
  client: KubeClient;
  informers: ProvisionInformers;
  /** Events of the component `external-provisioner`. */
  recorder: Recorder;
  caches: RunningCaches;
  /** Stops taking new work, and ends every wait. */
  ending: AbortSignal;
}

/** What volumes in progress are copied from: its protection stays. */
export interface OpenSources {
  /** Resolves once the records of earlier processes count, too. */
  loaded: Promise<undefined>;
  openSources: () => Iterable<OpenSource>;
}

/** What the run phase works with. */
export interface RunPhaseOptions {
  config: Config;
  transport: Transport;
  driver: Driver;
  /** Undefined: capacity is not published. */
  capacity: CapacitySetup | undefined;
  metrics: RunPhaseMetrics;
  shutdown: Shutdown;
  /** Ends what is under way. */
  abort: AbortSignal;
  /** Of the leader; undefined without leader election. */
  permit?: Permit | undefined;
  /** Undefined: no metrics are served. */
  causes: CauseMetrics | undefined;
  /** The Lease that makes this process the leader; undefined without leader election. */
  lease: { readonly namespace: string; readonly name: string } | undefined;
  /** Fails until the caches have synced, and while one is silent for too long. */
  ready: Health;
  /** Undefined: nothing is traced. */
  tracer?: Tracer | undefined;
  /** Undefined: no status page. */
  status?: SidecarStatus | undefined;
  /** A number from 0 up to 1, exclusive. Default: `Math.random`. */
  random?: (() => number) | undefined;
  clock: Clock;
  logger: Logger;
}
