/** What the parts of a controller share, with its defaults. */
import { withCures } from './text-meaning.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { Permit } from '../base/permit.ts';
import { warningLogger } from '../base/text-logger.ts';
import { KubeClient, maxFieldManagerLength } from '../kube/client/kube-client.ts';
import type { Transport } from '../kube/client/transport.ts';
import { EventRecorder } from '../kube/events/event-recorder.ts';
import type { Recorder } from '../kube/events/recorder.ts';
import { type ProvisionInformers, provisionInformers } from './cache/informers.ts';
import { type ControllerMetrics, noMetrics } from './controller-metrics.ts';
import { type JournalMetrics, noJournalMetrics } from './intent-journal/journal-metrics.ts';
import type { ProvisionControllerOptions } from './provision-controller-options.ts';
import { guardedObserver, type ProvisionObserver } from './provision-observer.ts';
import type { Provisioner } from './provisioner.ts';
import type { Recoverable } from './recoverable.ts';
import { ownsSourceOf, type VolumeOwnership } from './volume/owns-volume.ts';
import { storageKeysOf } from './volume/storage-index.ts';

export interface ControllerBase extends ProvisionInformers, VolumeOwnership {
  informers: ProvisionInformers;
  provisioner: Provisioner | Recoverable;
  addFinalizer: boolean;
  observer: Required<ProvisionObserver>;
  transport: Transport;
  /** Sends nothing without the permit. */
  client: KubeClient;
  permit: Permit | undefined;
  /** Records events unless the caller has given another recorder. */
  ownRecorder: EventRecorder;
  /** The recorder above, or the caller's. */
  recorder: Recorder;
  metrics: ControllerMetrics;
  journalMetrics: JournalMetrics;
  /** Aborts when what is under way is to be abandoned. */
  abort: () => AbortSignal;
  clock: Clock;
  logger: Logger;
}

/** @param component - what events name as their source. */
export function controllerBase(
  options: ProvisionControllerOptions,
  { component, abort }: { component: string; abort: () => AbortSignal },
): ControllerBase {
  const { clock = systemClock, logger = warningLogger, provisionerName, transport } = options;
  const provisioner = options.provisioner as Provisioner | Recoverable; // its plans are checked when they are made
  const { metrics = noMetrics, journalMetrics = noJournalMetrics } = options;
  const names = new Set([provisionerName, ...(options.additionalProvisionerNames ?? [])]);
  const isKnownProvisioner = (name: string): boolean => names.has(name);
  const ownsSource = ownsSourceOf(provisioner);
  const { fieldManager = provisionerName.slice(0, maxFieldManagerLength) } = options;
  const permit = options.permit ?? options.intentJournal?.permit;
  const informers =
    options.informers ??
    provisionInformers({
      transport,
      isKnownProvisioner,
      volumeFields: options.volumeFields,
      storageKeys: storageKeysOf(provisioner),
      ownsSource,
      clock,
      logger,
      freeze: options.freezeCache ?? false,
    });
  metrics.followClasses?.((name) => informers.classes.get(name) !== undefined);
  const events = new KubeClient({ transport, fieldManager });
  const ownRecorder = new EventRecorder({ client: events, component, clock, logger });
  const { recorder = ownRecorder } = options;
  return {
    ...informers,
    informers,
    provisioner,
    isKnownProvisioner,
    ownsSource,
    addFinalizer: options.addFinalizer ?? false,
    observer: guardedObserver(options.observer, logger),
    transport,
    client: new KubeClient({ transport, fieldManager, permit }),
    permit,
    ownRecorder,
    recorder: options.meaningOf === undefined ? recorder : withCures(recorder, options.meaningOf),
    metrics,
    journalMetrics,
    abort,
    clock,
    logger,
  };
}
