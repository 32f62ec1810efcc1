/** An attempt ended and must not be repeated by itself. Counted as failed, as in the original. */
export class ProvisionStopped extends Error {
  override readonly name = 'ProvisionStopped';
}
