import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { Permit } from '../base/permit.ts';
import type { Tracer } from '../base/tracing.ts';
import type { RateLimiter } from '../kube/queue/rate-limiter.ts';
import type { Recorder } from '../kube/events/recorder.ts';
import type { Transport } from '../kube/client/transport.ts';
import type { WorkQueueMetrics } from '../kube/queue/work-queue.ts';
import type { ControllerMetrics } from './controller-metrics.ts';
import type { MeaningOf } from './event-reasons.ts';
import type { ProvisionInformers } from './cache/informers.ts';
import type { IntentJournal } from './intent-journal/intent-journal.ts';
import type { JournalMetrics } from './intent-journal/journal-metrics.ts';
import type { KeptFields } from './cache/kept-fields.ts';
import type { PersistentVolume, PersistentVolumeClaim } from './objects.ts';
import type { ProvisionObserver } from './provision-observer.ts';
import type { Provisioner } from './provisioner.ts';
import type { Recoverable } from './recoverable.ts';

/** The options of a `ProvisionController`: most have defaults. */
export interface ProvisionControllerOptions {
  /** The name by which claims and classes name this provisioner. */
  provisionerName: string;
  /** Further names of this provisioner, such as the in-tree plugin a driver replaces. Default none. */
  additionalProvisionerNames?: readonly string[];
  provisioner: Provisioner | Recoverable<object>;
  transport: Transport;
  /** Notified of what the provisioner did. Default: none. */
  observer?: ProvisionObserver | undefined;
  /** Author of writes in `metadata.managedFields`, at most 128 characters. Default: `provisionerName`. */
  fieldManager?: string;
  /** Records events. Default: a recorder of the controller's own, `<provisioner>_<host>_<uuid>`. */
  recorder?: Recorder;
  /** Caches to share with others, run by the caller. Default: the controller's own. */
  informers?: ProvisionInformers;
  /**
   * What the controller's own cache keeps of Bound volumes beyond what the controller reads, for `shouldDelete`. Caches to
   * share get theirs from `provisionInformers`. Default: nothing more.
   */
  volumeFields?: KeptFields<PersistentVolume> | undefined;
  /** Claims worked on at once, and as many volumes. Default 4. */
  workers?: number;
  /** Back-off of failed claims and volumes. Default: 15 s doubling to 1,000 s, and 10 per second in all. */
  limiter?: RateLimiter;
  /** Consecutive failures of a claim before it is left alone until it changes; 0: never. Default 15. */
  failedProvisionThreshold?: number;
  /** The same for the deletion of a volume. Default 15. */
  failedDeleteThreshold?: number;
  /** Time of one attempt to provision, in milliseconds; 0, the default: no limit. */
  provisionTimeoutMs?: number;
  /** Time of one attempt to delete, in milliseconds; 0, the default: no limit. */
  deletionTimeoutMs?: number;
  /** Back-off of a volume that cannot be saved, which is tried until it succeeds. Default: 5 ms doubling to 60 s. */
  saveLimiter?: RateLimiter;
  /**
   * Records each volume before it is created, so that none is lost in a crash; only with a `Recoverable` provisioner. Default:
   * none, what is under way is known to this process only.
   */
  intentJournal?: IntentJournal | undefined;
  /**
   * Needed for each call that changes the backend and each write of a claim or volume, such as that of a `LeaderElector`. Default:
   * that of the intent journal, if it has one.
   */
  permit?: Permit | undefined;
  /**
   * The longest time that one call may keep the backend busy, in milliseconds, also after it was given up. A volume that no claim wants is
   * deleted once no call that could recreate it is under way: 1.5 times this time after the last one without a clear result. The storage of a
   * released volume waits no longer than a minute for that. Default 300,000.
   */
  maxCallMs?: number;
  /** Metrics of the intent journal. Default: none. */
  journalMetrics?: JournalMetrics;
  /** Hold volumes with a finalizer until their storage is gone. Default false. */
  addFinalizer?: boolean;
  /** Name of a claim's volume; must be the same at every call. Default `pvc-<claim UID>`. */
  volumeName?: (claim: PersistentVolumeClaim) => string;
  /** Claims and volumes that are not settled are queued again after this many milliseconds. Default 900,000. */
  resyncMs?: number;
  /** Attempts and their durations, such as `prometheusMetrics(registry)`. Default: none. */
  metrics?: ControllerMetrics;
  /** Metrics of the queues `claims`, `volumes` and `unsavedpvs`. */
  queueMetrics?: (queue: 'claims' | 'volumes' | 'unsavedpvs') => WorkQueueMetrics;
  /** Says what the texts of failures and waits mean, for log lines and for the events of waiting claims. Default: nothing is added to them. */
  meaningOf?: MeaningOf;
  /** Keeps the last error of each claim that waits, for `status`; `short`: its cause and its beginning. Default false. */
  keepLastErrors?: boolean | 'short';
  /** Traces each claim, from the watch event to the bound volume, and each deletion of a volume. Default: none. */
  tracer?: Tracer | undefined;
  /** Default: the machine's own time. */
  clock?: Clock;
  /** Default: warnings and errors, to standard error. */
  logger?: Logger;
  /** Makes writes into cached objects throw: for development and tests. Default false. */
  freezeCache?: boolean;
}
