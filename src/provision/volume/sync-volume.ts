/** The sync of a volume: keep its finalizer right, and delete its storage once it is released. */
import { allOf, type Moment, momentOf, passedMs, type Permit, whenPermitted, withRecheck } from '../../base/permit.ts';
import type { Informer } from '../../kube/cache/informer.ts';
import { ConflictError, NotFoundError } from '../../kube/client/api-error.ts';
import { failedRequestOf, isRejection } from '../../kube/client/request-failure.ts';
import type { ControllerMetrics } from '../controller-metrics.ts';
import { causeAnnotation, deletionPostponedReason, deletionWaitingReason } from '../event-reasons.ts';
import type { Intents } from '../intents/intents.ts';
import type { LastErrors } from '../last-errors.ts';
import { type PersistentVolume, persistentVolumes, volumeFinalizer } from '../objects.ts';
import type { Environment, ProvisionObserver } from '../provision-controller-options.ts';
import { IgnoredError, type Provisioner, VolumeInUseError } from '../provisioner.ts';
import type { Recoverable } from '../recoverable.ts';
import type { SyncEnd } from '../run-workers.ts';
import type { DeletionTraces } from '../sync-traces.ts';
import {
  contradictionOf,
  contradictionText,
  type FinalizerChange,
  finalizerUpkeep,
  isLeftUndone,
  ownerOf,
  removeFinalizer,
  shouldDelete,
  type VolumeOwnership,
  volumeReference,
} from '../volume-fields.ts';
import { CacheFreshness, maxStalenessMs, type QuietVolumes, type SharedStorage } from './deletion-holds.ts';
import { storedVolume } from './stored-volume.ts';

interface VolumeSyncerOptions extends VolumeOwnership {
  provisioner: Pick<Provisioner, 'delete' | 'shouldDelete'> & Pick<Recoverable, 'isElsewhere'>;
  observer: Required<ProvisionObserver>;
  volumes: Pick<Informer<PersistentVolume>, 'get' | 'isFollowing'>;
  metrics: ControllerMetrics;
  addFinalizer: boolean;
  quiet: Pick<QuietVolumes, 'mustWait' | 'forget'>;
  intents: Pick<Intents, 'lateCallsMs'>;
  /** Undefined: the provisioner has no `storageKeys`, or handles shared storage itself. */
  sharedStorage: Pick<SharedStorage, 'mustWait' | 'forget'> | undefined;
  /** Of volumes, by name; undefined: they are not kept. */
  lastErrors: Pick<LastErrors, 'add' | 'delete'> | undefined;
  /** Undefined: nothing is traced. */
  traces: DeletionTraces | undefined;
}

/**
 * What a deletion ended with.
 *
 * - `ignored`: the provisioner says that the volume is not for this instance.
 * - `postponed`: the storage cannot be deleted yet, which is no failure.
 */
type DeletionEnd =
  | { readonly kind: 'deleted' | 'ignored'; readonly error?: undefined }
  | { readonly kind: 'postponed' | 'failed'; readonly error: unknown };

const done: SyncEnd = { next: 'change' };

interface DeletionContext {
  /** When the cache was read, or the volume live. */
  seenAt: Moment;
  signal: AbortSignal;
}

export class VolumeSyncer {
  readonly #options: Environment & VolumeSyncerOptions;
  /**
   * Volumes whose storage was deleted and whose object is being deleted, by name. The events of our own DELETE and PATCH
   * requeue them once or twice; without this set their storage would be deleted a second time.
   */
  readonly #deleted = new Map<string, { uid: string; released: boolean }>();
  /** Volumes whose deletion was tried and has failed, by name. */
  readonly #failed = new Set<string>();
  /** UID and text of the last event about each volume that is left as it is, by its name. */
  readonly #left = new Map<string, string>();
  readonly #freshness: CacheFreshness;

  constructor(environment: Environment, options: VolumeSyncerOptions) {
    this.#options = { ...environment, ...options };
    this.#freshness = new CacheFreshness(environment.clock);
  }

