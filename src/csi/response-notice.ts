import { InterceptingCall, type Interceptor } from '@grpc/grpc-js';

/**
 * Notices when the other side responds: with headers, or with a status alone, whose metadata then have at least its content type. A status
 * that grpc-js has made itself has none, whatever its code is.
 */
export function noticingResponse(onResponse: () => void): Interceptor {
  return (options, nextCall) =>
    new InterceptingCall(nextCall(options), {
      start: (metadata, _listener, next) =>
        next(metadata, {
          onReceiveMetadata: (received, nextMetadata) => {
            onResponse();
            nextMetadata(received);
          },
          onReceiveStatus: (status, nextStatus) => {
            if (Object.keys(status.metadata.getMap()).length > 0) onResponse();
            nextStatus(status);
          },
        }),
    });
}
