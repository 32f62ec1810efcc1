/**
 * Package csi.v1: its calls, and how their messages are encoded. protobufjs reads the descriptor; `fromJSON` of `@grpc/proto-loader` also
 * makes descriptors of all messages, for reflection, which takes a quarter of the CPU of a start (docs/development.md, "Libraries as published").
 */
import { isUtf8 } from 'node:buffer';
import type { MethodDefinition, Options } from '@grpc/proto-loader';
import protobuf from 'protobufjs/light.js';
import { csiDescriptor } from './csi-proto-source.ts';
import type { ControllerDefinition } from './generated/csi/v1/Controller.ts';
import type { IdentityDefinition } from './generated/csi/v1/Identity.ts';
import type { NodeDefinition } from './generated/csi/v1/Node.ts';

/**
 * How messages look in JavaScript; the generated types are made with the same choices (`scripts/proto.ts`):
 * int64 as decimal strings, enums by name, absent fields absent, and for each oneof a field with its name that
 * holds the name of the member that is set.
 */
const csiMessageOptions = {
  keepCase: true,
  longs: String,
  enums: String,
  defaults: false,
  oneofs: true,
} as const satisfies Options;

/** The fields marked `csi_secret`, by message name without its package: `CreateVolumeRequest` has `secrets`. */
export type SecretFields = ReadonlyMap<string, ReadonlySet<string>>;

export interface Message<Input, Output> {
  /** Without its package. */
  readonly name: string;
  /** Leaves out fields that are at their default. @throws {Error} when the values do not fit the message. */
  readonly encode: (message: Input) => Buffer;
  /** @throws {Error} for bytes that are no such message, or have a text that is not UTF-8. */
  readonly decode: (bytes: Buffer) => Output;
}

/** One call of a service, with its messages. */
export interface Method<Request, Response, RequestOutput, ResponseOutput> {
  /** Such as `/csi.v1.Controller/CreateVolume`. */
  readonly path: string;
  readonly request: Message<Request, RequestOutput>;
  readonly response: Message<Response, ResponseOutput>;
}

/** The methods of a service that the generated types describe. */
type Service<Definition> = {
  readonly [Name in keyof Definition]: Definition[Name] extends MethodDefinition<infer A, infer B, infer C, infer D>
    ? Method<A, B, C, D>
    : never;
};

/** The services of CSI that a provisioner calls. */
export interface Csi {
  readonly v1: {
    readonly Identity: Service<IdentityDefinition>;
    readonly Controller: Service<ControllerDefinition>;
    readonly Node: Service<NodeDefinition>;
  };
  /** What must be taken out of a message before it is logged (CSI spec, "Secrets Requirements"). */
  readonly secretFields: SecretFields;
}

let loaded: Csi | undefined;

/**
 * Loads package csi.v1, once per process.
 *
 * @throws when `proto/csi.proto` is missing or does not parse.
 */
export function loadCsi(): Csi {
  loaded ??= readCsi();
  return loaded;
}

function readCsi(): Csi {
  const v1 = protobuf.Root.fromJSON(csiDescriptor()).resolveAll().lookup('csi.v1') as protobuf.Namespace;
  // protobufjs knows the services by name only; the generated types describe this very package
  const service = <Name extends keyof Csi['v1']>(name: Name): Csi['v1'][Name] =>
    serviceOf(v1.lookupService(name)) as Csi['v1'][Name];
  return {
    v1: { Identity: service('Identity'), Controller: service('Controller'), Node: service('Node') },
    secretFields: secretFields(v1),
  };
}

function serviceOf(service: protobuf.Service): object {
  const methods = service.methodsArray.map(({ name, resolvedRequestType, resolvedResponseType }) => {
    if (resolvedRequestType === null || resolvedResponseType === null) throw new Error(`${name}: not resolved`);
    const path = `/${service.fullName.slice(1)}/${name}`;
    return [name, { path, request: messageOf(resolvedRequestType), response: messageOf(resolvedResponseType) }];
  });
  return Object.fromEntries(methods) as object;
}

