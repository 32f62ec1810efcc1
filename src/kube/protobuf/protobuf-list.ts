import { nextSlice, sliceSpent } from '../../base/event-loop.ts';
import { asBuffer } from '../cache/line-stream.ts';
import type { ListEnvelope, ListReader } from '../cache/list-stream.ts';
import { checkEncoding, checkMagic, magicBytes, type ObjectDecoder, type Unknown } from './envelope.ts';
import { messageDecoder } from './message-decoder.ts';
import { PendingBytes } from './pending-bytes.ts';
import { MalformedMessageError, type Span, WireReader, wireType } from './wire-reader.ts';

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
