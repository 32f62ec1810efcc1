import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { shouldDelete } from '../../../../src/provision/volume/should-delete.ts';
import { F, makeVolume } from '../claims-and-volumes.ts';

const terminating = { deletionTimestamp: '2026-01-01T00:00:00Z' };
const released = { phase: 'Released' };

describe('shouldDelete', () => {
  for (const { name, on, metadata = {}, spec = released, want } of [
    { name: 'a released volume is deleted', on: false, want: true },
    { name: 'a bound volume is not deleted', on: false, spec: { phase: 'Bound' }, want: false },
    { name: 'an available volume is not deleted', on: false, spec: { phase: 'Available' }, want: false },
    { name: 'a failed volume is not deleted', on: false, spec: { phase: 'Failed' }, want: false },
    {
      name: 'a released volume with policy Retain is not deleted',
      on: false,
      spec: { ...released, persistentVolumeReclaimPolicy: 'Retain' as const },
      want: false,
    },
    {
      name: 'a released volume with policy Recycle is not deleted',
      on: true,
      spec: { ...released, persistentVolumeReclaimPolicy: 'Recycle' as const },
      want: false,
    },
    {
      name: 'finalizers off: a volume that is being deleted is left alone',
      on: false,
      metadata: terminating,
      want: false,
    },
    {
      name: 'finalizers off: a volume that is being deleted is left alone even with our finalizer',
      on: false,
      metadata: { ...terminating, finalizers: [F] },
      want: false,
    },
    {
      name: 'finalizers on: a released volume with ours is deleted',
      on: true,
      metadata: { finalizers: [F] },
      want: true,
    },
    {
      name: 'finalizers on: a volume with ours that is being deleted is deleted',
      on: true,
      metadata: { ...terminating, finalizers: [F] },
      want: true,
    },
    {
      name: 'finalizers on: a volume without ours that is being deleted is left alone',
      on: true,
      metadata: terminating,
      want: false,
    },
    { name: 'finalizers on: a released volume without ours is deleted', on: true, want: true },
    {
      name: 'a volume that is being deleted but still bound is left alone',
      on: true,
      metadata: { ...terminating, finalizers: [F] },
      spec: { phase: 'Bound' },
      want: false,
    },
  ]) {
    test(name, () => {
      assert.equal(shouldDelete(makeVolume(metadata, spec), on), want);
    });
  }

  test('a volume without a status is not deleted', () => {
    const { status: _status, ...volume } = makeVolume();
    assert.equal(shouldDelete(volume, false), false);
  });
});
