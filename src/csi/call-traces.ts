import { activeSpan } from '../base/tracing.ts';
import type { CallObserver } from './unary-call.ts';

/** Makes each call to the driver a part of the active trace, and passes the trace on to the driver (W3C, "Trace Context"). */
export const traceCall: CallObserver = ({ method }) => {
  const span = activeSpan()?.child(method.slice(1), {
    isCall: true,
    attributes: { 'rpc.system': 'grpc', 'rpc.method': method.slice(1) },
  });
  if (span === undefined) return undefined;
  return {
    metadata: { traceparent: span.traceparent },
    ended: (code) => {
      span.set({ 'rpc.response.status_code': code });
      span.end(code === 'OK' ? undefined : new Error(code)); // the text of the status is in the error of the attempt
    },
  };
};
