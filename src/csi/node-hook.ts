import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../provision/objects.ts';
import type { ProvisionContext } from '../provision/provisioner.ts';

/** Ownership when every node runs its own instance; absent in a central deployment. */
export interface NodeHook {
  readonly nodeName: string;
  /**
   * Whether this instance provisions the claim. May wait, and may claim it for this node as a side effect.
   *
   * @param storageClass - the claim's class where the caller has it.
   */
  ownsClaim(
    claim: PersistentVolumeClaim,
    storageClass: StorageClass | undefined,
    context: ProvisionContext,
  ): Promise<boolean>;
  /** Whether the volume is reachable from this node. @throws when its node affinity cannot be read. */
  ownsVolume(volume: PersistentVolume): boolean;
}
