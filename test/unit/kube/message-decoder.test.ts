import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import protobuf from 'protobufjs';
import { kubernetesMessages } from '../../../src/kube/protobuf/kubernetes-messages.ts';
import { messageDecoder, type MessageName } from '../../../src/kube/protobuf/message-decoder.ts';
import { encodeMessage, messageType } from '../../support/protobuf-encoding.ts';
import { anyText } from '../../support/any-text.ts';

/** One value as a message has it and as JSON has it; `json` undefined: JSON leaves it out. */
interface Coded {
  wire: unknown;
  json: unknown;
}

const text = fc.oneof(fc.constant(''), anyText({ maxLength: 8 }), fc.constant('__proto__'));

/** Made so that it takes part in every message: what the message holds, and the JSON of the same object. */
function anyMessage(type: protobuf.Type): fc.Arbitrary<{ wire: object; json: object }> {
  return fc.tuple(...type.fieldsArray.map((field) => anyField(field))).map((fields) => {
    const named = fields.map(({ wire, json }, at) => ({ field: type.fieldsArray[at]!, wire, json }));
    const sent = named.filter(({ wire }) => wire !== undefined);
    const inJson = named.flatMap(({ field, json }): [string, unknown][] => {
      if (field.options?.['(json_inline)'] === true) return Object.entries((json as object | undefined) ?? {});
      return json === undefined ? [] : [[field.name, json]];
    });
    return { wire: ownEntries(sent.map(({ field, wire }) => [field.name, wire])), json: ownEntries(inJson) };
  });
}

/** As `Object.fromEntries`, spelled out since it matters here: `__proto__` becomes a field. */
function ownEntries(entries: readonly (readonly [string, unknown])[]): object {
  return Object.fromEntries(entries);
}

function anyField(field: protobuf.Field): fc.Arbitrary<Coded> {
  const nullable = field.options?.['(json_null)'] === true;
  const absent: Coded = { wire: undefined, json: nullable ? null : undefined };
  const value = anyValue(field);
  if (field.map) {
    return fc.dictionary(text, value, { maxKeys: 3, noNullPrototype: true }).map((entries) => {
      const pairs = Object.entries(entries);
      if (pairs.length === 0) return absent;
      return {
        wire: ownEntries(pairs.map(([key, { wire }]) => [key, wire])),
        json: ownEntries(pairs.map(([key, { json }]) => [key, json])),
      };
    });
  }
  if (field.repeated) {
    return fc.array(value, { maxLength: 3 }).map((all) => {
      if (all.length === 0) return absent;
      return { wire: all.map(({ wire }) => wire), json: all.map(({ json }) => json) };
    });
  }
  const keepsEmpty = nullable || field.options?.['proto3_optional'] === true;
  return fc.oneof(fc.constant(absent), value).map(({ wire, json }) => {
    const empty = json === '' || json === 0 || json === false;
    return { wire, json: wire === undefined || (empty && !keepsEmpty) ? absent.json : json };
  });
}

function anyValue(field: protobuf.Field): fc.Arbitrary<Coded> {
  const same = (value: unknown): Coded => ({ wire: value, json: value });
  if (field.type === 'string') return text.map(same);
  if (field.type === 'bool') return fc.boolean().map(same);
  if (field.type === 'int32') return fc.integer().map(same);
  if (field.type === 'int64') return fc.maxSafeInteger().map(same);
  if (field.type === 'Quantity')
    return fc.constantFrom('1Gi', '0', '100m').map((string) => ({ wire: { string }, json: string }));
  if (field.type === 'Time') {
    return fc.integer({ min: 1, max: 253_402_300_799 }).map((seconds) => ({
      wire: { seconds },
      json: new Date(seconds * 1000).toISOString().replace('.000', ''),
    }));
  }
  assert.ok(field.resolvedType instanceof protobuf.Type, field.type);
  return anyMessage(field.resolvedType);
}

/** Messages that are read by themselves; the others are inside them. */
const objects = ['PersistentVolume', 'PersistentVolumeClaim', 'StorageClass', 'CSINode', 'VolumeAttachment', 'Status'];

