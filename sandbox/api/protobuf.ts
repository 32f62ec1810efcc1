import { isObject, setField } from './json.ts';
import type { JsonObject } from './json.ts';
import { protobufMessages } from './protobuf-messages.ts';
import { StatusError } from './status-error.ts';
import { microTimestamp, timestamp } from './timestamps.ts';

/** Media type of protobuf bodies. */
export const protobufType = 'application/vnd.kubernetes.protobuf';

const magic = Buffer.from([0x6b, 0x38, 0x73, 0x00]);

interface Field {
  readonly name: string;
  readonly type: string;
  readonly form: 'one' | 'list' | 'map';
  /** An empty value is a value. */
  readonly keepsEmpty: boolean;
}

type Message = ReadonlyMap<number, Field>;

/** One field as it lies on the wire. */
interface WireField {
  readonly number: number;
  readonly value: bigint | Buffer;
}

let messages: ReadonlyMap<string, Message> | undefined;

/**
 * The object in a protobuf body, as its JSON form.
 *
 * @throws {StatusError} `UnsupportedMediaType` for a kind without a table, `BadRequest` for bytes that are no message.
 */
export function decodeProtobuf(body: Buffer): JsonObject {
  if (!body.subarray(0, magic.length).equals(magic)) throw unreadable('the prefix is missing');
  let kind = '';
  let apiVersion = '';
  let raw: Buffer = Buffer.alloc(0);
  for (const { number, value } of wireFields(body.subarray(magic.length))) {
    if (typeof value === 'bigint') continue;
    if (number === 1) {
      for (const part of wireFields(value)) {
        if (part.number === 1) apiVersion = String(part.value);
        else if (part.number === 2) kind = String(part.value);
      }
    } else if (number === 2) raw = value;
  }
  messages ??= parseMessages();
  const name = apiVersion.startsWith('events.k8s.io/') ? `events.${kind}` : kind;
  if (!messages.has(name)) {
    throw new StatusError(
      'UnsupportedMediaType',
      `the body of the request was in an unknown format - protobuf is not read for ${apiVersion} ${kind}, ` +
        'accepted media types include: application/json, application/yaml',
    );
  }
  return { apiVersion, kind, ...decodeMessage(raw, name, messages) };
}

function decodeMessage(bytes: Buffer, name: string, known: ReadonlyMap<string, Message>): JsonObject {
  const fields = known.get(name);
  const result: JsonObject = {};
  for (const { number, value } of wireFields(bytes)) {
    const field = fields?.get(number);
    if (field === undefined) continue;
    if (field.form === 'map') addEntry(result, field, value, known);
    else {
      const decoded = decodeValue(value, field.type, known);
      if (field.name === '+') {
        if (isObject(decoded)) Object.assign(result, decoded);
      } else if (field.form === 'list') {
        const list = result[field.name];
        if (Array.isArray(list)) list.push(decoded);
        else result[field.name] = [decoded];
      } else if (field.keepsEmpty || !isEmpty(decoded)) result[field.name] = decoded;
    }
  }
  return result;
}

function addEntry(result: JsonObject, field: Field, entry: bigint | Buffer, known: ReadonlyMap<string, Message>): void {
  if (typeof entry === 'bigint') throw unreadable('a map entry is not a message');
  let key = '';
  let value: bigint | Buffer = Buffer.alloc(0);
  for (const part of wireFields(entry)) {
    if (part.number === 1) key = String(part.value);
    else if (part.number === 2) value = part.value;
  }
  const map = isObject(result[field.name]) ? (result[field.name] as JsonObject) : {};
  setField(map, key, decodeValue(value, field.type, known));
  result[field.name] = map;
}

function decodeValue(value: bigint | Buffer, type: string, known: ReadonlyMap<string, Message>): unknown {
  if (typeof value === 'bigint') {
    if (type === 'bool') return value !== 0n;
    if (type === 'int') return Number(BigInt.asIntN(64, value));
    throw unreadable(`a number where ${type} is due`);
  }
  switch (type) {
    case 'string':
      return value.toString('utf8');
    case 'bytes':
      return value.toString('base64');
    case 'quantity':
      return quantityText(value);
    case 'time':
    case 'microTime':
      return timeText(value, type === 'time');
    default:
      return decodeMessage(value, type, known);
  }
}

function quantityText(bytes: Buffer): string {
  for (const { number, value } of wireFields(bytes)) if (number === 1) return String(value);
  return '0';
}

/** `null` for Go's zero time, which is an empty message. */
function timeText(bytes: Buffer, wholeSeconds: boolean): string | null {
  let seconds = 0n;
  let nanos = 0n;
  for (const { number, value } of wireFields(bytes)) {
    if (typeof value !== 'bigint') continue;
    if (number === 1) seconds = BigInt.asIntN(64, value);
    else if (number === 2) nanos = value;
  }
  if (bytes.length === 0) return null;
  const wallMs = Number(seconds * 1000n + nanos / 1_000_000n);
  if (wholeSeconds) return timestamp(wallMs);
  const micros = String(nanos / 1000n).padStart(6, '0');
  return microTimestamp(wallMs).replace(/\.\d+Z$/, `.${micros}Z`);
}

function isEmpty(value: unknown): boolean {
  if (value === '' || value === 0 || value === false || value === null) return true;
  return isObject(value) && Object.keys(value).length === 0;
}

function* wireFields(bytes: Buffer): Generator<WireField> {
  let at = 0;
  const varint = (): bigint => {
    let result = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) break;
      result |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return result;
    }
    throw unreadable('a number does not end');
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const number = tag >>> 3;
    switch (tag & 7) {
      case 0:
        yield { number, value: varint() };
        break;
      case 1:
        at += 8;
        break;
      case 2: {
        const length = Number(varint());
        if (at + length > bytes.length) throw unreadable('a field is longer than the message');
        yield { number, value: bytes.subarray(at, at + length) };
        at += length;
        break;
      }
      case 5:
        at += 4;
        break;
      default:
        throw unreadable(`wire type ${tag & 7}`);
    }
  }
}

function parseMessages(): ReadonlyMap<string, Message> {
  const parsed = new Map<string, Message>();
  for (const definition of protobufMessages.trim().split(/\n(?! )/)) {
    const [message = '', list = ''] = definition.split(':');
    const fields = list.split(',').map((text): [number, Field] => {
      const [number, name = '', full = ''] = text.trim().split(/\s+/);
      const [, map, type = ''] = /^(\{?)([\w.]+)/.exec(full) ?? [];
      const form = map === '{' ? 'map' : full.includes('[]') ? 'list' : 'one';
      return [Number(number), { name, type, form, keepsEmpty: full.endsWith('*') }];
    });
    parsed.set(message, new Map(fields));
  }
  return parsed;
}

function unreadable(why: string): StatusError {
  return new StatusError('BadRequest', `the protobuf body cannot be decoded: ${why}`);
}
