import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../provision/objects.ts';

/** Ownership when every node runs its own instance; absent in a central deployment. */
export interface NodeHook {
  readonly nodeName: string;
  /**
   * Whether this instance provisions the claim now. Does not wait: for a claim that may become this node's the result is
   * false, and the claim is requeued when it has.
   *
   * @param storageClass - the claim's class where the caller is about to provision: then what is thrown becomes the
   * claim's event.
   */
  ownsClaim(claim: PersistentVolumeClaim, storageClass: StorageClass | undefined): Promise<boolean>;
  /** The claim is gone or has its volume. Safe to repeat. */
  forgetClaim(uid: string): void;
  /** The driver has deleted a volume: claims that were declined for their size may fit now. */
  roomFreed(): void;
  /** Whether the volume is reachable from this node. @throws when its node affinity cannot be read. */
  ownsVolume(volume: PersistentVolume): boolean;
}
