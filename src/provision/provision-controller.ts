/**
 * The storage-agnostic controller: it watches claims, volumes and classes, asks a `Provisioner` for storage where a
 * claim wants some, saves the volumes, and has storage deleted when its volume is released.
 */
import { hostname } from 'node:os';
import { v4 as uuid } from 'uuid';
import { joinSignals, untilAborted } from '../base/abort.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { TaskGroup } from '../base/task-group.ts';
import { warningLogger } from '../base/text-logger.ts';
import { EventRecorder } from '../kube/event-recorder.ts';
import { Tombstone } from '../kube/informer.ts';
import { KubeClient, maxFieldManagerLength } from '../kube/kube-client.ts';
import { BucketLimiter, ExponentialLimiter, MaxOfLimiter, type RateLimiter } from '../kube/rate-limiter.ts';
import type { Recorder } from '../kube/recorder.ts';
import type { Transport } from '../kube/transport.ts';
import { waitForSync } from '../kube/wait-for-sync.ts';
import { WorkQueue, type WorkQueueMetrics } from '../kube/work-queue.ts';
import { BlockingVolumeStore } from './blocking-volume-store.ts';
import { claimUid } from './claim-facts.ts';
import { type ControllerMetrics, noMetrics } from './controller-metrics.ts';
import type { PersistentVolume, PersistentVolumeClaim } from './objects.ts';
import { type ProvisionInformers, provisionInformers, uidIndex } from './informers.ts';
import { claimNeedsSync, volumeNeedsSync } from './needs-sync.ts';
import type { Provisioner } from './provisioner.ts';
import { QueueVolumeStore } from './queue-volume-store.ts';
import { RecentlySaved } from './recently-saved.ts';
import { runWorkers } from './run-workers.ts';
import { SlowSet } from './slow-set.ts';
import { ClaimSyncer } from './sync-claim.ts';
import { VolumeSyncer } from './sync-volume.ts';
import type { VolumeStore } from './volume-store.ts';

/** How new volumes are saved. */
export type SavePolicy =
  | {
      /** A few tries while the worker waits; when they fail the storage is deleted again. The default. */
      kind: 'blocking';
      /** Default 5. */
      attempts?: number;
      /** Milliseconds between tries. Default 10,000. */
      pauseMs?: number;
    }
  | {
      /** Tries for ever in the background; storage is never deleted for want of a saved volume. */
      kind: 'queue';
      limiter: RateLimiter;
    };

/** What a controller works with; only the first lines are needed, the rest has defaults. */
export interface ProvisionControllerOptions {
  /** The name that claims and classes ask for. */
  provisionerName: string;
  /** Further names that mean us, such as the in-tree plugin a driver replaces. Default none. */
  additionalProvisionerNames?: readonly string[];
  provisioner: Provisioner;
  transport: Transport;
  /** The program that the API server records as the author of writes. Default: the provisioner's name. */
  fieldManager?: string;
  /** Who reports events. Default: a recorder of the controller's own, `<provisioner>_<host>_<uuid>`. */
  recorder?: Recorder;
  /** Caches to share with others, run by whoever made them. Default: the controller's own. */
  informers?: ProvisionInformers;
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
  save?: SavePolicy;
  /** Hold volumes with a finalizer until their storage is gone. Default false. */
  addFinalizer?: boolean;
  /** Name of a claim's volume; must be the same at every call. Default `pvc-<claim UID>`. */
  volumeName?: (claim: PersistentVolumeClaim) => string;
  /** Claims and volumes that are not settled are queued again after this many milliseconds. Default 900,000. */
  resyncMs?: number;
  metrics?: ControllerMetrics;
  /** Metrics of the queues `claims`, `volumes` and `unsavedpvs`. */
  queueMetrics?: (queue: 'claims' | 'volumes' | 'unsavedpvs') => WorkQueueMetrics;
  clock?: Clock;
  /** Default: warnings and errors, to standard error. */
  logger?: Logger;
  /** Makes writes into cached objects throw: for development and tests. Default false. */
  freezeCache?: boolean;
}

/** How long a run lasts. */
export interface RunOptions {
  /** Take no new work; what is under way is finished. */
  stop: AbortSignal;
  /** Take no new work, and abandon what is under way, too: such as a leader election's `lost`. Default: never. */
  abort?: AbortSignal;
}

const resyncDefaultMs = 900_000;

/** Thousands of claims that waited for a backend must not fall on it all at once. */
const retrySpreadMs = 1000;

