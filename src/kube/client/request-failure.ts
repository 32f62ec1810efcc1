/** What the failure of one attempt at a request means for the next one. */
import { ApiError, TransportError } from './api-error.ts';

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
