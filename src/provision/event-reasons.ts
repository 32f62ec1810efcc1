/** Event reasons, and parts of texts, that more than one file has. */

export const succeededReason = 'ProvisioningSucceeded';
export const failedReason = 'ProvisioningFailed';
export const waitingReason = 'ProvisioningWaiting';
/** On a claim whose selected node cannot use its volume. */
export const misplacedReason = 'VolumeMisplaced';
export const deletionWaitingReason = 'VolumeDeletionWaiting';
/** The volume is in use, such as attached to a node: its deletion is tried again. */
export const deletionPostponedReason = 'VolumeDelete';
/** The end of the text about a volume that is attached to a node. */
export const untilDetachedText = ', waiting for detach';
/** Between the names of the two volumes. */
export const sharedStorageText = 'has the same storage as persistentvolume';
/** Between the name of a volume and what its deletion waits for: a moment, in RFC 3339, or the end of a call. */
export const deletedAfterText = 'is deleted after';
export const deletedOnceText = 'is deleted once a call has ended';

/** Annotation of an event about a failed attempt: its cause, in the words of `why`, which sees nothing but the text otherwise. */
export const causeKey = 'csi-provisioner/cause';

/** On the Lease, and on the Pod of a standby whose identity another process has. */
export const electionWaitingReason = 'LeaderElectionWaiting';

/** On the Pod of a leader that cannot work yet; the text says why. */
export const notReadyReason = 'ProvisionerNotReady';
