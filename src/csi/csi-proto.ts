import { loadPackageDefinition } from '@grpc/grpc-js';
import { fromJSON } from '@grpc/proto-loader';
import type { Options, PackageDefinition } from '@grpc/proto-loader';
import protobuf from 'protobufjs';
import { csiDescriptor } from './csi-proto-source.ts';
import type { ProtoGrpcType } from './generated/csi.ts';

/**
 * How messages look in JavaScript; the generated types are made with the same choices (`scripts/proto.ts`):
 * int64 as decimal strings, enums by name, absent fields absent, and for each oneof a field with its name that
 * holds the name of the member that is set.
 */
export const csiMessageOptions = {
  keepCase: true,
  longs: String,
  enums: String,
  defaults: false,
  oneofs: true,
} as const satisfies Options;

/** The fields marked `csi_secret`, by message name without its package: `CreateVolumeRequest` has `secrets`. */
export type SecretFields = ReadonlyMap<string, ReadonlySet<string>>;

/** The CSI package, ready for clients and servers. */
export interface Csi {
  /** Client constructors by service, as in `new csi.v1.Controller(address, credentials)`. */
  readonly v1: ProtoGrpcType['csi']['v1'];
  /** Every service and message by full name. */
  readonly packageDefinition: PackageDefinition;
  /** What must be taken out of a message before it is logged (CSI spec, "Secrets Requirements"). */
  readonly secretFields: SecretFields;
}

/**
 * Loads package csi.v1. Takes about a tenth of a second: once per process is enough; a repeat gives an equal result.
 *
 * @throws when `proto/csi.proto` is missing or does not parse.
 */
export function loadCsi(): Csi {
  const descriptor = csiDescriptor();
  const packageDefinition = fromJSON(descriptor, csiMessageOptions);
  // grpc-js types its result as a tree of unknowns; the generated type describes this very package.
  const tree = loadPackageDefinition(packageDefinition) as unknown as ProtoGrpcType;
  return { v1: tree.csi.v1, packageDefinition, secretFields: secretFields(descriptor) };
}

/**
 * Finds the fields marked `csi_secret` (CSI spec, "Secrets Requirements") from a descriptor in protobufjs's JSON
 * form. Message names are relative to package csi.v1, nested ones joined by a dot.
 */
export function secretFields(descriptor: protobuf.INamespace): SecretFields {
  const found = new Map<string, ReadonlySet<string>>();
  const visit = (namespace: protobuf.NamespaceBase): void => {
    for (const nested of namespace.nestedArray) {
      if (nested instanceof protobuf.Type) {
        const secret = nested.fieldsArray.filter((field) => field.options?.['(csi_secret)'] === true);
        const name = nested.fullName.replace(/^\.csi\.v1\./, '');
        if (secret.length > 0) found.set(name, new Set(secret.map((field) => field.name)));
      }
      if (nested instanceof protobuf.Namespace) visit(nested);
    }
  };
  visit(protobuf.Root.fromJSON(descriptor).resolveAll().lookup('csi.v1') as protobuf.Namespace);
  return found;
}
