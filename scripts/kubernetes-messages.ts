import '@grpc/proto-loader'; // makes google/protobuf/*.proto known to protobufjs, so that imports need no files
import path from 'node:path';
import { format, resolveConfig } from 'prettier';
import protobuf from 'protobufjs';

/** The table of messages in proto/kubernetes.proto, as the text of the source file `file`. */
export async function kubernetesMessages(file: string): Promise<string> {
  const root = new protobuf.Root();
  root.loadSync(path.join(import.meta.dirname, '../proto/kubernetes.proto'), { keepCase: true });
  root.resolveAll();
  const messages = (root.lookup('k8s') as protobuf.Namespace).nestedArray
    .filter((object) => object instanceof protobuf.Type)
    .map(({ name, fieldsArray }) => `${name}: ${JSON.stringify(fieldsArray.map(row))},`);
  const text = `// Generated from proto/kubernetes.proto: node scripts/proto.ts

/** Messages of the Kubernetes API by name, each field as number, name in JSON, type, and when it is there. */
export const kubernetesMessages = {
  ${messages.join('\n  ')}
} as const;
`;
  return await format(text, { ...(await resolveConfig(file)), filepath: file });
}

function row(field: protobuf.Field): [id: number, name: string, type: string, fill: string] {
  return [field.id, field.name, field.type, fill(field)];
}

function fill({ map, repeated, options }: protobuf.Field): string {
  if (map) return 'map';
  if (options?.['(json_inline)'] === true) return 'inline';
  const nullable = options?.['(json_null)'] === true;
  if (repeated) return nullable ? 'nullable list' : 'list';
  if (nullable) return 'nullable';
  return options?.['proto3_optional'] === true ? 'sent' : 'nonempty';
}
