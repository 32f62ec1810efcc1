/** Saves new volumes to the API server: once while the worker waits, then in the background until it succeeds. */
import { TaskGroup } from '../../base/task-group.ts';
import type { Lister } from '../../kube/cache/store.ts';
import {
  ApiError,
  ConflictError,
  ForbiddenError,
  isRefusal,
  NotFoundError,
  TooManyRequestsError,
} from '../../kube/client/api-error.ts';
import { objectKey } from '../../kube/kube-object.ts';
import { ExponentialLimiter } from '../../kube/queue/rate-limiter.ts';
import type { WorkQueue } from '../../kube/queue/work-queue.ts';
import { uidIndex } from '../cache/informers.ts';
import { claimReference, claimUid } from '../claim-fields.ts';
import { causeAnnotation, failedReason } from '../event-reasons.ts';
import { VolumeAbandonedError } from '../intents/intent-index.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../objects.ts';
import type { Environment } from '../provision-controller-options.ts';
import { reportSuccess, reportTaken, saveFailure, type SaveParts, savePersistentVolume } from './save-volume.ts';
import type { UnwantedStorage } from './storage-holders.ts';
import { ClassDroppedError, storageName, VolumeTakenError } from './stored-volume.ts';

/** Workers of the store, whatever the number of the controller's own. */
const storeWorkers = 4;
/** Pauses between the tries of a volume that the API server rejects for its content: a policy may change at any time. */
const refusedPauses = { baseMs: 1000, maxMs: 5 * 60_000 } as const;
/** Pauses without the permission to create volumes. */
const forbiddenPauses = { baseMs: 100, maxMs: 60_000 } as const;
/** A server that has just started forbids everything until it has read the roles: the first tries, 3 s, are attributed to that. */
const passingTries = 5;
/** An API server that is overloaded or away is recorded on the claim after so many tries, 40 s. */
const awayTries = 13;

interface VolumeStoreOptions extends Omit<SaveParts, keyof Environment> {
  queue: WorkQueue;
  claims: Pick<Lister<PersistentVolumeClaim>, 'byIndex'>;
  /** Undefined for a `Recoverable` provisioner, whose revoker deletes what no claim wants. */
  unwanted: Pick<UnwantedStorage, 'delete'> | undefined;
}

/**
 * A volume that cannot be saved at once counts as provisioned, and goes on being saved in the background. Transient failures are retried
 * with back-off; others rarely: they are recorded on the claim and do not delay a shutdown. Storage is never deleted because its volume
 * cannot be saved, but where its claim is gone and the API server has rejected every request.
 */
export class VolumeStore {
  readonly #options: Environment & VolumeStoreOptions;
  readonly #unsaved = new Map<string, PersistentVolume>();
  /** By name: how many requests that create the volume have had no response that rules out that they are carried out. */
  readonly #unclear = new Map<string, number>();
  /** Attempts under way in the background, by name; resolved with whether the volume was saved. Never rejected. */
  readonly #saving = new Map<string, Promise<boolean>>();
  /** Names of unsaved volumes that are tried rarely, with whether the missing permission is why. */
  readonly #retriedRarely = new Map<string, 'forbidden' | 'refused'>();
  /** Count how often a volume was forbidden, or refused, in a row. */
  readonly #forbidden = new ExponentialLimiter(forbiddenPauses);
  readonly #refused = new ExponentialLimiter(refusedPauses);
  #waiters: (() => void)[] = [];

  constructor(environment: Environment, options: VolumeStoreOptions) {
    this.#options = { ...environment, ...options };
  }

