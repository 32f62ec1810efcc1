import { TaskGroup } from '../../base/task-group.ts';
import { ForbiddenError, isRefusal } from '../../kube/client/api-error.ts';
import { ExponentialLimiter } from '../../kube/queue/rate-limiter.ts';
import type { WorkQueue } from '../../kube/queue/work-queue.ts';
import { objectKey } from '../../kube/kube-object.ts';
import { claimReference, claimUid } from '../claim/claim-fields.ts';
import { failedReason } from '../event-reasons.ts';
import { VolumeAbandonedError } from './volume-abandoned-error.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../objects.ts';
import { causeAnnotation } from '../meaning.ts';
import { isReportedSoon } from './failed-write.ts';
import { ClassDroppedError, VolumeTakenError } from './stored-volume.ts';
import {
  savePersistentVolume,
  reportTaken,
  reportSuccess,
  saveFailure,
  type VolumeStore,
  type VolumeStoreParts,
} from './volume-store.ts';

/** Workers of the queue store, whatever the number of the controller's own. */
const queueWorkers = 4;
/** Pauses between the tries of a volume that the API server rejects for its content: a policy may change at any time. */
const refusedPauses = { baseMs: 1000, maxMs: 5 * 60_000 } as const;
/** Pauses without the permission to create volumes. */
const forbiddenPauses = { baseMs: 100, maxMs: 60_000 } as const;
/** A server that has just started forbids everything until it has read the roles: the first tries, 3 s, are attributed to that. */
const passingTries = 5;
/** An API server that is overloaded or away is recorded on the claim after so many tries, 40 s. */
const awayTries = 13;

/**
 * Tries once while the worker waits, then forever in the background; the claim counts as done at once. Transient
 * failures are retried with back-off; others rarely: they are recorded on the claim and do not delay a shutdown.
 */
export class QueueVolumeStore implements VolumeStore {
  readonly #parts: VolumeStoreParts;
  readonly #queue: WorkQueue;
  readonly #claimsByUid: (uid: string) => PersistentVolumeClaim[];
  readonly #abort: () => AbortSignal;
  readonly #unsaved = new Map<string, PersistentVolume>();
  /** Attempts under way in the background, by name; resolved with whether the volume was saved. Never rejected. */
  readonly #saving = new Map<string, Promise<boolean>>();
  /** Names of unsaved volumes that are tried rarely, with whether the missing permission is why. */
  readonly #retriedRarely = new Map<string, 'forbidden' | 'refused'>();
  /** Count how often a volume was forbidden, or refused, in a row. */
  readonly #forbidden = new ExponentialLimiter(forbiddenPauses);
  readonly #refused = new ExponentialLimiter(refusedPauses);
  #waiters: (() => void)[] = [];

  constructor(
    options: VolumeStoreParts & {
      queue: WorkQueue;
      claimsByUid: (uid: string) => PersistentVolumeClaim[];
      /** Aborts when what is under way is to be abandoned. */
      abort: () => AbortSignal;
    },
  ) {
    this.#parts = options;
    this.#queue = options.queue;
    this.#claimsByUid = options.claimsByUid;
    this.#abort = options.abort;
  }

