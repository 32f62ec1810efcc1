/** Why an audit says no: what it throws, and what its caller prints. */
import { ForbiddenError } from '../kube/client/api-error.ts';

/** What a subcommand needs cannot be read; the message names the missing permission or capability, or who did not respond. */
export class CannotReadError extends Error {
  override readonly name = 'CannotReadError';
}

/** The volume must not be deleted; the message says why, and what to do instead. */
export class NotDeletableError extends Error {
  override readonly name = 'NotDeletableError';
}

/** @throws {CannotReadError} with the rule that is missing. */
export async function orMissingRule<T>(response: Promise<T>, way: string): Promise<T> {
  try {
    return await response;
  } catch (error) {
    if (!(error instanceof ForbiddenError)) throw error;
    const rule = error.isAdmission ? '' : `. Add this rule to a role of yours, ${way}:\n${error.missingRule}`;
    throw new CannotReadError(`${error.message}${rule}`, { cause: error });
  }
}
