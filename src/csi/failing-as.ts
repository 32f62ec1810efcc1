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

/** As `FulfilContext.beforeDelete`. */
export type BeforeDelete = (handle: string) => Promise<void>;

/**
 * Runs an attempt that may delete storage. What it throws unforeseen gets the state `in-background`: a volume may be in
 * the making. What `beforeDelete` throws is the caller's own, and passes unchanged.
 *
 * @param attempt - gets the context with a `beforeDelete` that it must not call within `failingAs`.
 */
export async function unforeseenAsInBackground<T, C extends { beforeDelete(handle: string): Promise<void> }>(
  context: C,
  attempt: (context: C) => Promise<T>,
): Promise<T> {
  let refusal: { error: unknown } | undefined;
  const beforeDelete: BeforeDelete = async (handle) => {
    try {
      await context.beforeDelete(handle);
    } catch (error) {
      refusal = { error };
      throw error;
    }
  };
  try {
    return await attempt({ ...context, beforeDelete });
  } catch (error) {
    if (refusal !== undefined && refusal.error === error) throw error;
    return failingAs('in-background', () => Promise.reject(error as Error));
  }
}
