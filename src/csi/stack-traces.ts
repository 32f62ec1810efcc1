/**
 * grpc-js records a stack trace at the beginning of each call, and makes three texts of stack traces when one fails: a third
 * of the CPU of a failed call. Nobody reads them, as an error of grpc-js is only the cause of ours.
 */
import { InterceptingCall, type Interceptor } from '@grpc/grpc-js';

/** Runs synchronous code whose errors get no stack trace. @throws what it throws. */
export function withoutStackTraces<T>(run: () => T): T {
  const before = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return run();
  } finally {
    Error.stackTraceLimit = before;
  }
}

/** For a call: the error that grpc-js makes of its status gets no stack trace. */
export const withoutStatusStackTrace: Interceptor = (options, nextCall) =>
  new InterceptingCall(nextCall(options), {
    start: (metadata, _listener, next) =>
      next(metadata, { onReceiveStatus: (status, nextStatus) => withoutStackTraces(() => nextStatus(status)) }),
  });