/**
 * Watches claims, volumes and classes; has storage made for the claims that ask for `provisionerName`, saves the volumes
 * and has storage deleted when its volume is released with policy Delete (Kubernetes page "Persistent Volumes",
 * "Lifecycle of a volume and claim"). Nothing happens before `run`.
 */
export class ProvisionController {
  /** Who reports events: `<provisioner>_<host>_<uuid>`, new in each process. */
  readonly component: string;
  readonly #options: ProvisionControllerOptions;
  readonly #informers: ProvisionInformers;
  readonly #isKnownProvisioner: (name: string) => boolean;
  readonly #ownRecorder: EventRecorder;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #claimQueue: WorkQueue;
  readonly #volumeQueue: WorkQueue;
  readonly #store: VolumeStore;
  readonly #slowSet: SlowSet;
  readonly #claimSyncer: ClaimSyncer;
  readonly #volumeSyncer: VolumeSyncer;
  readonly #recentlySaved: RecentlySaved;
  /** Of the run; before it nothing is under way. */
  #abort = new AbortController().signal;
  #hasRun = false;

  constructor(options: ProvisionControllerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#logger = options.logger ?? warningLogger;
    this.component = `${options.provisionerName}_${hostname()}_${uuid()}`;
    const names = new Set([options.provisionerName, ...(options.additionalProvisionerNames ?? [])]);
    const isKnownProvisioner = (name: string): boolean => names.has(name);
    this.#isKnownProvisioner = isKnownProvisioner;
    const fieldManager = options.fieldManager ?? options.provisionerName.slice(0, maxFieldManagerLength);
    const client = new KubeClient({ transport: options.transport, fieldManager });
    this.#informers =
      options.informers ??
      provisionInformers({
        transport: options.transport,
        isKnownProvisioner,
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
    this.#recentlySaved = new RecentlySaved({ clock: this.#clock });
    const parts = {
      provisioner: options.provisioner,
      isKnownProvisioner,
      client,
      recorder,
      metrics: options.metrics ?? noMetrics,
      addFinalizer: options.addFinalizer ?? false,
      clock: this.#clock,
      logger: this.#logger,
      volumes: this.#informers.volumes,
    };
    this.#store = this.#makeStore({ client, recorder });
    this.#slowSet = new SlowSet({ clock: this.#clock });
    this.#volumeSyncer = new VolumeSyncer(parts);
    this.#claimSyncer = new ClaimSyncer({
      ...parts,
      provisionerName: options.provisionerName,
      claims: this.#informers.claims,
      classes: this.#informers.classes,
      store: this.#store,
      slowSet: this.#slowSet,
      volumeName: options.volumeName ?? ((claim) => `pvc-${claimUid(claim)}`),
      recentlySaved: this.#recentlySaved,
    });
  }

