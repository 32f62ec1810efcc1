import { makeGenericClientConstructor, type Client } from '@grpc/grpc-js';
import type { Options } from '@grpc/proto-loader';
import protobuf from 'protobufjs/light.js';
import { csiDescriptor } from './csi-proto-source.ts';
import type { ControllerClient, ControllerDefinition } from './generated/csi/v1/Controller.ts';
import type { IdentityClient, IdentityDefinition } from './generated/csi/v1/Identity.ts';
import type { NodeClient, NodeDefinition } from './generated/csi/v1/Node.ts';
import { serviceDefinition } from './service-definition.ts';

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

/** A client's constructor, with the methods of its service. */
type ServiceClient<ServiceMethods, Definition> = (new (
  ...args: ConstructorParameters<typeof Client>
) => ServiceMethods) & { service: Definition };

/** The services of CSI that a provisioner calls, ready for clients and servers. */
export interface Csi {
  /** Client constructors by service, as in `new csi.v1.Controller(address, credentials)`. */
  readonly v1: {
    readonly Identity: ServiceClient<IdentityClient, IdentityDefinition>;
    readonly Controller: ServiceClient<ControllerClient, ControllerDefinition>;
    readonly Node: ServiceClient<NodeClient, NodeDefinition>;
  };
  /** What must be taken out of a message before it is logged (CSI spec, "Secrets Requirements"). */
  readonly secretFields: SecretFields;
}

/**
 * Loads package csi.v1. Once per process is enough; a repeat gives an equal result.
 *
 * @throws when `proto/csi.proto` is missing or does not parse.
 */
export function loadCsi(): Csi {
  const v1 = protobuf.Root.fromJSON(csiDescriptor()).resolveAll().lookup('csi.v1') as protobuf.Namespace;
  // protobufjs knows the services by name only; the generated types describe this very package.
  const client = <Name extends keyof Csi['v1']>(name: Name): Csi['v1'][Name] =>
    makeGenericClientConstructor(
      serviceDefinition(v1.lookupService(name), csiMessageOptions),
      name,
    ) as unknown as Csi['v1'][Name];
  return {
    v1: { Identity: client('Identity'), Controller: client('Controller'), Node: client('Node') },
    secretFields: secretFields(v1),
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
