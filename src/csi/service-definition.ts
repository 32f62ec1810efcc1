import type { MessageTypeDefinition, MethodDefinition, Options, ServiceDefinition } from '@grpc/proto-loader';
import protobuf from 'protobufjs/light.js';

type MethodOptions = MethodDefinition<object, object>['options'];

/**
 * What grpc-js needs to know of a service, as `@grpc/proto-loader` would make it, but without descriptors: those only
 * serve reflection, and to make them for all messages takes most of a process's start and several megabytes.
 *
 * @param service - of a root whose names are resolved.
 * @param options - how messages look in JavaScript.
 */
export function serviceDefinition(service: protobuf.Service, options: Options): ServiceDefinition {
  const path = `/${service.fullName.slice(1)}`;
  return Object.fromEntries(
    service.methodsArray.map((method) => [method.name, methodDefinition(method, `${path}/${method.name}`, options)]),
  );
}

/** Nobody reads them. The package's own enum of idempotency levels would be loaded for nothing. */
const unsetOptions = {
  deprecated: false,
  idempotency_level: 'IDEMPOTENCY_UNKNOWN',
  uninterpreted_option: [],
} as unknown as MethodOptions;

function methodDefinition(method: protobuf.Method, path: string, options: Options): MethodDefinition<object, object> {
  const { resolvedRequestType, resolvedResponseType } = method;
  if (resolvedRequestType === null || resolvedResponseType === null) throw new Error(`${path}: not resolved`);
  const request = messageDefinition(resolvedRequestType, options);
  const response = messageDefinition(resolvedResponseType, options);
  return {
    path,
    requestStream: method.requestStream === true,
    responseStream: method.responseStream === true,
    requestSerialize: request.serialize,
    requestDeserialize: request.deserialize,
    responseSerialize: response.serialize,
    responseDeserialize: response.deserialize,
    originalName: method.name.charAt(0).toLowerCase() + method.name.slice(1),
    requestType: request,
    responseType: response,
    options: unsetOptions,
  };
}

/** The code that reads and writes a message is made when it is first used. */
function messageDefinition(type: protobuf.Type, options: Options): MessageTypeDefinition<object, object> {
  return {
    format: 'Protocol Buffer 3 DescriptorProto',
    type: { name: type.name },
    fileDescriptorProtos: [],
    serialize: (message) => type.encode(withoutDefaults(type, type.fromObject(message))).finish() as Buffer,
    deserialize: (bytes) => type.toObject(type.decode(bytes), options),
  };
}

/**
 * Takes out what is at its default: protobufjs writes whatever is set, other implementations leave it out (protobuf,
 * "Default Field Values"). Messages stay, also empty ones, and so do entries of lists and maps.
 */
function withoutDefaults<T extends object>(type: protobuf.Type, message: T): T {
  const values = message as Record<string, unknown>;
  for (const field of type.fieldsArray) {
    const value = values[field.name];
    if (value === undefined || value === null || field.map) continue;
    if (field.resolvedType instanceof protobuf.Type) {
      for (const each of [value].flat() as object[]) withoutDefaults(field.resolvedType, each);
    } else if (!field.repeated && field.partOf === null && isSame(value, field.typeDefault)) {
      Reflect.deleteProperty(values, field.name);
    }
  }
  return message;
}

/** Scalars of one type; int64 are objects. */
function isSame(one: unknown, other: unknown): boolean {
  return String(one) === String(other);
}