  /** Claims and volumes that wait or are being worked on: for status pages. */
  get queueLengths(): { claims: number; volumes: number } {
    return { claims: this.#claimQueue.length, volumes: this.#volumeQueue.length };
  }

  /**
   * Looks at a claim again now: something outside the claim changed for it, such as an answer that its provisioner was
   * waiting for. A provisioner that would have to wait long in `shouldProvision` answers no, which frees the worker, and
   * has the claim woken later.
   *
   * @param uid - of the claim; one that is gone, or has its volume, is left alone.
   */
  wakeClaim(uid: string): void {
    this.#claimQueue.add(uid);
  }

  /** Looks at a volume again now: something outside Kubernetes' own volume object changed for it. */
  wakeVolume(name: string): void {
    this.#volumeQueue.add(name);
  }

  /**
   * The backend is back after an outage, or was restarted: claims and volumes whose last attempt failed are tried again
   * within a second, infeasible ones too, and their failures so far no longer lengthen the back-off. What was given up
   * at a threshold still waits until it changes. Safe to repeat.
   */
  retryFailed(): void {
    this.#slowSet.clear();
    this.#claimQueue.retrySoon(retrySpreadMs);
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
    this.#abort = abort;
    const background = new TaskGroup(); // caches and saves end last: what is under way needs them
    using ending = joinSignals([stop, abort, background.signal], { clock: this.#clock });
    background.start((signal) => this.#store.run(signal));
    if (this.#options.informers === undefined) {
      const { claims, volumes, classes } = this.#informers;
      for (const informer of [claims, volumes, classes]) background.start((signal) => informer.run(signal));
    }
    const registrations = this.#addHandlers();
    try {
      const ready = { ...registrations, classes: this.#informers.classes };
      await waitForSync(ready, { signal: ending.signal, clock: this.#clock, logger: this.#logger });
      this.#logger.info({ component: this.component }, 'Started provisioner controller');
      await this.#work(ending.signal, abort);
      await untilAborted(this.#store.settled(), abort);
    } catch (error) {
      if (!ending.signal.aborted) throw error;
    } finally {
      for (const registration of Object.values(registrations)) registration.remove();
      background.abort(new Error('the provision controller has ended'));
      await background.ended().finally(() => this.#ownRecorder[Symbol.asyncDispose]());
      this.#logger.info({ component: this.component }, 'Stopped provisioner controller');
    }
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
          this.#settleClaim(uid);
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
    await queues.ended();
  }

  #addHandlers() {
    const resyncMs = this.#options.resyncMs ?? resyncDefaultMs;
    return {
      claims: this.#informers.claims.addHandler(
        {
          onAdd: (claim) => this.#onClaim(claim),
          onUpdate: (old, claim) => {
            this.#onClaim(claim, old);
            if (claimUid(old) !== claimUid(claim)) this.#settleClaim(claimUid(old)); // deleted and made anew
          },
          onDelete: (gone) => this.#settleClaim(claimUid(gone instanceof Tombstone ? gone.object : gone)),
        },
        { resyncMs },
      ),
      volumes: this.#informers.volumes.addHandler(
        {
          onAdd: (volume) => this.#onVolume(volume),
          onUpdate: (old, volume) => this.#onVolume(volume, old),
          onDelete: (gone) => {
            const { name } = (gone instanceof Tombstone ? gone.object : gone).metadata;
            this.#recentlySaved.delete(name);
            this.#volumeQueue.forget(name);
            this.#volumeSyncer.forget(name);
          },
        },
        { resyncMs },
      ),
    };
  }

  /** @param old - the same object at a resync; undefined: the claim is new to us. */
  #onClaim(claim: PersistentVolumeClaim, old?: PersistentVolumeClaim): void {
    const uid = claimUid(claim);
    if (claimNeedsSync(claim, this.#isKnownProvisioner) || this.#claimSyncer.isInProgress(uid)) {
      this.#claimQueue.add(uid);
    } else if (old !== undefined && old !== claim) {
      this.#claimQueue.forget(uid);
      this.#settleClaim(uid);
    }
  }

  /** The claim changed: where nothing more is to be done for it nothing is kept of it either. */
  #settleClaim(uid: string): void {
    if (this.#claimSyncer.settle(uid)) this.#claimQueue.forget(uid);
  }

  /** @param old - as for a claim. */
  #onVolume(volume: PersistentVolume, old?: PersistentVolume): void {
    const { name } = volume.metadata;
    this.#recentlySaved.delete(name);
    const addFinalizer = this.#options.addFinalizer ?? false;
    if (volumeNeedsSync(volume, { isKnownProvisioner: this.#isKnownProvisioner, addFinalizer })) {
      this.#volumeQueue.add(name);
    } else if (old !== undefined && old !== volume) {
      this.#volumeQueue.forget(name);
    }
  }

  #makeStore({ client, recorder }: { client: KubeClient; recorder: Recorder }): VolumeStore {
    const { save = { kind: 'blocking' }, provisioner } = this.#options;
    const parts = {
      client,
      recorder,
      logger: this.#logger,
      onSaved: (volume: PersistentVolume): void => {
        if (this.#informers.volumes.get(volume.metadata.name) === undefined)
          this.#recentlySaved.add(volume.metadata.name);
      },
    };
    if (save.kind === 'queue') {
      return new QueueVolumeStore({
        ...parts,
        queue: this.#queue('unsavedpvs', save.limiter),
        claimsByUid: (uid) => this.#informers.claims.byIndex(uidIndex, uid),
      });
    }
    const { attempts = 5, pauseMs = 10_000 } = save;
    return new BlockingVolumeStore({
      ...parts,
      clock: this.#clock,
      retries: { attempts, pauseMs: () => pauseMs },
      abort: () => this.#abort,
      deleteStorage: (volume, signal) => provisioner.delete(volume, { signal }),
    });
  }

  #queue(name: 'claims' | 'volumes' | 'unsavedpvs', limiter: RateLimiter): WorkQueue {
    return new WorkQueue({ limiter, clock: this.#clock, metrics: this.#options.queueMetrics?.(name) });
  }
}

function defaultLimiter(clock: Clock): RateLimiter {
  return new MaxOfLimiter([
    new ExponentialLimiter({ baseMs: 15_000, maxMs: 1_000_000 }),
    new BucketLimiter({ qps: 10, burst: 100, clock }),
  ]);
}
