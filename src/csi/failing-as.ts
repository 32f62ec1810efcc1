import { IgnoredError, ProvisionError, type ProvisioningState } from '../provision/provisioner.ts';
import { errorMessage } from './error-message.ts';

/**
 * Runs one step of an attempt; whatever it throws becomes a `ProvisionError` with this state. Errors that already say
 * what they mean pass through.
 *
 * @param describe - the text of the event; default: the error's own.
 */
export async function failingAs<T>(
  state: ProvisioningState,
  step: () => T | Promise<T>,
  describe: (error: unknown) => string = errorMessage,
): Promise<T> {
  try {
    return await step();
  } catch (error) {
    if (error instanceof ProvisionError || error instanceof IgnoredError) throw error;
    throw new ProvisionError(describe(error), { state, cause: error });
  }
}
