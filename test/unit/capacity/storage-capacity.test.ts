import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { managedBy } from '../../../src/capacity/storage-capacity.ts';

const a = (count: number): string => 'a'.repeat(count);

describe('managedBy', () => {
  test('is the same for all replicas of a central provisioner', () => {
    assert.equal(managedBy(undefined), 'external-provisioner');
  });

  const vectors: [nodeName: string, want: string][] = [
    ['node01', 'external-provisioner-node01'],
    [`node${a(38)}`, `external-provisioner-node${a(38)}`],
    [`node${a(39)}`, `external-p-53f40b57-node${a(39)}`],
    ['ip-10-0-12-34.eu-central-1.compute.internal', 'external-p-53f40b57-ip-10-0-12-34.eu-central-1.compute.internal'],
    [
      'ip-10-0-112-134.ap-southeast-2.compute.internal',
      'extern-53f40b57-ip-10-0-112-134.ap-southeast-2.compute.internal',
    ],
    [`node${a(48)}`, `e-53f40b57-node${a(48)}`],
    [`node${a(49)}`, 'external-provisioner-a3607ff1'],
    [`node${a(63)}`, 'external-provisioner-df38e37f'],
  ];
  for (const [nodeName, want] of vectors) {
    test(`of a node with a name of ${nodeName.length} characters`, () => {
      assert.equal(managedBy(nodeName), want);
      assert.ok(want.length <= 63);
    });
  }
});
