/** Nothing can be said; the message says which right or capability is missing, or who did not answer. */
export class CannotLookError extends Error {
  override readonly name = 'CannotLookError';
}
