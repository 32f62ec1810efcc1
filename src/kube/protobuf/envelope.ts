/** What the protobuf coding puts around an object (Kubernetes API concepts, "Kubernetes Protobuf encoding"). */
import type { KubeObject, Status } from '../kube-object.ts';
import { MalformedMessageError, messageDecoder, type Span } from './message-decoder.ts';

const contentType = 'application/vnd.kubernetes.protobuf';

/** What a request accepts that can read both codings: what has no protobuf, such as custom resources, comes as JSON. */
export const acceptProtobuf = `${contentType}, application/json`;

/** The bytes before every Unknown message: `k8s` and a zero. */
const magic = 0x6b387300;
export const magicBytes = 4;

/** Metadata of the Unknown message. */
export interface TypeMeta {
  apiVersion?: string;
  kind?: string;
}

/** The Unknown message: an object of any kind. */
export interface Unknown {
  typeMeta?: TypeMeta;
  raw?: Span;
  contentEncoding?: string;
  contentType?: string;
}

const decodeUnknown = messageDecoder<Unknown>('Unknown');
const decodeStatus = messageDecoder<Status>('Status');

/** Whether the response with this header `Content-Type` is in protobuf. */
export function isProtobuf(header: string | string[] | undefined): boolean {
  return typeof header === 'string' && header.startsWith(contentType);
}

/** The type of an object and where its message is. @throws {MalformedMessageError} */
export function openEnvelope(bytes: Buffer, { start, end }: Span): { typeMeta: TypeMeta; message: Span } {
  if (end - start < magicBytes) throw new MalformedMessageError('an object ends early');
  const unknown = decodeUnknown(bytes, checkMagic(bytes, start), end);
  checkEncoding(unknown);
  return { typeMeta: unknown.typeMeta ?? {}, message: unknown.raw ?? { start: end, end } };
}

/** @returns the position after the prefix, which is within the bytes. @throws {MalformedMessageError} for another one. */
export function checkMagic(bytes: Buffer, at: number): number {
  if (bytes.readUInt32BE(at) !== magic) throw new MalformedMessageError('the prefix k8s is missing');
  return at + magicBytes;
}

/** @throws {MalformedMessageError} for a message that is compressed, or in another coding. */
export function checkEncoding({ contentEncoding, contentType: type }: Unknown): void {
  if (contentEncoding !== undefined) throw new MalformedMessageError(`the message is encoded: ${contentEncoding}`);
  if (type !== undefined && type !== contentType) throw new MalformedMessageError(`the message is ${type}`);
}

/** The Status in a failure response; undefined for anything else. */
export function readStatus(bytes: Buffer): Status | undefined {
  try {
    const { typeMeta, message } = openEnvelope(bytes, { start: 0, end: bytes.length });
    if (typeMeta.kind !== 'Status' || typeMeta.apiVersion !== 'v1') return undefined;
    return { ...typeMeta, ...decodeStatus(bytes, message.start, message.end) };
  } catch {
    return undefined;
  }
}

/** Reads the message of one object of a resource, a part of the bytes. @throws {MalformedMessageError} */
export type ObjectDecoder = (bytes: Buffer, start: number, end: number) => KubeObject;
