/**
 * The storage-agnostic controller: it watches claims, volumes and classes, calls a `Provisioner` for claims that need a
 * volume, saves the volumes, and has storage deleted when its volume is released.
 */
import { hostname } from 'node:os';
import { v4 as uuid } from 'uuid';
import { joinSignals, untilAborted } from '../base/abort.ts';
import { TaskGroup } from '../base/task-group.ts';
import { waitForSync } from '../kube/cache/wait-for-sync.ts';
import type { Recorder } from '../kube/events/event-recorder.ts';
import { type ControllerParts, defaultWorkers, makeControllerParts } from './controller-parts.ts';
import type { ControllerStatus } from './controller-status.ts';
import { needsSource } from './intents/intent-state.ts';
import { checkControllerOptions, type ProvisionControllerOptions } from './provision-controller-options.ts';
import { isRecoverable, type Plan } from './recoverable.ts';
import { type RunOptions, runWorkers } from './run-workers.ts';

/** Thousands of claims that waited for a backend must not be retried all at once. */
const retrySpreadMs = 1000;
/** For the last write of the journal when a run is aborted, in milliseconds: the shutdown of the sidecar has 1.5 s for it. */
const lastWriteMs = 1000;

/**
 * Watches claims, volumes and classes; provisions storage for the claims that name `provisionerName`, saves the volumes
 * and deletes storage when its volume is released with policy Delete (Kubernetes page "Persistent Volumes",
 * "Lifecycle of a volume and claim"). Nothing happens before `run`.
 */
export class ProvisionController {
  /** What events name as their source: `<provisioner>_<host>_<uuid>`, new in each process. */
  readonly component: string;
  /** Records events on claims and volumes. */
  readonly recorder: Recorder;
  /** What the controller does now: for status pages. */
  readonly status: ControllerStatus;
  readonly #options: ProvisionControllerOptions;
  readonly #parts: ControllerParts;
  /** Aborts when what is under way is to be abandoned. */
  readonly #abort = new AbortController();
  #hasRun = false;
  readonly #loaded = Promise.withResolvers<undefined>();

  /** @throws {TypeError} for options that cannot work: names the option, the value, and what it must be. */
  constructor(options: ProvisionControllerOptions) {
    checkControllerOptions(options);
    this.#options = options;
    this.component = `${options.provisionerName}_${hostname()}_${uuid()}`;
    this.#parts = makeControllerParts(options, { component: this.component, abort: this.#abort.signal });
    this.recorder = this.#parts.recorder;
    this.status = this.#parts.status;
  }

