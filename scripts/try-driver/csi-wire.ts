/** The unary methods of CSI, and a client that needs no generated types. */
import { Client, credentials, type Metadata, type ServiceError } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { csiDescriptor } from '../../src/csi/csi-proto-source.ts';

export interface CsiMethod {
  /** Such as `CreateVolume`. */
  name: string;
  /** Such as `/csi.v1.Controller/CreateVolume`. */
  path: string;
  service: string;
  request: protobuf.Type;
  response: protobuf.Type;
}

export type Message = Record<string, unknown>;

/** All unary methods. */
export function csiMethods(): CsiMethod[] {
  const v1 = protobuf.Root.fromJSON(csiDescriptor()).resolveAll().lookup('csi.v1') as protobuf.Namespace;
  const services = v1.nestedArray.filter((nested) => nested instanceof protobuf.Service);
  return services.flatMap((service) =>
    service.methodsArray
      .filter(({ requestStream, responseStream }) => requestStream !== true && responseStream !== true)
      .map((method) => ({
        name: method.name,
        path: `/csi.v1.${service.name}/${method.name}`,
        service: service.name,
        request: method.resolvedRequestType!,
        response: method.resolvedResponseType!,
      })),
  );
}

/** A message as the log has it: enums by name, int64 as text, absent fields absent. */
export function decoded(type: protobuf.Type, bytes: Uint8Array): Message {
  return type.toObject(type.decode(bytes), { longs: String, enums: String, defaults: false });
}

export function identity(bytes: Buffer): Buffer {
  return bytes;
}

/** Calls a driver directly, past the proxy. */
export class CsiClient implements Disposable {
  readonly #client: Client;
  readonly #methods = new Map(csiMethods().map((method) => [method.name, method]));

  /** @param address - `unix:///...`. */
  constructor(address: string) {
    this.#client = new Client(address, credentials.createInsecure());
  }

  /** @throws a `ServiceError`, also after 10 s. */
  async call(name: string, request: Message = {}): Promise<Message> {
    const { path, request: requestType, response } = this.#methods.get(name)!;
    const bytes = Buffer.from(requestType.encode(requestType.fromObject(request)).finish());
    return decoded(response, await this.forward(path, bytes, undefined, Date.now() + 10_000).answer);
  }

  /** Passes bytes on as they are. */
  forward(path: string, bytes: Buffer, metadata: Metadata | undefined, deadline: Date | number): Forwarded {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    const done = (error: ServiceError | null, answer?: Buffer): void =>
      error === null ? resolve(answer ?? Buffer.alloc(0)) : reject(error);
    const call =
      metadata === undefined
        ? this.#client.makeUnaryRequest(path, identity, identity, bytes, { deadline }, done)
        : this.#client.makeUnaryRequest(path, identity, identity, bytes, metadata, { deadline }, done);
    return { answer: promise, cancel: () => call.cancel() };
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}

interface Forwarded {
  answer: Promise<Buffer>;
  cancel: () => void;
}