describe('a message', () => {
  for (const name of objects as MessageName[]) {
    test(`${name} with any fields is read as the JSON of the same object`, () => {
      const decode = messageDecoder<object>(name);
      fc.assert(
        fc.property(anyMessage(messageType(name)), ({ wire, json }) => {
          assert.deepEqual(decode(encodeMessage(name, wire)), json);
        }),
        { numRuns: 60 },
      );
    });

    test(`${name} that ends early, or has any other bytes, is refused or read, and never anything else`, () => {
      const decode = messageDecoder<object>(name);
      const anyBytes = fc.oneof(
        fc.uint8Array({ maxLength: 64 }),
        fc.tuple(anyMessage(messageType(name)), fc.nat(), fc.nat(255), fc.nat()).map(([{ wire }, length, byte, at]) => {
          const bytes = Uint8Array.from(encodeMessage(name, wire));
          if (bytes.length > 0) bytes[at % bytes.length] = byte;
          return bytes.subarray(0, length % (bytes.length + 1));
        }),
      );
      fc.assert(
        fc.property(anyBytes, (bytes) => {
          try {
            decode(Buffer.from(bytes));
          } catch (error) {
            assert.equal((error as Error).name, 'MalformedMessageError', (error as Error).stack);
          }
        }),
        { numRuns: 200 },
      );
    });
  }

  test('is read without the fields that are not selected', () => {
    const volume = {
      metadata: { name: 'v', uid: 'u', labels: { a: 'b' }, annotations: { keep: '1', drop: '2', ['__proto__']: '3' } },
      spec: {
        capacity: { storage: { string: '1Gi' } },
        persistentVolumeSource: { csi: { driver: 'd', volumeHandle: 'h' }, nfs: { server: 's', path: 'p' } },
        storageClassName: 'c',
      },
      status: { phase: 'Bound', message: 'm' },
    };
    const selection = {
      metadata: { name: true, annotations: { keep: true, constructor: true } },
      spec: { csi: { driver: true }, nfs: true, storageClassName: true },
      status: { phase: true },
    } as const;
    const decode = messageDecoder('PersistentVolume', selection);
    assert.deepEqual(decode(encodeMessage('PersistentVolume', volume)), {
      metadata: { name: 'v', annotations: { keep: '1' } },
      spec: { csi: { driver: 'd' }, nfs: { server: 's', path: 'p' }, storageClassName: 'c' },
      status: { phase: 'Bound' },
    });
  });

  test('of a newer API server is read without the fields that are not known, of every wire type', () => {
    const known = encodeMessage('StorageClass', { provisioner: 'p', reclaimPolicy: 'Delete' });
    const writer = protobuf.Writer.create();
    writer.uint32((90 << 3) | 0).uint64(Number.MAX_SAFE_INTEGER);
    writer.uint32((91 << 3) | 1).double(1.5);
    writer.uint32((92 << 3) | 2).string('new');
    writer.uint32(((536_870_911 << 3) >>> 0) | 5).fixed32(7);
    const bytes = Buffer.concat([writer.finish(), known]);
    assert.deepEqual(messageDecoder('StorageClass')(bytes), { provisioner: 'p', reclaimPolicy: 'Delete' });
  });

  for (const { name, number } of [
    { name: 'zero', number: '0' },
    { name: 'a negative one', number: '-1' },
    { name: 'the smallest', number: '-9223372036854775808' },
    { name: 'one beyond 2^53, rounded as JSON rounds it,', number: '9007199254740993' },
    { name: 'the largest, rounded,', number: '9223372036854775807' },
  ]) {
    test(`a 64-bit number is read: ${name} is the number in JSON`, () => {
      const writer = protobuf.Writer.create().uint32(10 << 3);
      const bytes = writer.int64(number).finish();
      assert.deepEqual(messageDecoder('ObjectMeta')(Buffer.from(bytes)), {
        deletionGracePeriodSeconds: JSON.parse(number) as number,
      });
    });
  }

  test('has no time where the API has the zero time', () => {
    const bytes = encodeMessage('ObjectMeta', { name: 'a', creationTimestamp: {} });
    assert.deepEqual(messageDecoder('ObjectMeta')(bytes), { name: 'a' });
  });

  for (const { name, hex } of [
    { name: 'a number without an end', hex: '3880' },
    { name: 'a number of eleven bytes', hex: '38ffffffffffffffffffff01' },
    { name: 'a text longer than the message', hex: '0a05616263' },
    { name: 'a length beyond every buffer', hex: '0affffffffffffffff7f' },
    { name: 'an entry of a map longer than it says', hex: '5a030a0461626364' },
    { name: 'a group', hex: '0b0c' },
    { name: 'a number where a text is expected', hex: '0801' },
    { name: 'a time that no calendar has', hex: '420a08ffffffffffffffff7f' },
  ]) {
    test(`with ${name} is refused`, () => {
      const decode = messageDecoder('ObjectMeta');
      assert.throws(() => decode(Buffer.from(hex, 'hex')), { name: 'MalformedMessageError' });
    });
  }
});

test('every type that a message names is a message too, or a scalar', () => {
  const scalars = ['string', 'bytes', 'bool', 'int32', 'int64'];
  const types = Object.values(kubernetesMessages).flatMap((rows) => rows.map(([, , type]) => type as string));
  assert.deepEqual(
    types.filter((type) => !scalars.includes(type) && !(type in kubernetesMessages)),
    [],
  );
});
