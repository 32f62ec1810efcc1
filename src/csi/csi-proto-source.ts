import '@grpc/proto-loader'; // makes google/protobuf/*.proto known to protobufjs, so that imports need no files
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';

let parsed: protobuf.INamespace | undefined;

/**
 * Reads `proto/csi.proto` into protobufjs's JSON form, options included, field names as written.
 *
 * A file of its own, since the bundler replaces it by one that returns the same JSON, parsed at build time. Here it is
 * parsed at the first call.
 *
 * @throws when the file is missing or does not parse.
 */
export function csiDescriptor(): protobuf.INamespace {
  return (parsed ??= parse());
}

function parse(): protobuf.INamespace {
  const root = new protobuf.Root();
  root.loadSync(fileURLToPath(new URL('../../proto/csi.proto', import.meta.url)), { keepCase: true });
  return root.resolveAll().toJSON();
}
