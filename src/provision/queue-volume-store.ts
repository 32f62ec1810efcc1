import type { WorkQueue } from '../kube/work-queue.ts';
import type { PersistentVolume, PersistentVolumeClaim } from './objects.ts';
import { VolumeTakenError } from './stored-volume.ts';
import { createVolume, reportTaken, tellSuccess, type VolumeStore, type VolumeStoreParts } from './volume-store.ts';

/** Workers of the queue store, whatever the number of the controller's own. */
const queueWorkers = 4;

/** Tries once while the worker waits, then for ever in the background; the claim counts as done at once. */
export class QueueVolumeStore implements VolumeStore {
  readonly #parts: VolumeStoreParts;
  readonly #queue: WorkQueue;
  readonly #claimsByUid: (uid: string) => PersistentVolumeClaim[];
  readonly #unsaved = new Map<string, PersistentVolume>();
  #waiters: (() => void)[] = [];

  constructor(options: VolumeStoreParts & { queue: WorkQueue; claimsByUid: (uid: string) => PersistentVolumeClaim[] }) {
    this.#parts = options;
    this.#queue = options.queue;
    this.#claimsByUid = options.claimsByUid;
  }

  async save(claim: PersistentVolumeClaim, volume: PersistentVolume): Promise<void> {
    const { name } = volume.metadata;
    try {
      await createVolume(this.#parts, volume);
    } catch (error) {
      if (error instanceof VolumeTakenError) throw reportTaken(this.#parts, claim, error);
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
        if (volume !== undefined && error instanceof VolumeTakenError) this.#drop(volume, error);
        else this.#queue.addRateLimited(name);
      } finally {
        this.#queue.done(name);
      }
    }
  }

  #finish(volume: PersistentVolume): void {
    this.#settle(volume);
    const claim = this.#claimOf(volume);
    if (claim !== undefined) tellSuccess(this.#parts, claim, volume);
  }

  /** No repeat will save it: the next attempt of its claim meets the same volume and fails there. */
  #drop(volume: PersistentVolume, error: VolumeTakenError): void {
    this.#queue.forget(volume.metadata.name);
    this.#settle(volume);
    const claim = this.#claimOf(volume);
    if (claim !== undefined) reportTaken(this.#parts, claim, error);
  }

  #settle(volume: PersistentVolume): void {
    this.#unsaved.delete(volume.metadata.name);
    if (this.#unsaved.size === 0) for (const resolve of this.#waiters.splice(0)) resolve();
  }

  /** The claim that a volume was made for; undefined once it is gone. */
  #claimOf({ spec }: PersistentVolume): PersistentVolumeClaim | undefined {
    const [claim, ...others] = this.#claimsByUid(spec.claimRef?.uid ?? '');
    return others.length === 0 ? claim : undefined;
  }
}
