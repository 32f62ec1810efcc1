import type { Status } from '../client/api-error.ts';
import type { KubeObject } from '../kube-object.ts';
import { asBuffer } from '../cache/line-stream.ts';
import type { WatchEvent } from '../cache/watch-event.ts';
import { type ObjectDecoder, openEnvelope, type TypeMeta } from './envelope.ts';
import { type MessageDecoder, messageDecoder } from './message-decoder.ts';
import { PendingBytes } from './pending-bytes.ts';
import { MalformedMessageError, type Span } from './wire-reader.ts';

interface WatchEventMessage {
  type?: string;
  object?: { raw?: Span };
}

const decodeEvent = messageDecoder<WatchEventMessage>('WatchEvent');
const decodeMetadata = messageDecoder<KubeObject>('PartialObjectMetadata');
const decodeStatus = messageDecoder<Status>('Status');
/** The big-endian length before each event. */
const lengthBytes = 4;

/**
 * The events of a watch in protobuf. A last one without its end is dropped.
 *
 * @param options.kind - of the objects: an object of another kind has no metadata.
 * @param options.onChunk - called for each chunk before its events.
 * @throws {MalformedMessageError} for bytes that are no event.
 */
export async function* protobufEvents(
  body: AsyncIterable<Uint8Array>,
  options: { kind: string; decode: ObjectDecoder; onChunk?: () => void },
): AsyncGenerator<WatchEvent> {
  let frames: Frame[] = [];
  const pending = new PendingBytes((data, at) => {
    const start = at + lengthBytes;
    const end = start > data.length ? start : start + data.readUInt32BE(at);
    if (end > data.length) return at - end;
    frames.push({ data, start, end });
    return end;
  });
  for await (const chunk of body) {
    options.onChunk?.();
    pending.push(asBuffer(chunk));
    const complete = frames;
    frames = [];
    for (const frame of complete) yield readEvent(frame, options);
  }
}

/** An event without its length. */
interface Frame extends Span {
  data: Buffer;
}

function readEvent({ data, start, end }: Frame, options: { kind: string; decode: ObjectDecoder }): WatchEvent {
  const { type, object } = decodeEvent(data, start, end);
  if (type === undefined || object?.raw === undefined) throw new MalformedMessageError('a frame is not an event');
  const { typeMeta, message } = openEnvelope(data, object.raw);
  const read = decoderFor(type, typeMeta, options);
  const decoded = read?.(data, message.start, message.end);
  return { type, object: Object.assign(decoded ?? {}, typeMeta) as WatchEvent['object'] };
}

/** Undefined for an object of another kind. */
function decoderFor(
  type: string,
  typeMeta: TypeMeta,
  { kind, decode }: { kind: string; decode: ObjectDecoder },
): MessageDecoder<object> | ObjectDecoder | undefined {
  if (type === 'ERROR') return typeMeta.kind === 'Status' ? decodeStatus : undefined;
  if (typeMeta.kind !== kind) return undefined;
  return type === 'BOOKMARK' ? decodeMetadata : decode;
}
