/** Package csi.v1: its calls, and how their messages are encoded. */
import { isUtf8 } from 'node:buffer';
import { fromJSON, type MethodDefinition, type Options } from '@grpc/proto-loader';
import protobuf from 'protobufjs';
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

type Method<Request, Response, RequestOutput, ResponseOutput> = MethodDefinition<
  Request,
  Response,
  RequestOutput,
  ResponseOutput
>;

/** The services of CSI that a provisioner calls. */
export interface Csi {
  readonly v1: {
    readonly Identity: IdentityDefinition;
    readonly Controller: ControllerDefinition;
    readonly Node: NodeDefinition;
  };
  /** What must be taken out of a message before it is logged (CSI spec, "Secrets Requirements"). */
  readonly secretFields: SecretFields;
  /** The bytes of a request, without fields that are at their default. @throws {Error} when it does not fit its message. */
  encode<Request extends object, A, B, C>(method: Method<Request, A, B, C>, request: Request): Buffer;
}

/**
 * Loads package csi.v1. Once per process is enough; a repeat gives an equal result.
 *
 * @throws when `proto/csi.proto` is missing or does not parse.
 */
export function loadCsi(): Csi {
  const services = fromJSON(csiDescriptor(), csiMessageOptions);
  const types = protobuf.Root.fromJSON(csiDescriptor()).resolveAll().lookup('csi.v1') as protobuf.Namespace;
  // proto-loader knows the services by name only; the generated types describe this very package
  const service = <Name extends keyof Csi['v1']>(name: Name): Csi['v1'][Name] =>
    services[`csi.v1.${name}`] as unknown as Csi['v1'][Name];
  return {
    v1: { Identity: service('Identity'), Controller: service('Controller'), Node: service('Node') },
    secretFields: secretFields(types),
    encode: (method, request) =>
      method.requestSerialize(withoutDefaults(types.lookupType(messageName(method.requestType)), request)),
  };
}

/** The name of a message, without its package. */
export function messageName({ type }: { type: object }): string {
  return (type as { name?: string }).name ?? '';
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
export function decodeStrictly<T>(decode: (body: Buffer) => T, body: Buffer): T {
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
