/** The owner as it is now: it may be replaced, by one with another UID, while the sidecar's Pod goes on. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { NotFoundError } from '../kube/client/api-error.ts';
import type { OwnerReference } from '../kube/kube-object.ts';

export interface CurrentOwnerOptions {
  /** As it was found at the start. */
  found: OwnerReference;
  /** Finds it again, as `findOwner`. */
  find: (signal: AbortSignal) => Promise<OwnerReference>;
  clock: Clock;
  logger: Logger;
}

/** For how long an owner that was found is believed to exist, in milliseconds. */
const believedMs = 60_000;

/**
 * Objects with the reference of an owner that is gone would be deleted by the garbage collector as often as they are
 * created. A controller is replaced so by `kubectl delete --cascade=orphan`, where it cannot be changed otherwise.
 */
export class CurrentOwner {
  readonly #options: CurrentOwnerOptions;
  #last: OwnerReference | undefined;
  #foundMs: number;
  #finding: Promise<void> | undefined;

  constructor(options: CurrentOwnerOptions) {
    this.#options = options;
    this.#last = options.found;
    this.#foundMs = options.clock.monotonicMs();
  }

  /** As it was found last. Undefined: there was none. */
  get last(): OwnerReference | undefined {
    return this.#last;
  }

  /** To be called before it is written: finds it again, at most once a minute. Undefined: there is none at present. */
  async read(signal: AbortSignal): Promise<OwnerReference | undefined> {
    if (this.#options.clock.monotonicMs() - this.#foundMs >= believedMs) {
      this.#finding ??= this.#find(signal).finally(() => (this.#finding = undefined));
      await this.#finding;
    }
    return this.#last;
  }

  async #find(signal: AbortSignal): Promise<void> {
    const { find, clock, logger } = this.#options;
    try {
      const found = await find(signal);
      if (found.uid !== this.#last?.uid) {
        const { apiVersion, kind, name } = found;
        logger.info({}, `using ${apiVersion}/${kind} ${name} as owner of CSIStorageCapacity objects`);
      }
      this.#last = found;
    } catch (error) {
      signal.throwIfAborted();
      logger.warn({ err: error }, 'The owner of CSIStorageCapacity objects could not be found again');
      if (isGone(error)) this.#last = undefined;
    }
    this.#foundMs = clock.monotonicMs();
  }
}

/** Not where the API server did not say. */
function isGone(error: unknown): boolean {
  const { cause } = error as Error;
  return cause === undefined || cause instanceof NotFoundError;
}
