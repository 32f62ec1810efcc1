/** The options of a controller, and their checks before it does anything. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import {
  aFunction,
  checkOptions,
  flag,
  having,
  milliseconds,
  oneOf,
  type OptionRule,
  required,
  text,
  texts,
  wholeNumber,
} from '../base/option-rules.ts';
import type { Permit } from '../base/permit.ts';
import type { Tracer } from '../base/tracing.ts';
import { type KubeClient, maxFieldManagerLength } from '../kube/client/kube-client.ts';
import type { Transport } from '../kube/client/transport.ts';
import type { Recorder } from '../kube/events/event-recorder.ts';
import type { RateLimiter } from '../kube/queue/rate-limiter.ts';
import type { WorkQueueMetrics } from '../kube/queue/work-queue.ts';
import type { ProvisionInformers } from './cache/informers.ts';
import type { KeptFields } from './cache/kept-fields.ts';
import type { ControllerMetrics } from './controller-metrics.ts';
import type { MeaningOf } from './event-reasons.ts';
import type { IntentJournal } from './intent-journal/intent-journal.ts';
import type { JournalMetrics } from './intent-journal/journal-metrics.ts';
import type { PersistentVolume, PersistentVolumeClaim } from './objects.ts';
import type { Provisioner, ProvisionError, ProvisionOptions } from './provisioner.ts';
import { missingOf, type Recoverable } from './recoverable.ts';

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

export interface Environment {
  /** Sends nothing without the permit. */
  client: KubeClient;
  /** Needed for each call that changes the backend. Undefined: none is. */
  permit: Permit | undefined;
  recorder: Recorder;
  /** For events and log lines about failures. Undefined: they do not name a cause. */
  meaningOf: MeaningOf | undefined;
  /** Aborts when what is under way is to be abandoned. */
  abort: AbortSignal;
  clock: Clock;
  logger: Logger;
}

const noLimit = ' (0: no limit)';

const transport = having('stream');
const permit: OptionRule = {
  allowed: 'an object with a boolean isValid and a method renewed',
  accepts: (value) => having('renewed').accepts(value) && flag.accepts((value as { isValid?: unknown }).isValid),
};
const limiter = having('when', 'forget', 'failures');

const fieldManager: OptionRule = {
  allowed: `a string of 1 to ${maxFieldManagerLength} characters`,
  accepts: (value) => text.accepts(value) && (value as string).length <= maxFieldManagerLength,
};

/** A rule for each option; undefined: not checked here. */
const rules: { readonly [Name in keyof Required<ProvisionControllerOptions>]: OptionRule | undefined } = {
  provisionerName: text,
  additionalProvisionerNames: texts,
  provisioner: having(),
  transport,
  observer: having(),
  fieldManager,
  recorder: having('event'),
  informers: having(),
  volumeFields: undefined,
  workers: wholeNumber(1),
  limiter,
  failedProvisionThreshold: wholeNumber(0, ' (0: never give up)'),
  failedDeleteThreshold: wholeNumber(0, ' (0: never give up)'),
  provisionTimeoutMs: milliseconds(0, noLimit),
  deletionTimeoutMs: milliseconds(0, noLimit),
  saveLimiter: limiter,
  intentJournal: having('open', 'run', 'put', 'remove', 'flush'),
  permit,
  maxCallMs: milliseconds(1),
  journalMetrics: having(),
  addFinalizer: flag,
  volumeName: aFunction,
  resyncMs: milliseconds(1),
  metrics: having(),
  queueMetrics: aFunction,
  meaningOf: aFunction,
  keepLastErrors: oneOf(true, false, 'short'),
  tracer: having(),
  clock: having('wallMs', 'monotonicMs', 'sleep', 'after'),
  logger: having('error', 'warn', 'info', 'debug', 'trace', 'child'),
  freezeCache: flag,
};

/** Unknown names are ignored. @throws {TypeError} for the first option that cannot work: names it, and says why. */
export function checkControllerOptions(options: ProvisionControllerOptions): void {
  checkProvisionerName(options.provisionerName);
  checkProvisioner(options.provisioner);
  checkOptionValues(options);
  checkOptions(options, { transport: required(transport) });
  if (options.informers !== undefined && options.volumeFields !== undefined) {
    throw new TypeError('volumeFields has no effect on informers that exist already: pass it to provisionInformers');
  }
}

/** The same for those options that are given. @throws as `checkControllerOptions`. */
export function checkOptionValues(options: Partial<ProvisionControllerOptions>): void {
  checkOptions(options, rules);
}

/** @throws {TypeError} when it is not a string, or is empty. */
export function checkProvisionerName(name: unknown): void {
  if (typeof name === 'string' && name !== '') return;
  throw new TypeError(
    `provisionerName must be a non-empty string, the field provisioner of your StorageClasses, such as "hostpath.example.com", got ${JSON.stringify(name)}`,
  );
}

/**
 * @throws {TypeError} naming what is missing: a `Recoverable` provisioner needs no `provision`. One that has `plan`, `fulfil`, `revoke`
 * or `handleKey` needs all methods of `Recoverable`: else a misspelt one would silently end the protection from crashes.
 */
export function checkProvisioner(given: Partial<Provisioner & Recoverable<object>> | null = {}): void {
  const provisioner = given ?? {};
  const missing = missingOf(provisioner);
  const some = recoverableOnly.filter((method) => provisioner[method] !== undefined);
  if (missing.length > 0 && some.length > 0) {
    throw new TypeError(
      `provisioner has ${some.join(', ')}, but not ${missing.join(', ')}: it would not be Recoverable, \
and a crash could leave storage behind. Implement all of these, or none`,
    );
  }
  if (typeof provisioner.provision !== 'function' && missing.length > 0) {
    throw new TypeError(
      `provisioner must have a method provision, or implement Recoverable, of which it lacks ${missing.join(', ')}`,
    );
  }
  if (typeof provisioner.delete !== 'function') throw new TypeError('provisioner must have a method delete');
}

/** What a provisioner that is not `Recoverable` has no use for. */
const recoverableOnly = ['plan', 'fulfil', 'revoke', 'handleKey'] as const;

/**
 * Notified of what the provisioner of a `ProvisionController` did, for example to count it or to refresh capacity. The
 * methods are called during a sync and must return at once. What they throw is logged and changes nothing.
 */
export interface ProvisionObserver {
  /** The storage was created. The volume is as it will be saved; that comes next, and another attempt may follow if it fails. */
  onProvisioned?(volume: PersistentVolume, options: ProvisionOptions): void;
  /** An attempt failed; its state says whether the backend was reached. Not called for a claim that was ignored. */
  onProvisionFailed?(failure: ProvisionError, options: ProvisionOptions): void;
  /** The storage behind the volume was deleted; its object, unless it could never be saved, is still there. */
  onDeleted?(volume: PersistentVolume): void;
}

/** The observer with all its methods, none of which throws. */
export function guardedObserver(
  observer: ProvisionObserver | undefined,
  logger: Logger,
): Readonly<Required<ProvisionObserver>> {
  const guarded = (method: keyof ProvisionObserver, call: () => void): void => {
    try {
      call();
    } catch (error) {
      logger.error({ err: error, method }, 'An observer of the provision controller failed');
    }
  };
  return {
    onProvisioned: (volume, options) => guarded('onProvisioned', () => observer?.onProvisioned?.(volume, options)),
    onProvisionFailed: (failure, options) =>
      guarded('onProvisionFailed', () => observer?.onProvisionFailed?.(failure, options)),
    onDeleted: (volume) => guarded('onDeleted', () => observer?.onDeleted?.(volume)),
  };
}
