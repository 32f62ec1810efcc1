/**
 * What a failed CreateVolume means. Decisive for each code: may the driver hold, or still be making, a volume whose id
 * is unknown to us? (CSI spec, "CreateVolume Errors"; gRPC, "Status codes and their use")
 */
import { type Evidence, IgnoredError, ProvisionError, type ProvisioningState } from '../provision/provisioner.ts';
import { CsiCallError, errorMessage, LostStatusError } from './call-error.ts';

/**
 * Codes after which the driver may be at work: the same request must be sent again until the outcome is known.
 *
 * - Canceled, DeadlineExceeded: we, or a proxy, stopped waiting; the driver's backend does not know.
 * - Aborted: the driver reports that a call for this name is in progress.
 * - Unavailable: the connection broke, before or after the driver took the request.
 */
const undecided: ReadonlySet<string> = new Set(['Canceled', 'DeadlineExceeded', 'Aborted', 'Unavailable']);

/**
 * The error of a provisioning attempt whose CreateVolume failed.
 *
 * - A request that never left this process reveals nothing new about the driver, whatever its code: `no-change`.
 * - InvalidArgument is final and cannot succeed by itself: `infeasible`, retried slowly.
 * - ResourceExhausted is final; where the scheduler can choose another node it is made to (`reschedule`).
 * - Everything else, codes unknown to gRPC included, is the driver's final word for this attempt: `finished`.
 * - A failure that is no gRPC status, or whose status did not arrive, says nothing about the driver: `in-background`.
 *
 * What it says about earlier attempts whose result was unclear:
 *
 * - AlreadyExists: a volume of the name exists, made from other arguments: whose it is cannot be found out.
 * - NotFound, InvalidArgument for a volume with a content source: the source may be gone, and with it what a repeat could
 *   find out (CSI spec, "CreateVolume Errors").
 * - ResourceExhausted: a driver that has the volume gives it back, however full its backend is.
 *
 * @param options.mayReschedule - topology is in use and the scheduler had chosen a node.
 * @param options.contentSource - the volume is copied from another one or from a snapshot. Default false.
 */
export function createVolumeError(
  error: unknown,
  options: { mayReschedule: boolean; contentSource?: boolean },
): ProvisionError {
  if (!(error instanceof CsiCallError)) {
    return new ProvisionError(String(error), { state: 'in-background', cause: error });
  }
  const { codeName, message } = error;
  if (!error.sent) return new ProvisionError(message, { state: 'no-change', cause: error });
  if (undecided.has(codeName) || error instanceof LostStatusError)
    return new ProvisionError(message, { state: 'in-background', cause: error });
  const afterUnclear = evidence(codeName, options.contentSource ?? false);
  if (codeName === 'ResourceExhausted' && options.mayReschedule) {
    return new ProvisionError(message, { state: 'reschedule', afterUnclear, cause: error });
  }
  const infeasible = codeName === 'InvalidArgument';
  return new ProvisionError(message, { state: 'finished', infeasible, afterUnclear, cause: error });
}

function evidence(codeName: string, contentSource: boolean): Evidence {
  if (codeName === 'ResourceExhausted') return 'absent-if-repeated';
  const sourceGone = contentSource && (codeName === 'NotFound' || codeName === 'InvalidArgument');
  return codeName === 'AlreadyExists' || sourceGone ? 'undecidable' : 'nothing';
}

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
