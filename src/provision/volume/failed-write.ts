import { ApiError, ConflictError, NotFoundError, TooManyRequestsError } from '../../kube/client/api-error.ts';

/** The server, or a proxy before it, is overloaded or away. */
const unavailable: ReadonlySet<number> = new Set([503, 504]);

/**
 * Whether a write failed for a reason that users should soon read in an event, such as a missing permission, an admission
 * policy, a webhook that does not respond, or another failure of the API server (500); not an overload, a conflict, or an object that is gone.
 */
export function isReportedSoon(error: unknown): error is ApiError {
  if (!(error instanceof ApiError) || unavailable.has(error.code)) return false;
  const isConflict = error instanceof ConflictError && error.request.verb !== 'create'; // a new object conflicts with none
  return !(isConflict || error instanceof NotFoundError || error instanceof TooManyRequestsError);
}
