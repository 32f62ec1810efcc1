/** Event reasons that more than one file records on claims. */

export const succeededReason = 'ProvisioningSucceeded';
export const failedReason = 'ProvisioningFailed';
export const waitingReason = 'ProvisioningWaiting';
