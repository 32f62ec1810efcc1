/** What a subcommand needs cannot be read; the message names the missing permission or capability, or who did not respond. */
export class CannotReadError extends Error {
  override readonly name = 'CannotReadError';
}
