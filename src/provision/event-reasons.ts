/** Event reasons, and parts of texts, that more than one file has. */

export const succeededReason = 'ProvisioningSucceeded';
export const failedReason = 'ProvisioningFailed';
export const waitingReason = 'ProvisioningWaiting';
export const deletionWaitingReason = 'VolumeDeletionWaiting';
/** Between the names of the two volumes. */
export const sharedStorageText = 'has the same storage as persistentvolume';
