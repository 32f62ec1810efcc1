/** From a failed response of the API server to its typed error. */
import {
  AlreadyExistsError,
  ApiError,
  ConflictError,
  ExpiredError,
  ForbiddenError,
  InvalidError,
  NotFoundError,
  type RequestInfo,
  TooManyRequestsError,
  UnauthorizedError,
} from './api-error.ts';
import type { Status } from '../kube-object.ts';

/** Max length of the text kept of a body that is not a Status, in characters. */
const maxBodyTextLength = 2048;

const reasonByCode: Record<number, string> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  409: 'Conflict',
  410: 'Gone',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

const errorByReason: Record<string, new (status: Status, request: RequestInfo, retryAfterS?: number) => ApiError> = {
  NotFound: NotFoundError,
  AlreadyExists: AlreadyExistsError,
  Conflict: ConflictError,
  Expired: ExpiredError,
  Gone: ExpiredError,
  Unauthorized: UnauthorizedError,
  Forbidden: ForbiddenError,
  TooManyRequests: TooManyRequestsError,
  Invalid: InvalidError,
};

/** The reasons of the API itself (metav1 StatusReason); that of an admission webhook may be any text, or missing. */
const knownReasons: ReadonlySet<string> = new Set([
  ...Object.keys(errorByReason),
  ...Object.values(reasonByCode),
  'InternalError',
  'ServerTimeout',
  'StoreReadError',
]);

/** The typed error for a Status. */
export function errorFromStatus(status: Status, request: RequestInfo, retryAfterS?: number): ApiError {
  const { reason = '', code = 0 } = status;
  const decisive = knownReasons.has(reason) ? reason : (reasonByCode[code] ?? '');
  const ErrorClass = errorByReason[decisive] ?? ApiError;
  return new ErrorClass(status, request, retryAfterS);
}

/**
 * The typed error for a failed response; for a body that is not a Status one is made from the HTTP code.
 *
 * @param body - the whole text; at most 2,048 characters of it are kept where it is not a Status.
 */
export function errorFromResponse(code: number, body: string, request: RequestInfo, retryAfterS?: number): ApiError {
  return errorFromStatus(parseStatus(body) ?? synthesiseStatus(code, body, request), request, retryAfterS);
}

function parseStatus(body: string): Status | undefined {
  try {
    const parsed = JSON.parse(body) as Status | null;
    return parsed?.kind === 'Status' && parsed.apiVersion === 'v1' ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function synthesiseStatus(code: number, body: string, request: RequestInfo): Status {
  const reason =
    code === 409 && request.verb === 'create'
      ? 'AlreadyExists'
      : (reasonByCode[code] ?? (code >= 500 ? 'InternalError' : ''));
  // What a proxy makes of a Secret must not end up in an event.
  const text = request.resource.plural === 'secrets' ? '' : body.trim().slice(0, maxBodyTextLength);
  const what = `the server responded with ${code} to ${request.verb} ${request.resource.plural}`;
  // a page for people does not say what failed, nor, of a redirect, that this is one
  const message = text.startsWith('<') ? `${what}: ${text}` : text || what;
  return { status: 'Failure', code, reason, message };
}
