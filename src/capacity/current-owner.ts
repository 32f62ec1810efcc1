/**
 * The owner of capacity objects, looked up again from time to time: it may be recreated, with another UID, while the Pod keeps
 * running.
 */
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

/** How long a looked-up owner is used before it is looked up again, in milliseconds. */
const maxAgeMs = 60_000;

/**
 * The garbage collector deletes each object whose owner does not exist. A controller is recreated under its Pods with
 * `kubectl delete --cascade=orphan`, to change an immutable field.
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

  /** The owner to write. Looked up again if the last look-up is older than a minute. Undefined: there is none at present. */
  async current(signal: AbortSignal): Promise<OwnerReference | undefined> {
    if (this.#options.clock.monotonicMs() - this.#foundMs >= maxAgeMs) {
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
      if (hasNoOwner(error)) this.#last = undefined;
    }
    this.#foundMs = clock.monotonicMs();
  }
}

/** Whether there certainly is no owner. False if the API server failed or refused the request. */
function hasNoOwner(error: unknown): boolean {
  const { cause } = error as Error;
  return cause === undefined || cause instanceof NotFoundError;
}
