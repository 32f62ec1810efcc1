/** The audit cannot be carried out; the message names the missing right or capability, or who did not answer. */
export class CannotLookError extends Error {
  override readonly name = 'CannotLookError';
}
