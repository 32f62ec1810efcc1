import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CapacityItem } from '../../../src/capacity/capacity-items.ts';
import { changeObject, isManaged, newObject, type ObjectFrame } from '../../../src/capacity/desired-object.ts';
import { segmentOf } from '../../../src/capacity/segment.ts';
import { storageCapacities } from '../../../src/capacity/storage-capacity.ts';

const frame: ObjectFrame = {
  resource: storageCapacities,
  namespace: 'ns',
  driverName: 'drv',
  managedBy: 'external-provisioner',
  owner: undefined,
};
const segment = segmentOf({});
const item: CapacityItem = { key: 'sc {}', className: 'sc', segment, object: undefined };

describe('amounts in objects', () => {
  const texts: [bytes: bigint, text: string][] = [
    [0n, '0'],
    [999n, '999'],
    [1000n, '1k'],
    [1024n, '1Ki'],
    [1500n, '1500'],
    [1048577n, '1048577'],
    [1073741824n, '1Gi'],
    [1500000000n, '1500000000'],
    [1649267441664n, '1536Gi'],
    [1152921504606846976n, '1Ei'],
    [9223372036854775807n, '9223372036854775807'],
  ];
  for (const [bytes, text] of texts) {
    test(`${bytes} bytes are written as ${text} and read back as the same`, () => {
      const object = newObject(frame, item, { available: bytes, maximumVolumeSize: bytes });
      assert.deepEqual([object.capacity, object.maximumVolumeSize], [text, text]);
      assert.equal(changeObject(frame, object, { available: bytes, maximumVolumeSize: bytes }).object, undefined);
      const less = { available: bytes + 1n, maximumVolumeSize: bytes };
      assert.notEqual(changeObject(frame, object, less).object, undefined);
    });
  }

  test('an amount that cannot be read is replaced', () => {
    const object = { ...newObject(frame, item, { available: 0n, maximumVolumeSize: undefined }), capacity: 'much' };
    assert.equal(changeObject(frame, object, { available: 0n, maximumVolumeSize: undefined }).object?.capacity, '0');
  });

  test('none and nothing are not the same maximum', () => {
    const object = newObject(frame, item, { available: 0n, maximumVolumeSize: undefined });
    const change = changeObject(frame, object, { available: 0n, maximumVolumeSize: 0n });
    assert.equal(change.object?.maximumVolumeSize, '0');
  });
});

test('only objects with both labels are ours, also where a server ignores the selector', () => {
  const object = newObject(frame, item, { available: 0n, maximumVolumeSize: undefined });
  assert.equal(isManaged(object, frame), true);
  assert.equal(isManaged(object, { ...frame, driverName: 'other' }), false);
  assert.equal(isManaged(object, { ...frame, managedBy: 'manual' }), false);
  assert.equal(isManaged({ ...object, metadata: { name: 'x' } }, frame), false);
});