  /** Claims and volumes that wait or are being worked on: for status pages. */
  get queueLengths(): { claims: number; volumes: number } {
    return { claims: this.#parts.claimQueue.length, volumes: this.#parts.volumeQueue.length };
  }

  /**
   * Requeues a claim at once: something outside the claim changed, such as a response its provisioner waited for. A
   * provisioner that would have to wait long in `shouldProvision` returns false, which frees the worker, and calls this
   * later.
   *
   * @param uid - of the claim; one that is gone, or has its volume, is left alone.
   */
  wakeClaim(uid: string): void {
    this.#parts.claimSyncer.enqueue(uid);
  }

  /** Requeues a volume at once: something outside Kubernetes' own volume object changed for it. */
  wakeVolume(name: string): void {
    this.#parts.volumeQueue.add(name);
  }

  /**
   * Resolves once the records that earlier processes left are open intents of this one. Until then what their
   * volumes are created from must stay. Never rejects.
   */
  get loaded(): Promise<undefined> {
    return this.#loaded.promise;
  }

  /** The plans of the volumes that are recorded and may be in progress: what these are created from is in use. */
  *openPlans(): Generator<Plan> {
    for (const { record, state } of this.#parts.intents.list()) if (needsSource(state)) yield record.plan;
  }

  /**
   * The backend is back after an outage, or was restarted: claims and volumes whose last attempt failed are tried again
   * within a second, infeasible ones too, and their failures so far no longer lengthen the back-off. An object
   * that reached a failure threshold still waits until it changes. Safe to repeat.
   */
  retryFailed(): void {
    this.#parts.infeasibleClaims.clear();
    this.#parts.claimQueue.retrySoon(retrySpreadMs);
    this.#parts.recovery?.revokeQueue.keys.retrySoon(retrySpreadMs);
    this.#parts.volumeQueue.retrySoon(retrySpreadMs);
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
    using aborting = joinSignals([abort, background.signal], { clock: this.#parts.clock });
    const abandon = (): void => this.#abort.abort(aborting.signal.reason);
    aborting.signal.addEventListener('abort', abandon, { once: true });
    if (aborting.signal.aborted) abandon();
    using ending = joinSignals([stop, aborting.signal], { clock: this.#parts.clock });
    background.start((signal) => this.#parts.store.run(signal));
    if (this.#parts.recovery !== undefined) {
      background.start((signal) => this.#parts.journal.run(signal));
      background.start((signal) => this.#parts.intents.upkeep.run(signal));
    }
    if (this.#options.informers === undefined) {
      const { claims, volumes, classes } = this.#parts.informers;
      for (const informer of [claims, volumes, classes]) background.start((signal) => informer.run(signal));
    }
    const registrations = this.#parts.watchHandlers.register();
    try {
      const ready = { ...registrations };
      await waitForSync(ready, { signal: ending.signal, clock: this.#parts.clock, logger: this.#parts.logger });
      const started = { component: this.component, attempts: this.#recording() };
      this.#parts.logger.info(started, 'Started provisioner controller');
      if (this.#parts.recovery !== undefined) await this.#loadIntents(ending.signal, background);
      this.#loaded.resolve(undefined);
      await this.#work(ending.signal, aborting.signal);
      await untilAborted(this.#parts.store.settled(), aborting.signal);
      this.#parts.intents.upkeep.noteWaits();
      await this.#parts.journal.flush(aborting.signal);
    } catch (error) {
      if (!ending.signal.aborted) throw error;
    } finally {
      for (const registration of Object.values(registrations)) registration.remove();
      this.#parts.stopTraces();
      await this.#recordWaits();
      background.abort(new Error('the provision controller has ended'));
      await background.ended().finally(() => this.#parts.ownRecorder[Symbol.asyncDispose]());
      this.#parts.logger.info({ component: this.component }, 'Stopped provisioner controller');
    }
  }

  /** Whether the volumes of a crashed process are found again, and if not, why: for the log. */
  #recording(): string {
    if (this.#parts.recovery === undefined) return 'not recorded: the provisioner is not Recoverable';
    return this.#options.intentJournal === undefined ? 'not recorded: there is no intent journal' : 'recorded';
  }

  /** Records that aborted requests may still be carried out. A process that has lost its lease cannot record that. */
  async #recordWaits(): Promise<void> {
    if (!this.#parts.intents.upkeep.noteWaits()) return;
    using limit = joinSignals([], { clock: this.#parts.clock, timeoutMs: lastWriteMs });
    await this.#parts.journal.flush(limit.signal);
  }

  /** The volumes that earlier processes have begun come first. */
  async #loadIntents(signal: AbortSignal, background: TaskGroup): Promise<void> {
    const { provisioner } = this.#options;
    await this.#parts.intents.load(
      {
        changed: (uid) => this.#parts.claimSyncer.enqueue(uid),
        lost: ({ record: { claim, volume } }) => {
          this.#parts.recovery?.recentlyServedClaims.add(claim.uid); // by the other process, which the cache may not show yet
          this.#parts.store.abandon(volume.name).catch(() => undefined); // it never rejects
        },
        discarded: ({ record }) => {
          if (!isRecoverable(provisioner)) return;
          background.start(async (ending) => {
            try {
              await provisioner.release?.(record.plan, { signal: ending });
            } catch (error) {
              const { namespace, name } = record.claim;
              this.#parts.logger.error(
                { err: error, claim: `${namespace}/${name}` },
                'A discarded record was not released',
              );
            }
          });
        },
        drainEnded: () => this.#parts.claimQueue.retrySoon(retrySpreadMs),
        fenced: (error) => background.start(() => Promise.reject(error)),
        nameFree: (name) => this.#parts.waits.changed(`name/${name}`),
      },
      signal,
    );
  }

  async #work(stop: AbortSignal, abort: AbortSignal): Promise<void> {
    const { workers = defaultWorkers, failedProvisionThreshold = 15, failedDeleteThreshold = 15 } = this.#options;
    const { provisionTimeoutMs = 0, deletionTimeoutMs = 0 } = this.#options;
    const { claimSyncer, volumeSyncer, volumeQueue, clock, logger } = this.#parts;
    const claimLimits = { workers, failureThreshold: failedProvisionThreshold, timeoutMs: provisionTimeoutMs };
    const queues = new TaskGroup(stop);
    queues.start((ending) => claimSyncer.run({ stop: ending, abort, ...claimLimits }));
    queues.start((ending) =>
      runWorkers({
        stop: ending,
        abort,
        what: 'volume',
        queue: volumeQueue,
        count: workers,
        sync: (name, signal) => volumeSyncer.sync(name, signal),
        failureThreshold: failedDeleteThreshold,
        timeoutMs: deletionTimeoutMs,
        clock,
        logger,
      }),
    );
    if (this.#parts.recovery !== undefined) {
      const { revoker } = this.#parts.recovery;
      queues.start((ending) => revoker.run({ stop: ending, abort, claimWorkers: workers }));
    }
    await queues.ended();
  }
}
