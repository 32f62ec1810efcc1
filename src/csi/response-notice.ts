import { InterceptingCall, type Interceptor } from '@grpc/grpc-js';

/**
 * Notices when the other side responds: with headers, or with a Trailers-Only response, whose metadata have at least `content-type`. A status
 * that grpc-js has made itself has no metadata, whatever its code is.
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
