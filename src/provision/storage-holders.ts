/** Which PersistentVolume holds a storage, asked live: the last look before anything is deleted. */
import { untilAborted } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { CodingChoice } from '../kube/coding-choice.ts';
import { pagedList, pageSize } from '../kube/paged-list.ts';
import type { Transport } from '../kube/transport.ts';
import { type PersistentVolume, persistentVolumes } from './objects.ts';

export interface StorageHoldersOptions {
  transport: Transport;
  /** As in `Recoverable`. */
  holds: (volume: PersistentVolume, handle: string) => boolean;
  /** Aborts when what is under way is to be abandoned. */
  abort: () => AbortSignal;
  clock: Clock;
  logger: Logger;
}

interface Question {
  name: string;
  handle: string;
  found: PersistentVolume | undefined;
  settled: PromiseWithResolvers<void>;
}

/** Each is compared with every volume of the cluster. */
const maxQuestions = 200;
/** Lists take at most a tenth of the time, whatever the number of volumes in the cluster. */
const pauseFactor = 9;

/** All questions that come while a list is under way share the next one. */
export class StorageHolders {
  readonly #options: StorageHoldersOptions;
  #waiting: Question[] = [];
  #running = false;

  constructor(options: StorageHoldersOptions) {
    this.#options = options;
  }

  /**
   * The volume that has the name or holds the storage, whoever's it is, as the API server has it after this call began.
   *
   * @throws {ApiError} and {TransportError} when the volumes cannot be listed: then nothing is known.
   */
  async find(
    { name, handle }: { name: string; handle: string },
    signal: AbortSignal,
  ): Promise<PersistentVolume | undefined> {
    const question: Question = { name, handle, found: undefined, settled: Promise.withResolvers() };
    question.settled.promise.catch(() => undefined); // the caller may have stopped waiting
    this.#waiting.push(question);
    if (!this.#running) void this.#run();
    await untilAborted(question.settled.promise, signal);
    return question.found;
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { clock, abort } = this.#options;
    this.#running = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, maxQuestions);
      const startedMs = clock.monotonicMs();
      try {
        await this.#look(batch);
        for (const { settled } of batch) settled.resolve();
      } catch (error) {
        for (const { settled } of batch) settled.reject(error);
      }
      const pauseMs = (clock.monotonicMs() - startedMs) * pauseFactor;
      await clock.sleep(pauseMs, { signal: abort() }).catch(() => undefined);
    }
    this.#running = false;
  }

  async #look(batch: readonly Question[]): Promise<void> {
    const { transport, holds, clock, logger, abort } = this.#options;
    const names = Map.groupBy(batch, ({ name }) => name);
    await pagedList({
      coding: new CodingChoice({ transport, logger }),
      clock,
      resource: persistentVolumes,
      resourceVersion: '', // live
      limit: pageSize,
      onStart: () => {
        for (const question of batch) question.found = undefined;
      },
      onItem: (item) => {
        const volume = item as PersistentVolume;
        for (const question of names.get(volume.metadata.name) ?? []) question.found ??= volume;
        // who holds the storage counts more than who has the name
        for (const question of batch) if (holds(volume, question.handle)) question.found = volume;
      },
      signal: abort(),
    });
  }
}
