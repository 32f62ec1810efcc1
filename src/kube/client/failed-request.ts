/** Why a request failed: whether somebody has to change something, or it passes by itself. */
import {
  AlreadyExistsError,
  ApiError,
  ConflictError,
  ForbiddenError,
  isDeniedByWebhook,
  isRefusal,
  NotFoundError,
  TransportError,
  UnauthorizedError,
} from './api-error.ts';

export type FailedRequest = ApiError | TransportError;

/** Bounds a chain of causes that is a circle. */
const maxDepth = 20;

/** The failed request behind an error: the error itself, or the first of its causes that is one. */
export function failedRequestOf(error: unknown): FailedRequest | undefined {
  let each = error;
  for (let depth = 0; depth < maxDepth && each instanceof Error; depth++) {
    if (each instanceof ApiError || each instanceof TransportError) return each;
    each = each.cause;
  }
  return undefined;
}

/**
 * Whether the API server rejects the request for what it is and who sends it: a permission, a policy, a webhook, a quota, or an
 * invalid object. It rejects it again until somebody changes something.
 */
export function isRejection(error: FailedRequest): boolean {
  if (!(error instanceof ApiError) || !isOfServer(error)) return false;
  if (isDeniedByWebhook(error) || error instanceof UnauthorizedError || error instanceof ForbiddenError) return true;
  return isRefusal(error) && !(error instanceof NotFoundError);
}

/**
 * Whether the request failed for a reason that passes by itself: the API server, or what is between it and this process, is away,
 * overloaded (429), fails (5xx) or sends what cannot be read, or somebody has changed the object at the same moment.
 */
export function isPassing(error: FailedRequest): boolean {
  if (error instanceof TransportError) return true;
  if (isRejection(error) || error instanceof NotFoundError) return false;
  const isConflict = error instanceof ConflictError || error instanceof AlreadyExistsError;
  return isConflict || !isOfServer(error) || error.code === 408 || error.code === 429 || error.code >= 500;
}

/** A proxy in front of the API server sends no Status. */
function isOfServer({ status }: ApiError): boolean {
  return status.kind === 'Status';
}
