import type { Logger } from '../../base/logger.ts';
import { ForbiddenError } from '../../kube/client/api-error.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { objectKey } from '../../kube/kube-object.ts';
import type { Recorder } from '../../kube/events/recorder.ts';
import { isOlderVersion } from '../../kube/client/resource-version.ts';
import { claimReference, claimUid } from '../claim-fields.ts';
import type { ClaimStates } from './claim-states.ts';
import { failedReason } from '../event-reasons.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims, selectedNodeKey } from '../objects.ts';

/** Removes the selected node from claims for which it has no capacity, so that the scheduler selects another. */
export class Rescheduler {
  readonly #client: KubeClient;
  readonly #recorder: Recorder;
  readonly #logger: Logger;
  readonly #states: Pick<ClaimStates, 'of' | 'get'>;

  constructor(options: {
    client: KubeClient;
    recorder: Recorder;
    states: Pick<ClaimStates, 'of' | 'get'>;
    logger: Logger;
  }) {
    this.#states = options.states;
    this.#client = options.client;
    this.#recorder = options.recorder;
    this.#logger = options.logger;
  }

  /** @returns false when it could not be done; the log and, for a missing permission, an event say why. */
  async removeNode(claim: PersistentVolumeClaim, signal: AbortSignal): Promise<boolean> {
    const { resourceVersion = '' } = claim.metadata; // a claim that has changed since is a conflict
    try {
      const live = await this.#client.get<PersistentVolumeClaim>(persistentVolumeClaims, claim.metadata, { signal });
      const { [selectedNodeKey]: _node, ...annotations } = live.metadata.annotations ?? {};
      const update: PersistentVolumeClaim = { ...live, metadata: { ...live.metadata, resourceVersion, annotations } };
      const { metadata } = await this.#client.update(persistentVolumeClaims, update, { signal });
      this.#states.of(claimUid(claim)).rescheduledVersion = metadata.resourceVersion;
      return true;
    } catch (error) {
      this.#logger.info(
        { err: error, claim: objectKey(claim) },
        'The selected node could not be removed from the claim',
      );
      if (error instanceof ForbiddenError) {
        const message = `The selected node could not be removed from the claim to have another one selected: ${error.message}`;
        this.#recorder.event(claimReference(claim), 'Warning', failedReason, message);
      }
      return false;
    }
  }

  /**
   * Whether the cached claim still has the node that was removed. An API server that has been restored from a backup may never show our
   * write: if a live read is older than our write, too, the cached claim counts.
   */
  async isBehind(claim: PersistentVolumeClaim, signal: AbortSignal): Promise<boolean> {
    const state = this.#states.get(claimUid(claim));
    const ours = state?.rescheduledVersion;
    if (state === undefined || ours === undefined) return false;
    if (isOlderVersion(claim.metadata.resourceVersion, ours)) {
      const live = await this.#client.get<PersistentVolumeClaim>(persistentVolumeClaims, claim.metadata, { signal });
      if (!isOlderVersion(live.metadata.resourceVersion, ours)) return true;
    }
    state.rescheduledVersion = undefined;
    return false;
  }
}
