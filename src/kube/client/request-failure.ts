/** What the failure of one attempt at a request means for the next one. */
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

/** Pause before a GET is sent again over a new connection. */
const resendPauseMs = 1000;
/** Max pause that a server or proxy can request: a sidecar that retries only after hours does not provision. */
const maxRetryAfterMs = 60_000;
/** Codes of connections that broke: reset, closed before the end of the response. */
const brokenConnection: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'Z_BUF_ERROR']);

/** How long to wait before sending again, in milliseconds; undefined when it must not be sent again. */
export function retryPauseMs(error: unknown, method: string): number | undefined {
  if (error instanceof ApiError) {
    // after a 5xx a POST may have been carried out, or may yet be: the caller checks before it repeats it
    const mayRepeat = error.code === 429 || (error.code >= 500 && method !== 'POST');
    return mayRepeat ? retryAfterMs(error) : undefined;
  }
  const broken = error instanceof TransportError && brokenConnection.has(error.code);
  return broken && method === 'GET' ? resendPauseMs : undefined;
}

/** The pause that the server asks for, at most a minute; undefined where it asks for none. */
export function retryAfterMs({ retryAfterS }: ApiError): number | undefined {
  return retryAfterS === undefined ? undefined : Math.min(retryAfterS * 1000, maxRetryAfterMs);
}

/**
 * A failure of the connection as `TransportError`; others, such as an abort or a programming error, as they are.
 *
 * @param what - put before the message, such as method, host and path.
 */
export function asTransportError(error: unknown, what: string, sent = true): unknown {
  if (error instanceof TransportError) {
    return new TransportError(`${what}: ${error.message}`, { code: error.code, sent, cause: error.cause });
  }
  if (!(error instanceof Error) || error instanceof ApiError || error instanceof TypeError) return error;
  const code = (error as NodeJS.ErrnoException).code ?? 'UNKNOWN';
  // undici aborts by itself, such as when a proxy refuses a tunnel
  if (error.name === 'AbortError' && code !== 'UND_ERR_ABORTED') return error;
  const where = code.startsWith('UND_ERR_SOCKS5') ? 'SOCKS proxy: ' : ''; // undici does not say who failed
  return new TransportError(`${what}: ${where}${error.message === '' ? code : error.message}`, {
    code,
    sent,
    cause: error,
  });
}

/** Why a request failed: whether somebody has to change something, or it passes by itself. */
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