  async save(claim: PersistentVolumeClaim, volume: PersistentVolume): Promise<void> {
    const { name } = volume.metadata;
    try {
      await savePersistentVolume(this.#parts, volume, this.#abort());
    } catch (error) {
      if (error instanceof VolumeTakenError) throw reportTaken(this.#parts, claim, error);
      if (error instanceof VolumeAbandonedError) throw error;
      const fields = this.#logFields(volume, error);
      // after an abort `run` logs what was not saved
      if (!this.#abort().aborted)
        this.#parts.logger.error(fields, 'The volume could not be saved, trying again in the background');
      this.#unsaved.set(name, volume);
      if (!this.#retryRarely(volume, error)) this.#queue.add(name);
      return;
    }
    this.#settleAndReportSuccess(volume);
  }

  isUnsaved(name: string): boolean {
    return this.#unsaved.has(name);
  }

  async abandon(name: string): Promise<'saved' | 'abandoned'> {
    const volume = this.#unsaved.get(name);
    if (volume !== undefined) this.#settle(volume);
    this.#queue.forget(name);
    return (await this.#saving.get(name)) === true ? 'saved' : 'abandoned';
  }

  async run(signal: AbortSignal): Promise<void> {
    const workers = new TaskGroup(signal);
    const stop = (): void => this.#queue.shutDown();
    workers.signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    for (let number = 0; number < queueWorkers; number++) workers.start((ending) => this.#work(ending));
    await workers.ended();
    for (const [name, { spec }] of this.#unsaved) {
      const { namespace = '', name: claim = '' } = spec.claimRef ?? {};
      const fields = { volume: name, handle: spec.csi?.volumeHandle, claim: `${namespace}/${claim}` };
      this.#parts.logger.error(fields, 'Ended before a volume could be saved');
    }
  }

  /** What is forbidden is tried once more: often the permission is granted before the process is restarted. */
  async settled(): Promise<void> {
    for (const [name, why] of this.#retriedRarely) {
      if (why !== 'forbidden') continue;
      this.#retriedRarely.delete(name);
      this.#queue.add(name);
    }
    if (!this.#isSettled) await new Promise<void>((resolve) => this.#waiters.push(resolve));
    await Promise.all(this.#saving.values()); // a volume that is retried rarely may be under way just now
  }

  async #work(signal: AbortSignal): Promise<void> {
    for (let name = await this.#queue.get(); name !== undefined; name = await this.#queue.get()) {
      const volume = this.#unsaved.get(name);
      try {
        if (volume !== undefined && !signal.aborted) {
          await this.#save(volume);
          this.#settleAndReportSuccess(volume);
        }
        this.#queue.forget(name);
      } catch (error) {
        if (this.#unsaved.get(name) !== volume) continue; // abandoned
        const reported = error instanceof ForbiddenError && !error.isAdmission; // once a minute, with the rule
        const fields = volume === undefined ? { err: error, volume: name } : this.#logFields(volume, error);
        if (!this.#abort().aborted)
          this.#parts.logger[reported ? 'debug' : 'error'](fields, 'The volume could not be saved, trying again');
        if (volume !== undefined && error instanceof VolumeTakenError) this.#dropTaken(volume, error);
        else if (volume !== undefined && error instanceof VolumeAbandonedError) this.#drop(volume);
        else if (volume === undefined || !this.#retryRarely(volume, error)) this.#queue.addRateLimited(name);
      } finally {
        this.#queue.done(name);
      }
    }
  }

  async #save(volume: PersistentVolume): Promise<void> {
    const saving = savePersistentVolume(this.#parts, volume, this.#abort());
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
      const isRecorded = this.#queue.failures(name) >= tries;
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
    const { recorder, meaningOf, lastErrors } = this.#parts;
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
    return { claim: objectKey(claim), ...this.#parts.meaningOf?.(text, error), ...fields };
  }

  #setRetriedRarely(name: string, why: 'forbidden' | 'refused'): void {
    this.#retriedRarely.set(name, why);
    this.#wakeWaiters();
  }

  #retryAfter(name: string, pauseMs: number): void {
    this.#queue.forget(name);
    this.#queue.addAfter(name, pauseMs);
  }

  #settleAndReportSuccess(volume: PersistentVolume): void {
    this.#settle(volume);
    const claim = this.#claimOf(volume);
    if (claim !== undefined) reportSuccess(this.#parts, claim, volume);
  }

  /** No retry will save it: the next attempt of its claim finds the same volume and fails there. */
  #dropTaken(volume: PersistentVolume, error: VolumeTakenError): void {
    const claim = this.#claimOf(volume);
    this.#drop(volume);
    if (claim !== undefined) reportTaken(this.#parts, claim, error);
  }

  /** It is not tried again; its claim is synced again. */
  #drop(volume: PersistentVolume): void {
    this.#queue.forget(volume.metadata.name);
    this.#settle(volume);
    this.#parts.saveHooks()?.dropped(volume);
  }

  #settle(volume: PersistentVolume): void {
    this.#unsaved.delete(volume.metadata.name);
    this.#retriedRarely.delete(volume.metadata.name);
    this.#forbidden.forget(volume.metadata.name);
    this.#refused.forget(volume.metadata.name);
    this.#wakeWaiters();
  }

  get #isSettled(): boolean {
    return this.#unsaved.size === this.#retriedRarely.size;
  }

  #wakeWaiters(): void {
    if (this.#isSettled) for (const resolve of this.#waiters.splice(0)) resolve();
  }

  /** The claim that a volume was created for; undefined once it is gone. */
  #claimOf({ spec }: PersistentVolume): PersistentVolumeClaim | undefined {
    const [claim, ...others] = this.#claimsByUid(spec.claimRef?.uid ?? '');
    return others.length === 0 ? claim : undefined;
  }
}
