import type { ServiceDefinition } from '@grpc/grpc-js';
import type { Csi } from '../../src/csi/csi-proto.ts';

/** A service of CSI as servers and clients of grpc-js take it. */
export function grpcService(service: Csi['v1'][keyof Csi['v1']]): ServiceDefinition {
  const methods = Object.entries(service);
  return Object.fromEntries(
    methods.map(([name, { path, request, response }]) => [
      name,
      {
        path,
        requestStream: false,
        responseStream: false,
        requestSerialize: request.encode,
        requestDeserialize: request.decode,
        responseSerialize: response.encode,
        responseDeserialize: response.decode,
      },
    ]),
  );
}
