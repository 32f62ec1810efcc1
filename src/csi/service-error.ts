/** The errors of grpc-js as errors of a call to the driver. */
import { status, type ServiceError } from '@grpc/grpc-js';
import { CsiCallError, LostStatusError } from './call-error.ts';
import type { CsiConnection } from './connection.ts';
import { maxStatusTextBytes } from './http2-connect.ts';

/** Whether grpc-js made the error: a call that ended with a status, the driver's or its own. */
export function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && 'metadata' in error;
}

/** How grpc-js words a call that ended without a status, as one does whose status is too long. */
const lostStatus: ReadonlySet<string> = new Set([
  // reset by the driver, which knows the limit (Go)
  'Received RST_STREAM with code 2 (Internal server error)',
  'Received RST_STREAM with code 0 (Call ended without gRPC status)',
  // refused by Node: all headers together are too long
  'Bandwidth exhausted or memory limit exceeded',
  // a header that is too long alone breaks the connection, with all calls on it
  'Received RST_STREAM with code 2 triggered by internal client error: Protocol error',
]);
/** How grpc-js words a response that it did not read: the driver did what was requested. */
const tooLong = /^Received message larger than max \(\d+ vs \d+\)$/;
/** How grpc-js words a call that the driver has not begun to process (RFC 9113, "REFUSED_STREAM"), as when it closes the connection. */
const refused = 'Stream refused by server';
/** How grpc-js words a call on a connection that has just broken. */
const brokenConnection = 'triggered by internal client error: The session has been destroyed';

/**
 * Translates the texts of grpc-js for local failures to those of the Go client, which users and dashboards know.
 *
 * @param options.atDeadline - the call ended when its deadline did.
 * @param options.hasResponse - the driver has responded: the text may be its own, and of a grpc-js of its own.
 */
export function serviceCallError(
  error: ServiceError,
  {
    atDeadline,
    hasResponse,
    connection,
  }: { atDeadline: boolean; hasResponse: boolean; connection: Pick<CsiConnection, 'state'> },
): CsiCallError {
  const { code, details } = error;
  // grpc-js has neither code nor text for a response with an unknown compression.
  if (typeof code !== 'number') {
    return new CsiCallError(status.INTERNAL, 'grpc: failed to decompress the received message', { cause: error });
  }
  const reset = /^(Received RST_STREAM|Call cancelled|Cancelled on client)/.test(details);
  // The second text is that of a driver built on grpc-js, whose timer for our deadline may fire first.
  const local = details.startsWith('Deadline exceeded after ') || (atDeadline && details === 'Deadline exceeded');
  if (code === status.DEADLINE_EXCEEDED && local) return deadlineExceeded({ cause: error });
  if (reset && atDeadline) return deadlineExceeded({ cause: error });
  if (lostStatus.has(details)) {
    const text = `the driver's status did not arrive: it is longer than ${maxStatusTextBytes / 1024} KiB, or the driver reset the call`;
    return new LostStatusError(status.INTERNAL, text, { cause: error });
  }
  if (code === status.RESOURCE_EXHAUSTED && tooLong.test(details)) {
    return new LostStatusError(code, details, { cause: error });
  }
  if (code === status.UNAVAILABLE && details === refused && !hasResponse) {
    return new CsiCallError(code, details, { cause: error, sent: false });
  }
  const broken = details.endsWith(brokenConnection);
  if (
    broken ||
    (reset && connection.state !== 'ready') ||
    (code === status.UNAVAILABLE && details === 'Connection dropped')
  ) {
    return new CsiCallError(status.UNAVAILABLE, 'error reading from server: EOF', { cause: error });
  }
  return new CsiCallError(code, details, { cause: error });
}

/** The failure of a call whose deadline has passed. */
export function deadlineExceeded(options: { cause?: unknown; sent?: boolean }): CsiCallError {
  return new CsiCallError(status.DEADLINE_EXCEEDED, 'context deadline exceeded', options);
}
