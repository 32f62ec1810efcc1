/**
 * What a failed CreateVolume means. Decisive for each code: may the driver hold, or still be making, a volume whose id
 * is unknown to us? (CSI spec, "CreateVolume Errors"; gRPC, "Status codes and their use")
 */
import { ProvisionError } from '../provision/provisioner.ts';
import { CsiCallError, LostStatusError } from './call-error.ts';

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
 * @param options.mayReschedule - topology is in use and the scheduler had chosen a node.
 */
export function createVolumeError(error: unknown, options: { mayReschedule: boolean }): ProvisionError {
  if (!(error instanceof CsiCallError)) {
    return new ProvisionError(String(error), { state: 'in-background', cause: error });
  }
  const { codeName, message } = error;
  if (!error.sent) return new ProvisionError(message, { state: 'no-change', cause: error });
  if (undecided.has(codeName) || error instanceof LostStatusError)
    return new ProvisionError(message, { state: 'in-background', cause: error });
  if (codeName === 'ResourceExhausted' && options.mayReschedule) {
    return new ProvisionError(message, { state: 'reschedule', cause: error });
  }
  const infeasible = codeName === 'InvalidArgument';
  return new ProvisionError(message, { state: 'finished', infeasible, cause: error });
}
