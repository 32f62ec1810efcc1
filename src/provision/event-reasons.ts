/** Reasons of the events that are recorded on claims in more than one place. */

export const succeededReason = 'ProvisioningSucceeded';
export const failedReason = 'ProvisioningFailed';
export const waitingReason = 'ProvisioningWaiting';
