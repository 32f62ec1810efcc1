import type { Clock } from '../../base/clock.ts';
import { ApiError, isRefusal } from '../../kube/client/api-error.ts';
import { objectKey } from '../../kube/kube-object.ts';
import { claimReference } from '../claim/claim-fields.ts';
import { failedReason } from '../event-reasons.ts';
import { causeAnnotation } from '../meaning.ts';
import { VolumeAbandonedError } from './volume-abandoned-error.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../objects.ts';
import { VolumeTakenError } from './stored-volume.ts';
import {
  savePersistentVolume,
  isSaved,
  rememberUntilCached,
  reportTaken,
  reportSuccess,
  saveFailure,
  type VolumeStore,
  type VolumeStoreParts,
} from './volume-store.ts';

export interface BlockingVolumeStoreOptions extends VolumeStoreParts {
  clock: Clock;
  /** Max attempts to save, and then to delete the storage. */
  attempts: number;
  /** Between two of them, in milliseconds. */
  pauseMs: number;
  /** Aborts when what is under way is to be abandoned. */
  abort: () => AbortSignal;
  /** Undefined: the storage stays, a later attempt saves its volume. */
  deleteStorage: ((volume: PersistentVolume, signal: AbortSignal) => Promise<void>) | undefined;
}

/**
 * Tries a few times while the worker waits, only once where the volume is invalid, and deletes the storage when it
 * cannot save the volume. Once the run is aborted it does neither: after a lost lease another process may own the
 * storage.
 */
export class BlockingVolumeStore implements VolumeStore {
  readonly #options: BlockingVolumeStoreOptions;

  constructor(options: BlockingVolumeStoreOptions) {
    this.#options = options;
  }

  async save(claim: PersistentVolumeClaim, volume: PersistentVolume): Promise<void> {
    const abort = this.#options.abort();
    const failure = await this.#try(
      () => savePersistentVolume(this.#options, volume, abort),
      'The volume could not be saved',
      abort,
      {
        isFinal: (error) =>
          isRefusal(error) || error instanceof VolumeTakenError || error instanceof VolumeAbandonedError,
        onFirst: (error) => this.#reportFailure(claim, error, 'Saving it is tried again.'),
      },
    );
    if (failure instanceof VolumeTakenError) throw reportTaken(this.#options, claim, failure);
    if (failure !== undefined) {
      if (abort.aborted || failure instanceof VolumeAbandonedError) throw failure;
      const { deleteStorage } = this.#options;
      if (deleteStorage === undefined) {
        this.#reportFailure(claim, failure, 'The volume is kept at the storage.');
        throw failure;
      }
      const deletion = (): Promise<void> => deleteStorage(volume, abort);
      if (!(await this.#deleteUnlessSaved(claim, volume, { failure, deletion, abort }))) throw failure;
    }
    reportSuccess(this.#options, claim, volume);
  }

  /**
   * Deletes the storage, unless the API server has the volume: the response to an attempt may have been lost, and then a
   * pod may use it already.
   *
   * @returns whether the volume was saved after all.
   * @throws {VolumeTakenError} when another volume has the name: it is not known whose storage it is.
   */
  async #deleteUnlessSaved(
    claim: PersistentVolumeClaim,
    volume: PersistentVolume,
    { failure, deletion, abort }: { failure: Error; deletion: () => Promise<void>; abort: AbortSignal },
  ): Promise<boolean> {
    const { client, recorder, saveHooks } = this.#options;
    let leftover: Error | undefined;
    try {
      if (await isSaved(client, volume, abort)) {
        rememberUntilCached(this.#options, volume);
        saveHooks()?.saved(volume);
        return true;
      }
    } catch (error) {
      if (error instanceof VolumeTakenError) throw reportTaken(this.#options, claim, error);
      leftover = error as Error;
    }
    this.#reportFailure(claim, failure, 'Deleting the volume.');
    leftover ??= await this.#try(deletion, 'The storage of an unsaved volume stays', abort);
    if (leftover !== undefined) {
      recorder.event(
        claimReference(claim),
        'Warning',
        'ProvisioningCleanupFailed',
        `Error cleaning provisioned volume for claim ${objectKey(claim)}: ${leftover.message}. Please delete manually.`,
        { logged: true },
      );
    }
    return false;
  }

  #reportFailure(claim: PersistentVolumeClaim, error: Error, what: string): void {
    const message = `${saveFailure(claim, error)}. ${what}`;
    const { recorder, meaningOf } = this.#options;
    recorder.event(claimReference(claim), 'Warning', failedReason, message, {
      logged: true,
      ...causeAnnotation(message, error, meaningOf),
    });
  }

  isUnsaved(): boolean {
    return false; // nothing is saved in the background
  }

  abandon(): Promise<'abandoned'> {
    return Promise.resolve('abandoned');
  }

  run(): Promise<void> {
    return Promise.resolve();
  }

  settled(): Promise<void> {
    return Promise.resolve();
  }

  async #try(
    attempt: () => Promise<void>,
    logMessage: string,
    abort: AbortSignal,
    {
      isFinal = () => false,
      onFirst,
    }: { isFinal?: (error: unknown) => boolean; onFirst?: (error: Error) => void } = {},
  ): Promise<Error | undefined> {
    const { attempts, pauseMs, clock, logger } = this.#options;
    for (let failed = 0; ; failed++) {
      try {
        await attempt();
        return undefined;
      } catch (error) {
        logger.info({ err: error }, logMessage);
        if (isFinal(error) || failed + 1 >= attempts) return error as Error;
        if (failed === 0 && error instanceof ApiError) onFirst?.(error);
        await clock.sleep(pauseMs, { signal: abort }).catch(() => undefined);
        if (abort.aborted) return error as Error;
      }
    }
  }
}
