/**
 * The storage-agnostic controller: it watches claims, volumes and classes, calls a `Provisioner` for claims that need a
 * volume, saves the volumes, and has storage deleted when its volume is released.
 */
import { hostname } from 'node:os';
import { v4 as uuid } from 'uuid';
import { joinSignals, untilAborted } from '../base/abort.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { TaskGroup } from '../base/task-group.ts';
import { warningLogger } from '../base/text-logger.ts';
import { EventRecorder } from '../kube/event-recorder.ts';
import { KubeClient, maxFieldManagerLength } from '../kube/kube-client.ts';
import { BucketLimiter, ExponentialLimiter, MaxOfLimiter, type RateLimiter } from '../kube/rate-limiter.ts';
import { waitForSync } from '../kube/wait-for-sync.ts';
import { WorkQueue } from '../kube/work-queue.ts';
import { claimUid } from './claim-facts.ts';
import { ClaimTraces } from './claim-traces.ts';
import { noMetrics } from './controller-metrics.ts';
import { ControllerStatus } from './controller-status.ts';
import { type ProvisionInformers, provisionInformers } from './informers.ts';
import { type IntentJournal, noJournal } from './intent-journal/intent-journal.ts';
import { noJournalMetrics } from './intent-journal/journal-metrics.ts';
import { Intents } from './intents.ts';
import { LastErrors } from './last-errors.ts';
import { makeRecovery, type Recovery } from './make-recovery.ts';
import { makeVolumeStore } from './make-volume-store.ts';
import type { ProvisionControllerOptions } from './provision-controller-options.ts';
import { guardedObserver } from './provision-observer.ts';
import { RecentlySaved } from './recently-saved.ts';
import { isRecoverable, type Plan } from './recoverable.ts';
import type { RunOptions } from './run-options.ts';
import { runWorkers } from './run-workers.ts';
import { SlowSet } from './slow-set.ts';
import { ClaimSyncer } from './sync-claim.ts';
import { VolumeSyncer } from './sync-volume.ts';
import type { VolumeStore } from './volume-store.ts';
import { WatchHandlers } from './watch-handlers.ts';

const resyncDefaultMs = 900_000;
const maxCallDefaultMs = 300_000;
/** How long the cache of claims may take to show that a claim has its volume, in milliseconds. */
const recentlyServedMs = 300_000;

/** Thousands of claims that waited for a backend must not be retried all at once. */
const retrySpreadMs = 1000;

/**
 * Watches claims, volumes and classes; provisions storage for the claims that name `provisionerName`, saves the volumes
 * and deletes storage when its volume is released with policy Delete (Kubernetes page "Persistent Volumes",
 * "Lifecycle of a volume and claim"). Nothing happens before `run`.
 */
export class ProvisionController {
  /** What events name as their source: `<provisioner>_<host>_<uuid>`, new in each process. */
  readonly component: string;
  /** What the controller does now: for status pages. */
  readonly status: ControllerStatus;
  readonly #options: ProvisionControllerOptions;
  readonly #informers: ProvisionInformers;
  readonly #ownRecorder: EventRecorder;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #claimQueue: WorkQueue;
  readonly #volumeQueue: WorkQueue;
  readonly #queues = new Map<string, WorkQueue>();
  readonly #store: VolumeStore;
  readonly #slowSet: SlowSet;
  readonly #journal: IntentJournal;
  readonly #intents: Intents;
  readonly #recovery: Recovery | undefined;
  readonly #claimSyncer: ClaimSyncer;
  readonly #volumeSyncer: VolumeSyncer;
  readonly #watchHandlers: WatchHandlers;
  readonly #traces: ClaimTraces | undefined;
  /** Of the run; before it nothing is under way. */
  #abort = new AbortController().signal;
  #hasRun = false;
  readonly #loaded = Promise.withResolvers<undefined>();

