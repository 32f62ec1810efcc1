import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { AlreadyExistsError } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import type { Recorder } from '../kube/recorder.ts';
import type { WorkQueue } from '../kube/work-queue.ts';
import { claimReference } from './claim-facts.ts';
import { type PersistentVolume, type PersistentVolumeClaim, persistentVolumes } from './objects.ts';

/** Saves new volumes to the API server. */
export interface VolumeStore {
  /**
   * Saves a completed volume; one that exists already counts as saved. Safe to repeat.
   *
   * @throws the last failure, when the store gives up; the storage was then cleaned up or reported.
   */
  save(claim: PersistentVolumeClaim, volume: PersistentVolume): Promise<void>;
  /** Works in the background until the signal aborts, where the store has something to do there. */
  run(signal: AbortSignal): Promise<void>;
  /** Resolves once nothing waits to be saved any more. */
  settled(): Promise<void>;
}

interface StoreParts {
  client: KubeClient;
  recorder: Recorder;
  logger: Logger;
  /** Called as soon as the API server has the volume. */
  onSaved: (volume: PersistentVolume) => void;
}

export const succeededReason = 'ProvisioningSucceeded';
export const failedReason = 'ProvisioningFailed';

async function createVolume(
  { client, onSaved }: StoreParts,
  volume: PersistentVolume,
  signal?: AbortSignal,
): Promise<void> {
  try {
    await client.create(persistentVolumes, volume, { signal });
  } catch (error) {
    // saved by an earlier attempt whose answer was lost; names are made from UIDs, so it can be no other's
    if (!(error instanceof AlreadyExistsError)) throw error;
  }
  onSaved(volume);
}

function succeeded({ recorder }: StoreParts, claim: PersistentVolumeClaim, volume: PersistentVolume): void {
  recorder.event(
    claimReference(claim),
    'Normal',
    succeededReason,
    `Successfully provisioned volume ${volume.metadata.name}`,
  );
}

/** How often the blocking store tries, with what pauses. */
export interface SaveRetries {
  /** Attempts in all. */
  attempts: number;
  /** Pause after the n-th failed attempt (from 0), in milliseconds. */
  pauseMs: (failed: number) => number;
}

/**
 * Tries a few times while the worker waits, and deletes the storage when it cannot save the volume. Once the run is cut
 * off it does neither: after a lost lease the storage may be another process's by now.
 */
export class BlockingVolumeStore implements VolumeStore {
  readonly #parts: StoreParts;
  readonly #clock: Clock;
  readonly #retries: SaveRetries;
  readonly #cut: () => AbortSignal;
  readonly #deleteStorage: (volume: PersistentVolume, signal: AbortSignal) => Promise<void>;

  constructor(
    options: StoreParts & {
      clock: Clock;
      retries: SaveRetries;
      /** Aborts when what is under way is to be abandoned. */
      cut: () => AbortSignal;
      deleteStorage: (volume: PersistentVolume, signal: AbortSignal) => Promise<void>;
    },
  ) {
    this.#parts = options;
    this.#clock = options.clock;
    this.#retries = options.retries;
    this.#cut = options.cut;
    this.#deleteStorage = options.deleteStorage;
  }

  async save(claim: PersistentVolumeClaim, volume: PersistentVolume): Promise<void> {
    const cut = this.#cut();
    const failure = await this.#try(() => createVolume(this.#parts, volume, cut), 'The volume could not be saved', cut);
    if (failure === undefined) {
      succeeded(this.#parts, claim, volume);
      return;
    }
    if (cut.aborted) throw failure;
    const where = `${claim.metadata.namespace ?? ''}/${claim.metadata.name}`;
    const { recorder } = this.#parts;
    recorder.event(
      claimReference(claim),
      'Warning',
      failedReason,
      `Error creating provisioned PV object for claim ${where}: ${failure.message}. Deleting the volume.`,
    );
    const leftover = await this.#try(
      () => this.#deleteStorage(volume, cut),
      'The storage of an unsaved volume stays',
      cut,
    );
    if (leftover !== undefined) {
      recorder.event(
        claimReference(claim),
        'Warning',
        'ProvisioningCleanupFailed',
        `Error cleaning provisioned volume for claim ${where}: ${leftover.message}. Please delete manually.`,
      );
    }
    throw failure;
  }

  run(): Promise<void> {
    return Promise.resolve(); // everything happens in save
  }

  settled(): Promise<void> {
    return Promise.resolve();
  }

  async #try(attempt: () => Promise<void>, complaint: string, cut: AbortSignal): Promise<Error | undefined> {
    for (let failed = 0; ; failed++) {
      try {
        await attempt();
        return undefined;
      } catch (error) {
        this.#parts.logger.info({ err: error }, complaint);
        if (failed + 1 >= this.#retries.attempts) return error as Error;
        await this.#clock.sleep(this.#retries.pauseMs(failed), { signal: cut }).catch(() => undefined);
        if (cut.aborted) return error as Error;
      }
    }
  }
}

/** Workers of the queue store, whatever the number of the controller's own. */
const queueWorkers = 4;

/** Tries once while the worker waits, then for ever in the background; the claim counts as done at once. */
export class QueueVolumeStore implements VolumeStore {
  readonly #parts: StoreParts;
  readonly #queue: WorkQueue;
  readonly #claimsByUid: (uid: string) => PersistentVolumeClaim[];
  readonly #unsaved = new Map<string, PersistentVolume>();
  #waiters: (() => void)[] = [];

  constructor(options: StoreParts & { queue: WorkQueue; claimsByUid: (uid: string) => PersistentVolumeClaim[] }) {
    this.#parts = options;
    this.#queue = options.queue;
    this.#claimsByUid = options.claimsByUid;
  }

  async save(_claim: PersistentVolumeClaim, volume: PersistentVolume): Promise<void> {
    const { name } = volume.metadata;
    try {
      await createVolume(this.#parts, volume);
    } catch (error) {
      this.#parts.logger.error(
        { err: error, volume: name },
        'The volume could not be saved, trying again in the background',
      );
      this.#unsaved.set(name, volume);
      this.#queue.add(name);
      return;
    }
    this.#finish(volume);
  }

  async run(signal: AbortSignal): Promise<void> {
    const stop = (): void => this.#queue.shutDown();
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    await Promise.all(Array.from({ length: queueWorkers }, () => this.#work(signal)));
    signal.removeEventListener('abort', stop);
  }

  async settled(): Promise<void> {
    if (this.#unsaved.size > 0) await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  async #work(signal: AbortSignal): Promise<void> {
    for (let name = await this.#queue.get(); name !== undefined; name = await this.#queue.get()) {
      const volume = this.#unsaved.get(name);
      try {
        if (volume !== undefined && !signal.aborted) {
          await createVolume(this.#parts, volume);
          this.#finish(volume);
        }
        this.#queue.forget(name);
      } catch (error) {
        this.#parts.logger.error({ err: error, volume: name }, 'The volume could not be saved, trying again');
        this.#queue.addRateLimited(name);
      } finally {
        this.#queue.done(name);
      }
    }
  }

  #finish(volume: PersistentVolume): void {
    this.#unsaved.delete(volume.metadata.name);
    if (this.#unsaved.size === 0) for (const resolve of this.#waiters.splice(0)) resolve();
    const [claim, ...others] = this.#claimsByUid(volume.spec.claimRef?.uid ?? '');
    if (claim !== undefined && others.length === 0) succeeded(this.#parts, claim, volume);
  }
}
