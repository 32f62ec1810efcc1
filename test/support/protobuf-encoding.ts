/** Answers in protobuf, encoded by another implementation than the one under test. */
import '@grpc/proto-loader'; // makes google/protobuf/*.proto known to protobufjs, so that imports need no files
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';

const root = new protobuf.Root();
root.loadSync(fileURLToPath(new URL('../../proto/kubernetes.proto', import.meta.url)), { keepCase: true });
root.resolveAll();

/** The definition of a message in proto/kubernetes.proto. */
export function messageType(name: string): protobuf.Type {
  return root.lookupType(`k8s.${name}`);
}

/** The bytes of a message, without an envelope. */
export function encodeMessage(name: string, fields: object): Buffer {
  return Buffer.from(messageType(name).encode(fields).finish());
}

/** A message with the envelope of an answer. */
export function envelope(
  kind: string,
  raw: Uint8Array,
  options: { apiVersion?: string; encoding?: string } = {},
): Buffer {
  const { apiVersion = 'v1', encoding } = options;
  const unknown = { typeMeta: { apiVersion, kind }, raw, ...(encoding !== undefined && { contentEncoding: encoding }) };
  return Buffer.concat([Buffer.from('k8s\0', 'latin1'), encodeMessage('Unknown', unknown)]);
}

/** A list in an envelope; its items are messages. */
export function encodeList(kind: string, metadata: object, items: readonly Buffer[]): Buffer {
  const writer = protobuf.Writer.create();
  writer.uint32(0x0a).bytes(encodeMessage('ListMeta', metadata));
  for (const item of items) writer.uint32(0x12).bytes(item);
  return envelope(kind, writer.finish());
}

/** One event of a watch with the length before it; `object` is in an envelope. */
export function encodeEvent(type: string, object: Buffer): Buffer {
  const event = encodeMessage('WatchEvent', { type, object: { raw: object } });
  const length = Buffer.alloc(4);
  length.writeUInt32BE(event.length);
  return Buffer.concat([length, event]);
}

/** A Status in an envelope. */
export function encodeStatus(status: object): Buffer {
  return envelope('Status', encodeMessage('Status', status));
}
