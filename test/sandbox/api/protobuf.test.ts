import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { decodeProtobuf } from '../../../sandbox/api/protobuf.ts';

function varint(value: bigint | number): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  do {
    bytes.push(Number(rest & 0x7fn) | (rest > 0x7fn ? 0x80 : 0));
    rest >>= 7n;
  } while (rest > 0n);
  return Buffer.from(bytes);
}

/** A message of fields `[number, value]`: texts and messages with their length, numbers as they are. */
function message(...fields: [number, string | number | Buffer][]): Buffer {
  return Buffer.concat(
    fields.map(([number, value]) => {
      if (typeof value === 'number') return Buffer.concat([varint(number << 3), varint(value)]);
      const bytes = typeof value === 'string' ? Buffer.from(value) : value;
      return Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);
    }),
  );
}

function envelope(apiVersion: string, kind: string, raw: Buffer): Buffer {
  const typeMeta = message([1, apiVersion], [2, kind]);
  return Buffer.concat([Buffer.from('k8s\0'), message([1, typeMeta], [2, raw], [3, ''], [4, ''])]);
}

describe('decodeProtobuf', () => {
  test('a volume: maps, quantities, lists and the source one level higher', () => {
    const entry = message([1, 'storage'], [2, message([1, '5Gi'])]);
    const csi = message([1, 'x.example.com'], [2, 'h'], [3, 0], [5, message([1, 'k'], [2, 'v'])]);
    const meta = message([1, 'pv'], [2, ''], [3, ''], [8, message()], [14, 'a/b'], [14, 'c/d']);
    const spec = message([1, entry], [2, message([22, csi])], [3, 'ReadWriteOnce'], [5, 'Delete'], [8, 'Filesystem']);
    const body = envelope('v1', 'PersistentVolume', message([1, meta], [2, spec], [3, message([1, ''])]));
    assert.deepEqual(decodeProtobuf(body), {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'pv', finalizers: ['a/b', 'c/d'] },
      spec: {
        capacity: { storage: '5Gi' },
        csi: { driver: 'x.example.com', volumeHandle: 'h', volumeAttributes: { k: 'v' } },
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Delete',
        volumeMode: 'Filesystem',
      },
    });
  });

  test('empty values of optional fields are values', () => {
    const spec = message([5, ''], [4, message()]);
    const { spec: decoded } = decodeProtobuf(envelope('v1', 'PersistentVolumeClaim', message([2, spec])));
    assert.deepEqual(decoded, { storageClassName: '', selector: {} });
  });

  test('times, numbers and bytes', () => {
    const seconds = Date.parse('2026-01-02T03:04:05Z') / 1000;
    const time = message([1, seconds], [2, 123_456_000]);
    const lease = envelope(
      'coordination.k8s.io/v1',
      'Lease',
      message([2, message([1, 'me'], [2, 15], [4, time], [5, 0])]),
    );
    assert.deepEqual(decodeProtobuf(lease)['spec'], {
      holderIdentity: 'me',
      leaseDurationSeconds: 15,
      renewTime: '2026-01-02T03:04:05.123456Z',
      leaseTransitions: 0,
    });
    const data = message([1, 'key'], [2, Buffer.from([0xff, 0x00])]);
    const secret = envelope('v1', 'Secret', message([2, data], [3, 'Opaque']));
    assert.deepEqual(decodeProtobuf(secret)['data'], { key: '/wA=' });
    const event = envelope('v1', 'Event', message([6, message([1, seconds])], [8, -1], [10, message()]));
    assert.deepEqual(decodeProtobuf(event), {
      apiVersion: 'v1',
      kind: 'Event',
      firstTimestamp: '2026-01-02T03:04:05Z',
      count: -1,
    });
  });

  test('both groups of events have their own fields', () => {
    const event = envelope('events.k8s.io/v1', 'Event', message([10, 'text'], [8, message([1, 'Pod'])]));
    const { note, regarding } = decodeProtobuf(event);
    assert.deepEqual([note, regarding], ['text', { kind: 'Pod' }]);
  });

  const bad: [string, Buffer, number][] = [
    ['JSON', Buffer.from('{}'), 400],
    ['a cut message', envelope('v1', 'Secret', message([3, 'Opaque'])).subarray(0, 20), 400],
    ['a number that does not end', Buffer.from('k8s\0\xff\xff\xff', 'latin1'), 400],
    ['a kind without a table', envelope('v1', 'Service', message()), 415],
  ];
  for (const [name, body, code] of bad) {
    test(`${name} is refused with ${code}`, () => assert.throws(() => decodeProtobuf(body), { code }));
  }
});
