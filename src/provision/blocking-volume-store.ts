import type { Clock } from '../base/clock.ts';
import { isRefusal } from '../kube/api-error.ts';
import { objectKey } from '../kube/objects.ts';
import { claimReference } from './claim-facts.ts';
import type { PersistentVolume, PersistentVolumeClaim } from './objects.ts';
import { VolumeTakenError } from './stored-volume.ts';
import {
  createVolume,
  failedReason,
  isSaved,
  reportTaken,
  tellSuccess,
  type VolumeStore,
  type VolumeStoreParts,
} from './volume-store.ts';

/** How often the blocking store tries, with what pauses. */
export interface SaveRetries {
  /** Attempts in all. */
  attempts: number;
  /** Pause after the n-th failed attempt (from 0), in milliseconds. */
  pauseMs: (failed: number) => number;
}

/**
 * Tries a few times while the worker waits, once where the volume is refused for what it is, and deletes the storage
 * when it cannot save the volume. Once the run is aborted it does neither: after a lost lease the storage may be another
 * process's by now.
 */
export class BlockingVolumeStore implements VolumeStore {
  readonly #parts: VolumeStoreParts;
  readonly #clock: Clock;
  readonly #retries: SaveRetries;
  readonly #abort: () => AbortSignal;
  readonly #deleteStorage: (volume: PersistentVolume, signal: AbortSignal) => Promise<void>;

  constructor(
    options: VolumeStoreParts & {
      clock: Clock;
      retries: SaveRetries;
      /** Aborts when what is under way is to be abandoned. */
      abort: () => AbortSignal;
      deleteStorage: (volume: PersistentVolume, signal: AbortSignal) => Promise<void>;
    },
  ) {
    this.#parts = options;
    this.#clock = options.clock;
    this.#retries = options.retries;
    this.#abort = options.abort;
    this.#deleteStorage = options.deleteStorage;
  }

  async save(claim: PersistentVolumeClaim, volume: PersistentVolume): Promise<void> {
    const abort = this.#abort();
    const failure = await this.#try(
      () => createVolume(this.#parts, volume, abort),
      'The volume could not be saved',
      abort,
      (error) => isRefusal(error) || error instanceof VolumeTakenError,
    );
    if (failure instanceof VolumeTakenError) throw reportTaken(this.#parts, claim, failure);
    if (failure !== undefined) {
      if (abort.aborted) throw failure;
      if (!(await this.#undo(claim, volume, failure, abort))) throw failure;
    }
    tellSuccess(this.#parts, claim, volume);
  }

  /**
   * Deletes the storage, unless the API server has the volume: the answer to an attempt may have been lost, and then a
   * pod may use it already.
   *
   * @returns whether the volume was saved after all.
   * @throws {VolumeTakenError} when the name is another volume's: whose storage it is nobody knows.
   */
  async #undo(
    claim: PersistentVolumeClaim,
    volume: PersistentVolume,
    failure: Error,
    abort: AbortSignal,
  ): Promise<boolean> {
    const { client, recorder, onSaved } = this.#parts;
    let leftover: Error | undefined;
    try {
      if (await isSaved(client, volume, abort)) {
        onSaved(volume);
        return true;
      }
    } catch (error) {
      if (error instanceof VolumeTakenError) throw reportTaken(this.#parts, claim, error);
      leftover = error as Error;
    }
    const where = objectKey(claim);
    recorder.event(
      claimReference(claim),
      'Warning',
      failedReason,
      `Error creating provisioned PV object for claim ${where}: ${failure.message}. Deleting the volume.`,
      { logged: true },
    );
    leftover ??= await this.#try(
      () => this.#deleteStorage(volume, abort),
      'The storage of an unsaved volume stays',
      abort,
    );
    if (leftover !== undefined) {
      recorder.event(
        claimReference(claim),
        'Warning',
        'ProvisioningCleanupFailed',
        `Error cleaning provisioned volume for claim ${where}: ${leftover.message}. Please delete manually.`,
        { logged: true },
      );
    }
    return false;
  }

  run(): Promise<void> {
    return Promise.resolve(); // everything happens in save
  }

  settled(): Promise<void> {
    return Promise.resolve();
  }

  async #try(
    attempt: () => Promise<void>,
    complaint: string,
    abort: AbortSignal,
    isFinal: (error: unknown) => boolean = () => false,
  ): Promise<Error | undefined> {
    for (let failed = 0; ; failed++) {
      try {
        await attempt();
        return undefined;
      } catch (error) {
        this.#parts.logger.info({ err: error }, complaint);
        if (isFinal(error) || failed + 1 >= this.#retries.attempts) return error as Error;
        await this.#clock.sleep(this.#retries.pauseMs(failed), { signal: abort }).catch(() => undefined);
        if (abort.aborted) return error as Error;
      }
    }
  }
}