  /** @throws {TypeError} when given both `informers` and `volumeFields`. */
  constructor(options: ProvisionControllerOptions) {
    if (options.informers !== undefined && options.volumeFields !== undefined) {
      throw new TypeError('volumeFields has no effect on informers that exist already: pass it to provisionInformers');
    }
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#logger = options.logger ?? warningLogger;
    this.component = `${options.provisionerName}_${hostname()}_${uuid()}`;
    const names = new Set([options.provisionerName, ...(options.additionalProvisionerNames ?? [])]);
    const isKnownProvisioner = (name: string): boolean => names.has(name);
    const { transport, fieldManager = options.provisionerName.slice(0, maxFieldManagerLength) } = options;
    const client = new KubeClient({ transport, fieldManager });
    this.#informers =
      options.informers ??
      provisionInformers({
        transport,
        isKnownProvisioner,
        volumeFields: options.volumeFields,
        clock: this.#clock,
        logger: this.#logger,
        freeze: options.freezeCache ?? false,
      });
    const ownRecorder = new EventRecorder({
      client,
      component: this.component,
      clock: this.#clock,
      logger: this.#logger,
    });
    this.#ownRecorder = ownRecorder;
    const recorder = options.recorder ?? ownRecorder;
    const limiter = options.limiter ?? defaultLimiter(this.#clock); // one for both queues, as in the original
    this.#claimQueue = this.#queue('claims', limiter);
    this.#volumeQueue = this.#queue('volumes', limiter);
    const recentlySaved = new RecentlySaved({ clock: this.#clock });
    const observer = guardedObserver(options.observer, this.#logger);
    const { provisioner, intentJournal = noJournal, maxCallMs = maxCallDefaultMs } = options;
    this.#journal = intentJournal;
    const metrics = options.journalMetrics ?? noJournalMetrics;
    const logger = this.#logger;
    this.#intents = new Intents({ journal: intentJournal, maxCallMs, clock: this.#clock, logger, metrics });
    const parts = {
      provisioner,
      intents: this.#intents,
      observer,
      isKnownProvisioner,
      client,
      recorder,
      metrics: options.metrics ?? noMetrics,
      addFinalizer: options.addFinalizer ?? false,
      clock: this.#clock,
      logger: this.#logger,
      volumes: this.#informers.volumes,
    };
    const recentlyServed = new RecentlySaved({ clock: this.#clock, lifeMs: recentlyServedMs });
    this.#store = makeVolumeStore({
      ...parts,
      onSaved: (volume) => {
        recentlyServed.add(volume.spec.claimRef?.uid ?? '');
        this.#recovery?.recovery.saved(volume);
      },
      onTaken: (volume) => this.#recovery?.recovery.taken(volume),
      onDropped: (volume) => {
        if (this.#recovery !== undefined) this.#claimQueue.addRateLimited(volume.spec.claimRef?.uid ?? '');
      },
      save: options.save,
      informers: this.#informers,
      recentlySaved,
      makeQueue: (queueLimiter) => this.#queue('unsavedpvs', queueLimiter),
      abort: () => this.#abort,
    });
    this.#slowSet = new SlowSet({ clock: this.#clock });
    if (isRecoverable(provisioner)) {
      this.#recovery = makeRecovery({
        ...parts,
        provisioner,
        transport,
        store: this.#store,
        claims: this.#informers.claims,
        classes: this.#informers.classes,
        recentlyServed,
        journalMetrics: metrics,
        abort: () => this.#abort,
        onReleased: (uid, afterMs) => {
          this.#claimQueue.addAfter(uid, afterMs);
          this.#watchHandlers.settleClaim(uid);
        },
        onServed: (uid) => this.#watchHandlers.settleClaim(uid),
      });
    }
    this.#volumeSyncer = new VolumeSyncer({
      ...parts,
      quietInMs: (name) => this.#intents.quietInMs(name),
      onTooEarly: (name, afterMs) => this.#volumeQueue.addAfter(name, afterMs),
    });
    this.#traces = options.tracer && new ClaimTraces({ tracer: options.tracer, clock: this.#clock });
    const lastErrors = options.keepLastErrors === true ? new LastErrors(this.#clock) : undefined;
    const volumeName = options.volumeName ?? ((claim) => `pvc-${claimUid(claim)}`);
    this.#claimSyncer = new ClaimSyncer({
      ...parts,
      lastErrors,
      traces: this.#traces,
      provisionerName: options.provisionerName,
      claims: this.#informers.claims,
      classes: this.#informers.classes,
      store: this.#store,
      slowSet: this.#slowSet,
      volumeName,
      recentlySaved,
      recovery: this.#recovery?.recovery,
    });
    this.status = new ControllerStatus({
      isKnownProvisioner,
      volumeName,
      claims: () => this.#informers.claims.list(),
      getClass: (name) => this.#informers.classes.get(name),
      lastError: (uid) => lastErrors?.get(uid),
      isUnsaved: (name) => this.#store.isUnsaved(name),
      hasVolume: (name) => this.#informers.volumes.get(name) !== undefined || recentlySaved.has(name),
      intents: () => this.#intents.list(),
      claimQueue: this.#claimQueue,
      queues: this.#queues,
    });
    this.#watchHandlers = new WatchHandlers({
      ...parts,
      informers: this.#informers,
      claimQueue: this.#claimQueue,
      volumeQueue: this.#volumeQueue,
      claimSyncer: this.#claimSyncer,
      volumeSyncer: this.#volumeSyncer,
      recentlySaved,
      traces: this.#traces,
      resyncMs: options.resyncMs ?? resyncDefaultMs,
    });
  }

  /** Claims and volumes that wait or are being worked on: for status pages. */
  get queueLengths(): { claims: number; volumes: number } {
    return { claims: this.#claimQueue.length, volumes: this.#volumeQueue.length };
  }

  /**
   * Requeues a claim at once: something outside the claim changed, such as a response its provisioner waited for. A
   * provisioner that would have to wait long in `shouldProvision` returns false, which frees the worker, and calls this
   * later.
   *
   * @param uid - of the claim; one that is gone, or has its volume, is left alone.
   */
  wakeClaim(uid: string): void {
    this.#claimQueue.add(uid);
  }

  /** Requeues a volume at once: something outside Kubernetes' own volume object changed for it. */
  wakeVolume(name: string): void {
    this.#volumeQueue.add(name);
  }

  /**
   * Resolves once the records that earlier processes left are open intents of this one. Until then what they are made from
   * must stay. Never rejects.
   */
  get loaded(): Promise<undefined> {
    return this.#loaded.promise;
  }

  /** The plans of the volumes that are recorded and may be in the making: what they are made from is in use. */
  *openPlans(): Generator<Plan> {
    for (const { record } of this.#intents.list()) yield record.plan;
  }

  /**
   * The backend is back after an outage, or was restarted: claims and volumes whose last attempt failed are tried again
   * within a second, infeasible ones too, and their failures so far no longer lengthen the back-off. An object
   * that reached a failure threshold still waits until it changes. Safe to repeat.
   */
  retryFailed(): void {
    this.#slowSet.clear();
    this.#claimQueue.retrySoon(retrySpreadMs);
    this.#recovery?.revoker.retrySoon(retrySpreadMs);
    this.#volumeQueue.retrySoon(retrySpreadMs);
  }

  /**
   * Works until it is stopped, then finishes what is under way and resolves. To be called once.
   *
   * @throws {Error} when called a second time.
   */
  async run({ stop, abort = new AbortController().signal }: RunOptions): Promise<void> {
    if (this.#hasRun) throw new Error('a provision controller runs only once');
    this.#hasRun = true;
    const background = new TaskGroup(); // caches and saves end last: what is under way needs them
    // a failure in the background, such as another process that writes the journal, aborts what is under way, too
    using aborting = joinSignals([abort, background.signal], { clock: this.#clock });
    this.#abort = aborting.signal;
    using ending = joinSignals([stop, aborting.signal], { clock: this.#clock });
    background.start((signal) => this.#store.run(signal));
    if (this.#recovery !== undefined) background.start((signal) => this.#journal.run(signal));
    if (this.#options.informers === undefined) {
      const { claims, volumes, classes } = this.#informers;
      for (const informer of [claims, volumes, classes]) background.start((signal) => informer.run(signal));
    }
    const registrations = this.#watchHandlers.register();
    try {
      const ready = { ...registrations, classes: this.#informers.classes };
      await waitForSync(ready, { signal: ending.signal, clock: this.#clock, logger: this.#logger });
      this.#logger.info({ component: this.component }, 'Started provisioner controller');
      if (this.#recovery !== undefined) await this.#loadIntents(ending.signal, background);
      this.#loaded.resolve(undefined);
      await this.#work(ending.signal, aborting.signal);
      await untilAborted(this.#store.settled(), aborting.signal);
      await this.#journal.flush(aborting.signal);
    } catch (error) {
      if (!ending.signal.aborted) throw error;
    } finally {
      for (const registration of Object.values(registrations)) registration.remove();
      this.#traces?.stop();
      background.abort(new Error('the provision controller has ended'));
      await background.ended().finally(() => this.#ownRecorder[Symbol.asyncDispose]());
      this.#logger.info({ component: this.component }, 'Stopped provisioner controller');
    }
  }

  /** What earlier processes were making is looked at first. */
  async #loadIntents(signal: AbortSignal, background: TaskGroup): Promise<void> {
    const { provisioner } = this.#options;
    await this.#intents.load(
      {
        changed: (uid) => this.#claimQueue.add(uid),
        discarded: ({ record }) => {
          if (!isRecoverable(provisioner)) return;
          background.start(async (ending) => {
            try {
              await provisioner.release?.(record.plan, { signal: ending });
            } catch (error) {
              const { namespace, name } = record.claim;
              this.#logger.error({ err: error, claim: `${namespace}/${name}` }, 'A discarded record was not released');
            }
          });
        },
        fenced: (error) => background.start(() => Promise.reject(error)),
      },
      signal,
    );
  }

  async #work(stop: AbortSignal, abort: AbortSignal): Promise<void> {
    const { workers = 4, failedProvisionThreshold = 15, failedDeleteThreshold = 15 } = this.#options;
    const { provisionTimeoutMs = 0, deletionTimeoutMs = 0 } = this.#options;
    const common = { count: workers, abort, clock: this.#clock, logger: this.#logger };
    const queues = new TaskGroup(stop);
    queues.start((ending) =>
      runWorkers({
        ...common,
        stop: ending,
        what: 'claim',
        queue: this.#claimQueue,
        sync: (uid, signal) => this.#claimSyncer.sync(uid, signal),
        failureThreshold: failedProvisionThreshold,
        onGiveUp: (uid) => {
          this.#claimSyncer.giveUp(uid);
          this.#watchHandlers.settleClaim(uid);
        },
        describe: (uid) => this.#claimSyncer.describe(uid),
        timeoutMs: provisionTimeoutMs,
      }),
    );
    queues.start((ending) =>
      runWorkers({
        ...common,
        stop: ending,
        what: 'volume',
        queue: this.#volumeQueue,
        sync: (name, signal) => this.#volumeSyncer.sync(name, signal),
        failureThreshold: failedDeleteThreshold,
        timeoutMs: deletionTimeoutMs,
      }),
    );
    if (this.#recovery !== undefined) {
      const { revoker } = this.#recovery;
      queues.start((ending) => revoker.run({ stop: ending, abort, claimWorkers: workers }));
    }
    await queues.ended();
  }

  #queue(name: 'claims' | 'volumes' | 'unsavedpvs', limiter: RateLimiter): WorkQueue {
    const queue = new WorkQueue({ limiter, clock: this.#clock, metrics: this.#options.queueMetrics?.(name) });
    this.#queues.set(name, queue);
    return queue;
  }
}

function defaultLimiter(clock: Clock): RateLimiter {
  return new MaxOfLimiter([
    new ExponentialLimiter({ baseMs: 15_000, maxMs: 1_000_000 }),
    new BucketLimiter({ qps: 10, burst: 100, clock }),
  ]);
}
