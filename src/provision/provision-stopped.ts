/** An attempt ended and is not retried until something changes. Counted as failed, as in the original. */
export class ProvisionStopped extends Error {
  override readonly name = 'ProvisionStopped';
}
