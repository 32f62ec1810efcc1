import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { shouldDelete } from '../../../src/provision/should-delete.ts';
import { F, makeVolume } from './claims-and-volumes.ts';

const terminating = { deletionTimestamp: '2026-01-01T00:00:00Z' };
const released = { phase: 'Released' };

describe('shouldDelete', () => {
  for (const { name, on, metadata = {}, spec = released, want } of [
    { name: 'released', on: false, want: true },
    { name: 'bound', on: false, spec: { phase: 'Bound' }, want: false },
    { name: 'available', on: false, spec: { phase: 'Available' }, want: false },
    { name: 'failed', on: false, spec: { phase: 'Failed' }, want: false },
    {
      name: 'to be kept',
      on: false,
      spec: { ...released, persistentVolumeReclaimPolicy: 'Retain' as const },
      want: false,
    },
    {
      name: 'to be recycled',
      on: true,
      spec: { ...released, persistentVolumeReclaimPolicy: 'Recycle' as const },
      want: false,
    },
    { name: 'finalizers off, being deleted', on: false, metadata: terminating, want: false },
    {
      name: 'even with our finalizer',
      on: false,
      metadata: { ...terminating, finalizers: [F] },
      want: false,
    },
    { name: 'finalizers on, with ours', on: true, metadata: { finalizers: [F] }, want: true },
    {
      name: 'finalizers on, with ours, being deleted',
      on: true,
      metadata: { ...terminating, finalizers: [F] },
      want: true,
    },
    { name: 'finalizers on, without ours, being deleted', on: true, metadata: terminating, want: false },
    { name: 'finalizers on, without ours', on: true, want: true },
    {
      name: 'being deleted but still bound',
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
