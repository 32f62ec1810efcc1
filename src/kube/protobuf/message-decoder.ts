/**
 * Reads messages of the Kubernetes API into the form that they have in JSON: empty fields absent where JSON leaves them
 * out, times and quantities as texts. Fields that are not selected, and those that proto/kubernetes.proto does not have,
 * are passed over.
 */
import { kubernetesMessages } from './kubernetes-messages.ts';

/** One field of a message: number, name in JSON, type, and when it is there. */
type FieldRow = readonly [
  id: number,
  name: string,
  type: string,
  fill: 'nonempty' | 'sent' | 'nullable' | 'list' | 'nullable list' | 'map' | 'inline',
];

const rows: Readonly<Record<string, readonly FieldRow[]>> = kubernetesMessages;

/** A message in proto/kubernetes.proto. */
export type MessageName = keyof typeof kubernetesMessages;

/** Which fields are read: of a message by name, of a map by key; `true` for all of the value. */
export interface Selection {
  readonly [name: string]: true | Selection;
}

/** Reads one message, by default all of the bytes. Fields of type `bytes` are a `Span`. @throws {MalformedMessageError} */
export type MessageDecoder<T> = (bytes: Buffer, start?: number, end?: number) => T;

interface Time {
  seconds?: number;
  nanos?: number;
}

type Fields = Record<string, unknown>;
/** Reads the value at the reader's position. */
type ReadValue = (reader: WireReader) => unknown;
type ReadField = (reader: WireReader, into: Fields) => void;

/** What is read of a message, by field number. */
interface MessageReader {
  readonly wires: (number | undefined)[];
  readonly fields: (ReadField | undefined)[];
  /** Fields that are `null` in JSON unless they are sent. */
  readonly nulls: string[];
}

/**
 * Makes the decoder of a message. Once per message and selection is enough.
 *
 * @param selection - what is read of it. Default: everything in proto/kubernetes.proto.
 */
export function messageDecoder<T>(name: MessageName, selection: true | Selection = true): MessageDecoder<T> {
  const message = messageReader(name, selection);
  return (bytes, start = 0, end = bytes.length) => {
    const into: Fields = {};
    readFields(new WireReader(bytes, start), end, message, into);
    return into as T;
  };
}

const wholeMessages = new Map<string, MessageReader>();

function messageReader(name: string, selection: true | Selection): MessageReader {
  const known = selection === true ? wholeMessages.get(name) : undefined;
  if (known !== undefined) return known;
  const message: MessageReader = { wires: [], fields: [], nulls: [] };
  for (const row of rows[name] ?? []) {
    const [id, field, , fill] = row;
    const selected = fill === 'inline' ? selection : selectedPart(selection, field);
    if (selected === undefined) continue;
    message.wires[id] = wireTypeOf(row);
    message.fields[id] = fieldReader(row, selected);
    if (fill.startsWith('nullable')) message.nulls.push(field);
  }
  if (selection === true) wholeMessages.set(name, message);
  return message;
}

function selectedPart(selection: true | Selection, name: string): true | Selection | undefined {
  if (selection === true) return true;
  return Object.hasOwn(selection, name) ? selection[name] : undefined;
}

function wireTypeOf([, , type, fill]: FieldRow): number {
  const isNumber = type === 'bool' || type === 'int32' || type === 'int64';
  return isNumber && fill !== 'map' ? wireType.varint : wireType.bytes;
}

function fieldReader([, name, type, fill]: FieldRow, selection: true | Selection): ReadField {
  if (fill === 'map') return mapReader(name, valueReader(type, true), selection);
  if (fill === 'inline') {
    const part = messageReader(type, selection);
    return (reader, into) => readFields(reader, reader.end(), part, into);
  }
  const read = valueReader(type, selection);
  if (fill === 'list' || fill === 'nullable list') {
    return (reader, into) => {
      const value = read(reader);
      const list = into[name] as unknown[] | undefined | null;
      if (list) list.push(value);
      else into[name] = [value];
    };
  }
  const keepsEmpty = fill === 'sent' || fill === 'nullable';
  return (reader, into) => {
    const value = read(reader);
    if (value === undefined) return;
    if (keepsEmpty || (value !== '' && value !== 0 && value !== false)) into[name] = value;
  };
}

function valueReader(type: string, selection: true | Selection): ReadValue {
  if (type === 'string') return (reader) => reader.text();
  if (type === 'bool') return (reader) => reader.unsigned() !== 0;
  if (type === 'int32' || type === 'int64') return (reader) => reader.signed();
  if (type === 'bytes') return (reader) => reader.span();
  const message = messageReader(type, isText(type) || selection);
  const readMessage = (reader: WireReader): Fields => {
    const into: Fields = {};
    readFields(reader, reader.end(), message, into);
    return into;
  };
  if (type === 'Time') return (reader) => timeText(readMessage(reader));
  if (type === 'Quantity') return (reader) => readMessage(reader)['string'] ?? '0';
  return readMessage;
}

