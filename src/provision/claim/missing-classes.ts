/** Claims whose StorageClass the cache does not show. */
import { shortValue } from '../../base/short-value.ts';
import { ForbiddenError, NotFoundError } from '../../kube/client/api-error.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { Recorder } from '../../kube/events/recorder.ts';
import { claimReference, claimUid } from '../claim-fields.ts';
import { waitingReason } from '../event-reasons.ts';
import { type PersistentVolumeClaim, type StorageClass, storageClasses } from '../objects.ts';
import { Failed } from './attempt-steps.ts';
import type { ClaimStates } from './claim-states.ts';

export class MissingClasses {
  readonly #client: KubeClient;
  readonly #recorder: Recorder;
  readonly #states: Pick<ClaimStates, 'of' | 'get'>;

  constructor(options: { client: KubeClient; recorder: Recorder; states: Pick<ClaimStates, 'of' | 'get'> }) {
    this.#client = options.client;
    this.#recorder = options.recorder;
    this.#states = options.states;
  }

  /**
   * Reads a class live before it is first reported missing: class and claim are often applied together, and the caches
   * show them in any order.
   */
  async read(claim: PersistentVolumeClaim, name: string, signal: AbortSignal): Promise<StorageClass | undefined> {
    if (name === '' || this.#states.get(claimUid(claim))?.missingClass === name) return undefined;
    try {
      return await this.#client.get<StorageClass>(storageClasses, { name }, { signal });
    } catch (error) {
      // a TypeError: no object can have such a name
      if (error instanceof NotFoundError || error instanceof ForbiddenError || error instanceof TypeError)
        return undefined;
      throw error;
    }
  }

  /** Records the event once for each class; the retries are only logged. */
  report(claim: PersistentVolumeClaim, name: string): Failed {
    const state = this.#states.of(claimUid(claim));
    if (state.missingClass !== name) {
      state.missingClass = name;
      const message =
        name === ''
          ? 'Waiting for a StorageClass: the claim names none'
          : `Waiting for StorageClass ${JSON.stringify(shortValue(name))}, which does not exist`;
      this.#recorder.event(claimReference(claim), 'Normal', waitingReason, message, { once: true });
    }
    return new Failed(new Error(`storageClass ${JSON.stringify(shortValue(name))} not found`));
  }
}