/** The code that reads and writes a message is made when it is first used. */
function messageOf(type: protobuf.Type): Message<object, object> {
  return {
    name: type.name,
    encode: (message) => type.encode(type.fromObject(withoutDefaults(type, message))).finish() as Buffer,
    decode: (bytes) => decodeStrictly((body) => type.toObject(type.decode(body), csiMessageOptions), bytes),
  };
}

/** Finds the fields marked `csi_secret` in a package. Nested messages' names are joined by a dot. */
function secretFields(v1: protobuf.Namespace): SecretFields {
  const found = new Map<string, ReadonlySet<string>>();
  const visit = (namespace: protobuf.NamespaceBase): void => {
    for (const nested of namespace.nestedArray) {
      if (nested instanceof protobuf.Type) {
        const secret = nested.fieldsArray.filter((field) => field.options?.['(csi_secret)'] === true);
        const name = nested.fullName.slice(v1.fullName.length + 1);
        if (secret.length > 0) found.set(name, new Set(secret.map((field) => field.name)));
      }
      if (nested instanceof protobuf.Namespace) visit(nested);
    }
  };
  visit(v1);
  return found;
}

/**
 * Leaves out what is at its default: protobufjs writes whatever is set, other implementations do not (protobuf,
 * "Default Field Values"). Messages stay, also empty ones, and so do members of a oneof and entries of lists and maps.
 */
function withoutDefaults<T extends object>(type: protobuf.Type, message: T): T {
  const kept = Object.entries(message as Record<string, unknown>).flatMap(([name, value]): [string, unknown][] => {
    const field = type.fields[name];
    if (field === undefined || field.map || value === undefined || value === null) return [[name, value]];
    const { resolvedType } = field;
    if (resolvedType instanceof protobuf.Type) {
      const each = (one: object): object => withoutDefaults(resolvedType, one);
      return [[name, Array.isArray(value) ? (value as object[]).map(each) : each(value)]];
    }
    const isKept = field.repeated || field.partOf !== null || !defaultsOf(field).has(value);
    return isKept ? [[name, value]] : [];
  });
  return Object.fromEntries(kept) as T;
}

/** A scalar's default, and that of an enum by its name; int64 are texts or numbers. */
function defaultsOf({ typeDefault, resolvedType }: protobuf.Field): ReadonlySet<unknown> {
  if (typeof typeDefault === 'string' || typeof typeDefault === 'boolean') return new Set([typeDefault]);
  return new Set([0, '0', resolvedType instanceof protobuf.Enum ? resolvedType.valuesById[0] : 0]);
}

/** What a lenient decoder substitutes for bytes that are not UTF-8. */
const replacement = '\uFFFD';
const encodedReplacement = Buffer.from(replacement);

/**
 * Decodes a message and refuses strings that are not UTF-8, as other protobuf implementations do: an id in which bytes
 * were replaced would name no volume of the driver (protobuf, "Scalar Value Types").
 *
 * @throws {Error} `string field contains invalid UTF-8`, and what `decode` throws.
 */
function decodeStrictly<T>(decode: (body: Buffer) => T, body: Buffer): T {
  const message = decode(body);
  if (!isUtf8(body) && replacements(message) > sentReplacements(body)) {
    throw new Error('string field contains invalid UTF-8');
  }
  return message;
}

/** Replacement characters in all strings of a message. */
function replacements(value: unknown): number {
  if (typeof value === 'string') return value.split(replacement).length - 1;
  if (typeof value !== 'object' || value === null) return 0;
  return Object.entries(value).reduce((sum, [key, each]) => sum + replacements(key) + replacements(each), 0);
}

/** Those that the sender meant. */
function sentReplacements(body: Buffer): number {
  let count = 0;
  for (let at = body.indexOf(encodedReplacement); at >= 0; at = body.indexOf(encodedReplacement, at + 3)) count += 1;
  return count;
}
