/**
 * Bound pairs in any number, made so fast that the server of `bench/list-server.ts` never keeps anybody waiting: some
 * are encoded once, and each object is a copy of one of them with its number written over the marks in it.
 */
import protobuf from 'protobufjs';
import { encodeEvent, encodeMessage, envelope, messageType } from '../test/support/protobuf-encoding.ts';
import { type BoundPair, boundPair } from '../test/support/bound-pair.ts';

/** What is listed. */
export type MadeKind = 'PersistentVolume' | 'PersistentVolumeClaim';
export type Coding = 'protobuf' | 'json';

/** Stands for the number of an object; the text of a number must be as long. */
const mark = '@@@@@@@@';
const firstNumber = 10_000_000;
/** So many pairs are encoded: namespaces, classes and names repeat sooner. */
const templateCount = 200;

/** The managed fields are most of a real object; the decoder under test skips them, so its proto file has none. */
const managedFields = `syntax = "proto3";
message RawFields { bytes raw = 1; }
message ManagedFields {
  string manager = 1; string operation = 2; string apiVersion = 3; k8s.Time time = 4; string fieldsType = 6;
  RawFields fieldsV1 = 7; string subresource = 8;
}`;
const metadataType = messageType('ObjectMeta');
protobuf.parse(managedFields, metadataType.root, { keepCase: true });
metadataType.add(new protobuf.Field('managedFields', 17, 'ManagedFields', 'repeated'));

interface Template {
  bytes: Buffer;
  marks: number[];
}

/** The objects of one kind in one form. */
export class MadeObjects {
  readonly #templates: readonly Template[];

  /** @param form - the item of a list, or the event that adds it, with everything that separates it from the next. */
  constructor(kind: MadeKind, coding: Coding, form: 'item' | 'event', driver: string) {
    const forms = {
      protobuf: { item: protobufItem, event: protobufEvent },
      json: { item: jsonItem, event: jsonEvent },
    };
    this.#templates = Array.from({ length: templateCount }, (_, index) => {
      const { claim, volume } = markedPair(index, driver);
      const bytes = forms[coding][form](kind, kind === 'PersistentVolume' ? volume : claim);
      return { bytes, marks: marksIn(bytes) };
    });
  }

  /** The object with this number, from 0. */
  make(index: number): Buffer {
    const template = this.#templates[index % templateCount];
    if (template === undefined) throw new RangeError(`no object ${index}`);
    const made = Buffer.from(template.bytes);
    const number = String(firstNumber + index);
    for (const at of template.marks) made.write(number, at, 'latin1');
    return made;
  }
}

type Fields = Record<string, unknown> & { metadata: Record<string, unknown> };

/** A pair with marks in its names, UIDs and versions. */
function markedPair(index: number, driver: string): { claim: Fields; volume: Fields } {
  const pair = boundPair(index, driver) as BoundPair & {
    claim: { metadata: { uid: string } };
    volume: { metadata: { uid: string }; spec: { csi: { volumeHandle: string } } };
  };
  const { claim, volume } = pair;
  let text = JSON.stringify(pair).replaceAll(`"${claim.metadata.name}"`, `"data-service-${index % 37}-${mark}"`);
  for (const uid of [claim.metadata.uid, volume.metadata.uid, volume.spec.csi.volumeHandle.slice('vol-'.length)]) {
    text = text.replaceAll(uid, mark + uid.slice(mark.length));
  }
  const marked = JSON.parse(text) as { claim: Fields; volume: Fields };
  for (const { metadata } of [marked.claim, marked.volume]) metadata['resourceVersion'] = mark;
  return marked;
}

function marksIn(bytes: Buffer): number[] {
  const found: number[] = [];
  for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + mark.length)) found.push(at);
  return found;
}

function jsonItem(_kind: MadeKind, object: Fields): Buffer {
  return Buffer.from(JSON.stringify(object));
}

function jsonEvent(_kind: MadeKind, object: Fields): Buffer {
  return Buffer.from(`${JSON.stringify({ type: 'ADDED', object })}\n`);
}

function protobufItem(kind: MadeKind, object: Fields): Buffer {
  return encodeMessage(kind, asMessage(object) as object);
}

function protobufEvent(kind: MadeKind, object: Fields): Buffer {
  return encodeEvent('ADDED', envelope(kind, protobufItem(kind, object)));
}

/** What JSON writes otherwise than the messages: times, quantities, managed fields, and where a volume's source is. */
function asMessage(value: unknown, key = ''): unknown {
  if (key === 'creationTimestamp' || key === 'lastPhaseTransitionTime' || key === 'time') {
    return { seconds: Date.parse(String(value)) / 1000 };
  }
  if (key === 'fieldsV1') return { raw: Buffer.from(JSON.stringify(value)) };
  if (key === 'capacity' || key === 'requests') {
    return Object.fromEntries(
      Object.entries(value as object).map(([name, string]) => [name, { string: string as string }]),
    );
  }
  if (Array.isArray(value)) return value.map((each) => asMessage(each));
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.fromEntries(Object.entries(value).map(([name, each]) => [name, asMessage(each, name)]));
  if (key === 'spec' && 'csi' in fields) fields['persistentVolumeSource'] = { csi: fields['csi'] };
  return fields;
}