/** Messages that are a text in JSON. */
function isText(type: string): boolean {
  return type === 'Time' || type === 'Quantity';
}

/** @returns undefined for the zero time, which is none. */
function timeText({ seconds = 0, nanos = 0 }: Time): string | undefined {
  if (seconds === 0 && nanos === 0) return undefined;
  const time = new Date(seconds * 1000);
  if (Number.isNaN(time.getTime())) throw new MalformedMessageError(`there is no time ${seconds} s`);
  return time.toISOString().replace('.000Z', 'Z');
}

function mapReader(name: string, readValue: ReadValue, selection: true | Selection): ReadField {
  return (reader, into) => {
    const end = reader.end();
    let key = '';
    let value: unknown = '';
    while (reader.position < end) {
      const tag = reader.unsigned();
      if (tag === 0x0a) key = reader.text();
      else if (tag !== 0x12) reader.skip(tag & 7);
      else if (selection === true || Object.hasOwn(selection, key)) value = readValue(reader);
      else reader.position = end; // the value comes last
    }
    if (reader.position !== end) throw new MalformedMessageError('an entry of a map is longer than it says');
    if (selection === true || Object.hasOwn(selection, key)) setEntry(into, name, key, value);
  };
}

function setEntry(into: Fields, name: string, key: string, value: unknown): void {
  const map = (into[name] ??= {}) as Fields;
  if (key !== '__proto__') map[key] = value;
  else Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true });
}

function readFields(reader: WireReader, end: number, { wires, fields, nulls }: MessageReader, into: Fields): void {
  for (const name of nulls) into[name] = null;
  while (reader.position < end) {
    const tag = reader.unsigned();
    const id = tag >>> 3;
    const read = fields[id];
    if (read === undefined) reader.skip(tag & 7);
    else if (wires[id] === (tag & 7)) read(reader, into);
    else throw new MalformedMessageError(`field ${id} has wire type ${tag & 7}`);
  }
  if (reader.position !== end) throw new MalformedMessageError('a message is longer than it says');
}

/** Bytes that are no protobuf message, or another one than expected. */
export class MalformedMessageError extends Error {
  override readonly name = 'MalformedMessageError';
}

/** How a field's value is written (Protocol Buffers, "Encoding"); groups do not occur in the Kubernetes API. */
export const wireType = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/** A part of the bytes. */
export interface Span {
  start: number;
  end: number;
}

/** Walks through the wire format of protobuf. Every method throws `MalformedMessageError` at the end of the bytes. */
export class WireReader {
  readonly bytes: Buffer;
  position: number;

  constructor(bytes: Buffer, position = 0) {
    this.bytes = bytes;
    this.position = position;
  }

  /** A tag, a length or an unsigned number; exact up to 2^53. */
  unsigned(): number {
    let byte = this.#next();
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    for (let factor = 0x80; factor < 2 ** 70; factor *= 0x80) {
      byte = this.#next();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    throw new MalformedMessageError('a number has more than ten bytes');
  }

  /** An int32 or int64; rounded beyond 2^53 as `JSON.parse` does. */
  signed(): number {
    const start = this.position;
    const value = this.unsigned();
    if (this.position - start < 8) return value;
    let exact = 0n;
    for (let at = this.position - 1; at >= start; at--) exact = (exact << 7n) | BigInt((this.bytes[at] ?? 0) & 0x7f);
    return Number(BigInt.asIntN(64, exact));
  }

  /** Reads a length. @returns the position after as many bytes. */
  end(): number {
    const end = this.unsigned() + this.position;
    if (end > this.bytes.length) throw new MalformedMessageError('a value is longer than its message');
    return end;
  }

  /** Passes over bytes. @returns where they are: a Buffer of them would cost more than all that is read of a small object. */
  span(): Span {
    const end = this.end();
    const start = this.position;
    this.position = end;
    return { start, end };
  }

  text(): string {
    const end = this.end();
    const start = this.position;
    this.position = end;
    return start === end ? '' : this.bytes.toString('utf8', start, end);
  }

  /** Passes over the value of a field that is not read. */
  skip(type: number): void {
    if (type === wireType.bytes) this.position = this.end();
    else if (type === wireType.varint) this.unsigned();
    else if (type === wireType.fixed64) this.position += 8;
    else if (type === wireType.fixed32) this.position += 4;
    else throw new MalformedMessageError(`there is no wire type ${type}`);
  }

  #next(): number {
    const byte = this.bytes[this.position++];
    if (byte === undefined) throw new MalformedMessageError('a message ends early');
    return byte;
  }
}