  /**
   * Saves a completed volume; that of an earlier attempt, for the same claim and of the same storage, counts as saved. Resolves, too, once
   * it is to be saved in the background. Safe to repeat.
   *
   * @returns why no retry would save it; undefined: it is saved, or will be.
   */
  async save(
    claim: PersistentVolumeClaim,
    volume: PersistentVolume,
  ): Promise<VolumeTakenError | VolumeAbandonedError | undefined> {
    const { name } = volume.metadata;
    try {
      await this.#send(volume);
    } catch (error) {
      if (error instanceof VolumeTakenError || error instanceof VolumeAbandonedError) {
        if (!this.#unsaved.has(name)) this.#unclear.delete(name);
        if (error instanceof VolumeTakenError) reportTaken(this.#options, claim, error);
        return error;
      }
      const fields = this.#logFields(volume, error);
      // after an abort `run` logs what was not saved
      if (!this.#isAborted)
        this.#options.logger.error(fields, 'The volume could not be saved, trying again in the background');
      this.#unsaved.set(name, volume);
      if (!this.#retryRarely(volume, error)) this.#options.queue.add(name);
      return undefined;
    }
    this.#settleAndReportSuccess(volume);
    return undefined;
  }

  /** Whether a volume of this name waits to be saved in the background. */
  isUnsaved(name: string): boolean {
    return this.#unsaved.has(name);
  }

  /**
   * Gives up a volume that waits to be saved in the background. Safe to repeat.
   *
   * @returns `saved` when that happened meanwhile.
   */
  async abandon(name: string): Promise<'saved' | 'abandoned'> {
    const volume = this.#unsaved.get(name);
    if (volume !== undefined) this.#settle(volume);
    this.#options.queue.forget(name);
    return (await this.#saving.get(name)) === true ? 'saved' : 'abandoned';
  }

  /** Works in the background until the signal aborts; then logs what is unsaved, with the storage that it names. */
  async run(signal: AbortSignal): Promise<void> {
    const { queue, logger } = this.#options;
    const workers = new TaskGroup(signal);
    const stop = (): void => queue.shutDown();
    workers.signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    for (let number = 0; number < storeWorkers; number++) workers.start((ending) => this.#work(ending));
    await workers.ended();
    for (const [name, volume] of this.#unsaved) {
      const { namespace = '', name: claim = '' } = volume.spec.claimRef ?? {};
      const fields = { volume: name, handle: storageName(volume), claim: `${namespace}/${claim}` };
      logger.error(fields, 'Ended before a volume could be saved');
    }
  }

  /**
   * Resolves once nothing waits to be saved any more, but for what is tried rarely, and no attempt is under way. What is forbidden is tried
   * once more: often the permission is granted before the process is restarted.
   */
  async settled(): Promise<void> {
    for (const [name, why] of this.#retriedRarely) {
      if (why !== 'forbidden') continue;
      this.#retriedRarely.delete(name);
      this.#options.queue.add(name);
    }
    if (!this.#isSettled) await new Promise<void>((resolve) => this.#waiters.push(resolve));
    await Promise.all(this.#saving.values()); // a volume that is retried rarely may be under way just now
  }

  async #work(signal: AbortSignal): Promise<void> {
    const { queue, logger } = this.#options;
    for (let name = await queue.get(); name !== undefined; name = await queue.get()) {
      const volume = this.#unsaved.get(name);
      try {
        if (volume !== undefined && !signal.aborted) await this.#deleteOrSave(volume);
        else queue.forget(name);
      } catch (error) {
        if (this.#unsaved.get(name) !== volume) continue; // abandoned
        const reported = error instanceof ForbiddenError && !error.isAdmission; // once a minute, with the rule
        const fields = volume === undefined ? { err: error, volume: name } : this.#logFields(volume, error);
        if (!this.#isAborted)
          logger[reported ? 'debug' : 'error'](fields, 'The volume could not be saved, trying again');
        if (volume !== undefined && error instanceof VolumeTakenError) this.#dropTaken(volume, error);
        else if (volume !== undefined && error instanceof VolumeAbandonedError) this.#drop(volume);
        else if (volume === undefined || !this.#retryRarely(volume, error)) queue.addRateLimited(name);
      } finally {
        queue.done(name);
      }
    }
  }

  async #deleteOrSave(volume: PersistentVolume): Promise<void> {
    const { name } = volume.metadata;
    if (await this.#isUnwanted(volume)) return;
    await this.#save(volume);
    this.#settleAndReportSuccess(volume);
    this.#options.queue.forget(name);
  }

  /**
   * Deletes the storage if nobody wants it any more and it certainly has no PersistentVolume. If that fails it is tried again, rarely.
   *
   * @returns whether nothing is to be saved.
   */
  async #isUnwanted(volume: PersistentVolume): Promise<boolean> {
    const { unwanted, queue, logger } = this.#options;
    const { name } = volume.metadata;
    if (unwanted === undefined || this.#unclear.has(name) || this.#claimOf(volume) !== undefined) return false;
    try {
      if (!(await unwanted.delete(volume, this.#options.abort))) return false;
    } catch (error) {
      if (this.#unsaved.get(name) !== volume) return true;
      const fields = { err: error, volume: name, handle: storageName(volume) };
      if (!this.#isAborted)
        logger.error(fields, 'The storage of a volume that could not be saved is not deleted yet, trying again');
      this.#setRetriedRarely(name, 'refused');
      this.#retryAfter(name, this.#refused.when(name));
      return true;
    }
    if (this.#unsaved.get(name) === volume) this.#settle(volume);
    queue.forget(name);
    return true;
  }

  async #save(volume: PersistentVolume): Promise<void> {
    const saving = this.#send(volume);
    const { name } = volume.metadata;
    const known = saving.then(
      () => true,
      () => false,
    );
    this.#saving.set(name, known);
    try {
      await saving;
    } finally {
      this.#saving.delete(name);
    }
  }

  /** Sends the volume once, and counts requests that may be carried out without a response. */
  async #send(volume: PersistentVolume): Promise<void> {
    const { name } = volume.metadata;
    const count = (change: 1 | -1): void => {
      const unclear = (this.#unclear.get(name) ?? 0) + change;
      if (unclear > 0) this.#unclear.set(name, unclear);
      else this.#unclear.delete(name);
    };
    await savePersistentVolume(this.#options, volume, {
      signal: this.#options.abort,
      onSend: () => count(1),
      onRejected: () => count(-1),
    });
  }

  /**
   * Retries a permanent failure rarely, and records it on the claim. What may be transient is recorded once it lasts.
   *
   * @returns false for every other failure.
   */
  #retryRarely(volume: PersistentVolume, error: unknown): boolean {
    const { name } = volume.metadata;
    if (error instanceof ForbiddenError) {
      const pauseMs = this.#forbidden.when(name);
      if (this.#forbidden.failures(name) > passingTries) {
        this.#reportFailure(volume, error, { howOften: 'every minute' });
        this.#setRetriedRarely(name, 'forbidden');
      }
      this.#retryAfter(name, pauseMs);
      return true;
    }
    this.#forbidden.forget(name);
    if (!isRefusal(error)) {
      this.#refused.forget(name);
      this.#retriedRarely.delete(name);
      const tries = isReportedSoon(error) || error instanceof ClassDroppedError ? passingTries : awayTries;
      const isRecorded = this.#options.queue.failures(name) >= tries;
      this.#reportFailure(volume, error as Error, { howOften: 'until it succeeds', isRecorded });
      return false;
    }
    const pauseMs = this.#refused.when(name);
    this.#reportFailure(volume, error, { howOften: 'at least every 5 minutes' });
    this.#setRetriedRarely(name, 'refused');
    this.#retryAfter(name, pauseMs);
    return true;
  }

  /** @param how.isRecorded - whether an event is recorded on the claim as well. */
  #reportFailure(volume: PersistentVolume, error: Error, how: { howOften: string; isRecorded?: boolean }): void {
    const { howOften, isRecorded = true } = how;
    const { recorder, meaningOf, lastErrors } = this.#options;
    const claim = this.#claimOf(volume);
    if (claim === undefined) return;
    const message = `${saveFailure(claim, error)}. The volume is kept at the storage, saving it is tried again ${howOften}.`;
    lastErrors?.add(claimUid(claim), new Error(message, { cause: error }));
    if (!isRecorded) return;
    recorder.event(claimReference(claim), 'Warning', failedReason, message, causeAnnotation(message, error, meaningOf));
  }

  #logFields(volume: PersistentVolume, error: unknown): object {
    const claim = this.#claimOf(volume);
    const fields = { err: error, volume: volume.metadata.name };
    if (claim === undefined) return fields;
    const text = saveFailure(claim, error instanceof Error ? error : new Error(String(error)));
    return { claim: objectKey(claim), ...this.#options.meaningOf?.(text, error), ...fields };
  }

  #setRetriedRarely(name: string, why: 'forbidden' | 'refused'): void {
    this.#retriedRarely.set(name, why);
    this.#wakeWaiters();
  }

  #retryAfter(name: string, pauseMs: number): void {
    this.#options.queue.forget(name);
    this.#options.queue.addAfter(name, pauseMs);
  }

  #settleAndReportSuccess(volume: PersistentVolume): void {
    this.#settle(volume);
    const claim = this.#claimOf(volume);
    if (claim !== undefined) reportSuccess(this.#options, claim, volume);
  }

  /** No retry will save it: the next attempt of its claim finds the same volume and fails there. */
  #dropTaken(volume: PersistentVolume, error: VolumeTakenError): void {
    const claim = this.#claimOf(volume);
    this.#drop(volume);
    if (claim !== undefined) reportTaken(this.#options, claim, error);
  }

  /** It is not tried again; its claim is synced again. */
  #drop(volume: PersistentVolume): void {
    this.#options.queue.forget(volume.metadata.name);
    this.#settle(volume);
    this.#options.saveHooks?.dropped(volume);
  }

  #settle({ metadata: { name } }: PersistentVolume): void {
    this.#unsaved.delete(name);
    this.#unclear.delete(name);
    this.#retriedRarely.delete(name);
    this.#forbidden.forget(name);
    this.#refused.forget(name);
    this.#wakeWaiters();
  }

  get #isAborted(): boolean {
    return this.#options.abort.aborted;
  }

  get #isSettled(): boolean {
    return this.#unsaved.size === this.#retriedRarely.size;
  }

  #wakeWaiters(): void {
    if (this.#isSettled) for (const resolve of this.#waiters.splice(0)) resolve();
  }

  /** The claim that a volume was created for; undefined once it is gone. */
  #claimOf({ spec }: PersistentVolume): PersistentVolumeClaim | undefined {
    const [claim, ...others] = this.#options.claims.byIndex(uidIndex, spec.claimRef?.uid ?? '');
    return others.length === 0 ? claim : undefined;
  }
}

/** The server, or a proxy before it, is overloaded or away. */
const unavailable: ReadonlySet<number> = new Set([503, 504]);

/**
 * Whether a write failed for a reason that users should soon read in an event, such as a missing permission, an admission
 * policy, a webhook that does not respond, or another failure of the API server (500); not an overload, a conflict, or an object that is gone.
 */
function isReportedSoon(error: unknown): error is ApiError {
  if (!(error instanceof ApiError) || unavailable.has(error.code)) return false;
  const isConflict = error instanceof ConflictError && error.request.verb !== 'create'; // a new object conflicts with none
  return !(isConflict || error instanceof NotFoundError || error instanceof TooManyRequestsError);
}