  /** A watch event of a volume, of whatever provisioner. */
  volumeEvent(volume: PersistentVolume): void {
    this.#freshness.note(volume);
  }

  /** The cache dropped the volume. */
  forget(name: string): void {
    this.#deleted.delete(name);
    this.#failed.delete(name);
    this.#left.delete(name);
    this.#options.lastErrors?.delete(name);
    this.#options.quiet.forget(name);
    this.#options.sharedStorage?.forget(name);
  }

  /** Reconciles one volume. Safe to repeat at any time. Never rejects. */
  async sync(name: string, signal: AbortSignal): Promise<SyncEnd> {
    const { lastErrors, volumes } = this.#options;
    const end = await this.#sync(name, signal).catch((error: unknown): SyncEnd => ({ next: 'retry', error }));
    if (end.next !== 'retry') lastErrors?.delete(name);
    else if (volumes.get(name) !== undefined) lastErrors?.add(name, end.error); // nothing would remove the error of a volume that is gone
    return end;
  }

  async #sync(name: string, signal: AbortSignal): Promise<SyncEnd> {
    const { volumes, provisioner, addFinalizer, quiet, sharedStorage, clock } = this.#options;
    let seenAt = momentOf(clock);
    const cached = volumes.get(name);
    const owner = cached && ownerOf(cached, this.#options);
    if (cached === undefined || owner === 'others') return done;
    if (owner === 'contradictory') {
      this.#leave(cached);
      return done;
    }
    const deleted = this.#deleted.get(name);
    if (deleted !== undefined && cached.status?.phase === 'Bound') {
      this.#deleted.delete(name); // the API server has been restored from a backup, or the name was used again
    } else if (deleted !== undefined && deleted.uid === cached.metadata.uid) {
      if (deleted.released || cached.metadata.finalizers?.includes(volumeFinalizer) !== true) return done;
      await this.#release(cached, signal); // our finalizer came to the cache only after the deletion
      deleted.released = true;
      return done;
    }
    const volume = await this.#keepFinalizer(cached, signal);
    const guarded = (await provisioner.shouldDelete?.(volume, { signal })) === false;
    if (guarded || !shouldDelete(volume, addFinalizer)) {
      this.#notToBeDeleted(name);
      return done;
    }
    if (quiet.mustWait(volume)) return done;
    if (!this.#isCertain(volume)) {
      if (!(await this.#isLiveToDelete(volume, signal))) return done;
      seenAt = momentOf(clock);
    }
    if ((await sharedStorage?.mustWait(volume, signal)) === true) return done;
    this.#failed.add(name);
    const end = await this.#measured(volume, () =>
      this.#traced(volume, () => this.#delete(volume, { seenAt, signal })),
    );
    if (end.kind === 'postponed' || end.kind === 'failed') return { next: 'retry', error: end.error };
    this.#failed.delete(name);
    return done;
  }

  #notToBeDeleted(name: string): void {
    this.#failed.delete(name);
    this.#options.quiet.forget(name);
    this.#options.sharedStorage?.forget(name);
  }

  /** Leaves a contradictory volume as it is, with an event once for each text. The next change of the volume has it checked again. */
  #leave(volume: PersistentVolume): void {
    const { isKnownProvisioner, addFinalizer, recorder } = this.#options;
    const { name, uid = '' } = volume.metadata;
    this.#notToBeDeleted(name);
    const contradiction = contradictionOf(volume, isKnownProvisioner);
    if (contradiction === undefined || !isLeftUndone(volume, addFinalizer)) return;
    const text = contradictionText(volume, contradiction);
    if (this.#left.get(name) === `${uid} ${text}`) return;
    this.#left.set(name, `${uid} ${text}`);
    recorder.event(volumeReference(volume), 'Warning', deletionWaitingReason, text, { once: true });
  }

  /**
   * Whether the cache is enough to delete the storage: at the first attempt, while it follows the API server and is fresh for this
   * volume. Otherwise the volume is read live: somebody may have set it to Retain, or a restored backup may have a claim that uses it.
   * What another instance has created is not deleted here.
   */
  #isCertain(volume: PersistentVolume): boolean {
    const { volumes, provisioner } = this.#options;
    if (this.#failed.has(volume.metadata.name) || !volumes.isFollowing) return false;
    return provisioner.isElsewhere?.(volume) === true || this.#freshness.isFresh(volume);
  }

