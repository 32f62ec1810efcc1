import { nextSlice, sliceSpent } from '../../base/event-loop.ts';
import type { KubeObject, Status, WatchEvent } from '../kube-object.ts';
import {
  checkEncoding,
  checkMagic,
  magicBytes,
  type ObjectDecoder,
  openEnvelope,
  type TypeMeta,
  type Unknown,
} from '../protobuf/envelope.ts';
import {
  MalformedMessageError,
  messageDecoder,
  type MessageDecoder,
  type Span,
  WireReader,
  wireType,
} from '../protobuf/message-decoder.ts';
import { asBuffer, type ListEnvelope, type ListReader } from './list-stream.ts';

/** No object of the API is larger; a garbled length must not have us wait for gigabytes. */
const maxElementBytes = 64 * 1024 * 1024;

/** Splits chunks into elements that may lie in several of them. */
class PendingBytes {
  readonly #take: (data: Buffer, at: number) => number;
  #pieces: Buffer[] = [];
  #length = 0;
  #needed = 1;

  /**
   * @param take - takes the element at a position. Returns the position after it, or, negative, how many bytes from its
   * start are needed at least.
   */
  constructor(take: (data: Buffer, at: number) => number) {
    this.#take = take;
  }

  /** Bytes of an element that is not complete. */
  get length(): number {
    return this.#length;
  }

  /** Takes the elements that are complete with this chunk. @throws {MalformedMessageError} for one that is too long. */
  push(chunk: Buffer): void {
    this.#pieces.push(chunk);
    this.#length += chunk.length;
    if (this.#length < this.#needed) return;
    const data = this.#pieces.length === 1 ? chunk : Buffer.concat(this.#pieces, this.#length);
    let at = 0;
    this.#needed = 1;
    while (at < data.length) {
      const next = this.#take(data, at);
      if (next < 0) {
        this.#needed = -next;
        break;
      }
      at = next;
    }
    if (this.#needed > maxElementBytes) throw new MalformedMessageError(`an element has ${this.#needed} bytes`);
    this.#pieces = at === data.length ? [] : [data.subarray(at)];
    this.#length = data.length - at;
  }
}

const decodeUnknown = messageDecoder<Unknown>('Unknown');
const decodeListMeta = messageDecoder<NonNullable<ListEnvelope['metadata']>>('ListMeta');

/** The list, in the Unknown message. */
const rawField = 2;
/** Fields that all lists have. */
const metadataField = 1;
const itemsField = 2;
/** Max bytes of a tag and a length. */
const maxHeaderBytes = 20;

/**
 * Reads the items of a list in protobuf while the response arrives, so that no list is ever in memory whole.
 *
 * @param options.kind - of the list: the items of another one are passed over.
 * @returns everything of the response but its items.
 * @throws {MalformedMessageError} when the bytes end early or are no list.
 */
export async function readProtobufList(
  body: AsyncIterable<Uint8Array>,
  options: ListReader & { kind: string; decode: ObjectDecoder },
): Promise<ListEnvelope> {
  const walk = new ListWalk(options);
  const pending = new PendingBytes((data, at) => walk.take(data, at));
  for await (const chunk of body) {
    if (sliceSpent()) await nextSlice();
    pending.push(asBuffer(chunk));
  }
  if (pending.length > 0 || !walk.isComplete) throw new MalformedMessageError('the list ends early');
  return walk.envelope;
}

/** A field of a message whose bytes may still be on their way. */
interface FieldSpan extends Span {
  id: number;
}

/** Goes through the Unknown message and the list inside it, field by field. */
class ListWalk {
  readonly envelope: ListEnvelope = {};
  readonly #options: ListReader & { kind: string; decode: ObjectDecoder };
  #begun = false;
  #sawList = false;
  /** Bytes of the list that are still to come; 0 outside of it. */
  #left = 0;

  constructor(options: ListReader & { kind: string; decode: ObjectDecoder }) {
    this.#options = options;
  }

  get isComplete(): boolean {
    return this.#sawList && this.#left === 0;
  }

  /** As `PendingBytes` has it. */
  take(data: Buffer, at: number): number {
    if (!this.#begun) return this.#begin(data, at);
    const field = fieldAt(data, at);
    if (field === undefined) return at - data.length - 1;
    if (this.#left > 0) return this.#inside(data, at, field);
    if (field.id === rawField) {
      // without a kind before them the items would be skipped, and the list would seem empty
      if (this.#sawList || this.envelope.kind === undefined) {
        throw new MalformedMessageError('the parts of the envelope are not in their order');
      }
      this.#sawList = true;
      this.#left = field.end - field.start;
      return field.start;
    }
    if (field.end > data.length) return at - field.end;
    const part = decodeUnknown(data, at, field.end);
    checkEncoding(part);
    Object.assign(this.envelope, part.typeMeta);
    return field.end;
  }

  #begin(data: Buffer, at: number): number {
    if (data.length - at < magicBytes) return -magicBytes;
    this.#begun = true;
    return checkMagic(data, at);
  }

  #inside(data: Buffer, at: number, { id, start, end }: FieldSpan): number {
    if (end - at > this.#left) throw new MalformedMessageError('an item is longer than the list');
    if (end > data.length) return at - end;
    this.#left -= end - at;
    const { kind, decode, onItem, onMetadata } = this.#options;
    if (id === itemsField && this.envelope.kind === kind) onItem(decode(data, start, end));
    else if (id === metadataField) {
      this.envelope.metadata = decodeListMeta(data, start, end);
      onMetadata?.(this.envelope.metadata);
    }
    return end;
  }
}

/** The field at a position; undefined when not even its length has come. */
function fieldAt(data: Buffer, at: number): FieldSpan | undefined {
  const reader = new WireReader(data, at);
  try {
    const tag = reader.unsigned();
    if ((tag & 7) !== wireType.bytes) {
      const start = reader.position;
      reader.skip(tag & 7);
      return { id: tag >>> 3, start, end: reader.position };
    }
    const length = reader.unsigned();
    return { id: tag >>> 3, start: reader.position, end: reader.position + length };
  } catch (error) {
    if (data.length - at >= maxHeaderBytes) throw error;
    return undefined;
  }
}

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