  async #isLiveToDelete({ metadata: { name, uid } }: PersistentVolume, signal: AbortSignal): Promise<boolean> {
    const { client, addFinalizer } = this.#options;
    const live = await storedVolume(client, name, signal);
    if (live === undefined || live.metadata.uid !== uid || !shouldDelete(live, addFinalizer)) return false;
    return ownerOf(live, this.#options) === 'ours'; // its annotations may have been corrected meanwhile
  }

  async #keepFinalizer(volume: PersistentVolume, signal: AbortSignal): Promise<PersistentVolume> {
    const change = finalizerUpkeep(volume, this.#options.addFinalizer);
    if (change === undefined) return volume;
    await this.#patchFinalizers(volume, change, signal);
    return { ...volume, metadata: { ...volume.metadata, finalizers: change.finalizers } };
  }

  async #patchFinalizers(volume: PersistentVolume, change: FinalizerChange, signal: AbortSignal): Promise<void> {
    const { name } = volume.metadata;
    try {
      await this.#options.client.patch(
        persistentVolumes,
        { name },
        { type: 'strategic', body: change.patch },
        { signal },
      );
    } catch (error) {
      throw new Error(
        `failed to modify finalizers to [${change.finalizers.join(' ')}] on volume ${name} err: ${(error as Error).message}`,
        { cause: error },
      );
    }
  }

  #traced(volume: PersistentVolume, work: () => Promise<DeletionEnd>): Promise<DeletionEnd> {
    const { traces } = this.#options;
    return traces === undefined ? work() : traces.deletion(volume, work);
  }

  async #measured(volume: PersistentVolume, work: () => Promise<DeletionEnd>): Promise<DeletionEnd> {
    const { metrics, clock } = this.#options;
    const labels = { class: volume.spec.storageClassName ?? '' };
    const startedMs = clock.monotonicMs();
    const end = await work();
    if (end.kind === 'failed') metrics.deleteFailed(labels);
    else if (end.kind !== 'postponed') metrics.deleted(labels, (clock.monotonicMs() - startedMs) / 1000);
    return end;
  }

  /** Checks again what was checked when the volume was seen, if this process was paused since then or a request took long. */
  #deletionPermit(volume: PersistentVolume, { seenAt, signal }: DeletionContext): Permit {
    const { quiet, sharedStorage, clock } = this.#options;
    const read = async (): Promise<void> => {
      const isLive = !quiet.mustWait(volume) && (await this.#isLiveToDelete(volume, signal));
      if (isLive && (await sharedStorage?.mustWait(volume, signal)) !== true) return; // by now the cache has caught up
      throw new Error('the volume has changed since it was read from the cache, or is to be kept for now');
    };
    let freshAt = seenAt;
    const renew = async (): Promise<void> => {
      const beganAt = momentOf(clock);
      await read();
      // it was paused or had to wait: with a low request rate every read waits, so there is no third one
      if (passedMs(beganAt, momentOf(clock)) > maxStalenessMs) await read();
      freshAt = momentOf(clock);
    };
    const recent: Permit = {
      get isValid() {
        return passedMs(freshAt, momentOf(clock)) <= maxStalenessMs;
      },
      renewed: renew,
    };
    const permit = withRecheck(this.#options.permit, renew);
    return permit === undefined ? recent : allOf([permit, recent]);
  }

  /** Storage first, then the object, then the finalizer that held the object until now. */
  async #delete(volume: PersistentVolume, context: DeletionContext): Promise<DeletionEnd> {
    const { provisioner, observer, logger, addFinalizer } = this.#options;
    const { signal } = context;
    const { name, uid, finalizers = [] } = volume.metadata;
    const permit = this.#deletionPermit(volume, context);
    try {
      await whenPermitted(permit, signal, () => provisioner.delete(volume, { signal, permit }));
    } catch (error) {
      if (error instanceof IgnoredError) {
        logger.debug({ volume: name, reason: error.reason }, 'Deletion ignored');
        return { kind: 'ignored' };
      }
      if (error instanceof VolumeInUseError) {
        this.#reportPostponed(volume, error);
        return { kind: 'postponed', error };
      }
      this.#reportFailure(volume, error instanceof Error ? error.message : String(error), error);
      return { kind: 'failed', error };
    }
    observer.onDeleted(volume);
    logger.info({ volume: name }, 'Storage deleted');
    this.#warnOfLateCalls(volume);
    const released = addFinalizer && finalizers.includes(volumeFinalizer);
    try {
      if (!(await this.#deleteObject(volume, signal))) return { kind: 'deleted' };
      if (released) await this.#release(volume, signal);
    } catch (error) {
      this.#reportRejection(volume, error);
      return { kind: 'failed', error };
    }
    if (uid !== undefined) this.#deleted.set(name, { uid, released });
    if (this.#options.volumes.get(name) === undefined) this.#deleted.delete(name); // it was deleted meanwhile
    return { kind: 'deleted' };
  }

  /** It is not deleted a second time: a driver may keep what a volume's own deletion has left on purpose, such as an archive. */
  #warnOfLateCalls({ metadata: { name }, spec: { csi } }: PersistentVolume): void {
    const { intents, clock, logger } = this.#options;
    const lateMs = intents.lateCallsMs(name);
    if (lateMs === 0) return;
    const until = new Date(clock.wallMs() + lateMs).toISOString();
    const text =
      'Storage was deleted while a call that was given up may still create it again: audit shows it then as unexplained';
    logger.warn({ volume: name, handle: csi?.volumeHandle, until }, text);
  }

  /** Transient failures are not recorded: the next attempt usually succeeds. */
  #reportRejection(volume: PersistentVolume, error: unknown): void {
    const failed = failedRequestOf(error);
    if (failed === undefined || !isRejection(failed)) return;
    const message = `The storage is deleted, and the PersistentVolume cannot be: ${(error as Error).message}`;
    this.#reportFailure(volume, message, error);
  }

  #reportPostponed(volume: PersistentVolume, { reason }: VolumeInUseError): void {
    this.#options.recorder.event(volumeReference(volume), 'Normal', deletionPostponedReason, reason, { logged: true });
  }

  #reportFailure(volume: PersistentVolume, message: string, error: unknown): void {
    const { recorder, meaningOf } = this.#options;
    recorder.event(volumeReference(volume), 'Warning', 'VolumeFailedDelete', message, {
      logged: true,
      ...causeAnnotation(message, error, meaningOf),
    });
  }

  /** @returns false where another volume has the name by now: then this one is gone. */
  async #deleteObject({ metadata: { name, uid } }: PersistentVolume, signal: AbortSignal): Promise<boolean> {
    try {
      const preconditions = uid === undefined ? {} : { preconditions: { uid } };
      await this.#options.client.delete(persistentVolumes, { name }, { ...preconditions, signal });
      return true;
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
      const stored = await storedVolume(this.#options.client, name, signal);
      if (stored !== undefined && stored.metadata.uid === uid) throw error; // it was rejected for another reason
      return false;
    }
  }

  async #release({ metadata: { name, uid } }: PersistentVolume, signal: AbortSignal): Promise<void> {
    const { volumes, client } = this.#options;
    const cached = volumes.get(name); // others may have changed the list since
    if (cached === undefined) return;
    // annotated for another provisioner meanwhile: the cache keeps no finalizers of such volumes
    const isOthers = ownerOf(cached, this.#options) === 'others';
    const volume = isOthers ? await storedVolume(client, name, signal) : cached;
    const finalizers = volume?.metadata.finalizers ?? [];
    if (volume === undefined || volume.metadata.uid !== uid || !finalizers.includes(volumeFinalizer)) return;
    try {
      await this.#patchFinalizers(volume, removeFinalizer(finalizers), signal);
    } catch (error) {
      if (!((error as Error).cause instanceof NotFoundError)) throw error;
    }
  }
}
