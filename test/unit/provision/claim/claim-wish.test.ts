import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ClaimWish, claimWish } from '../../../../src/provision/claim/claim-wish.ts';
import type { PersistentVolumeClaim } from '../../../../src/provision/objects.ts';
import { isKnownProvisioner, makeClaim } from '../claims-and-volumes.ts';

const claim = { namespace: 'ns', name: 'a', uid: 'u1' };
const record = { claim, volume: { name: 'pvc-u1' } };
const inPhase = (phase: string, found: PersistentVolumeClaim): PersistentVolumeClaim => ({
  ...found,
  status: { ...found.status, phase },
});
const provisioner = (name: string) => ({ annotations: { 'volume.kubernetes.io/storage-provisioner': name } });

describe('what a claim wants', () => {
  const cases: { title: string; found: PersistentVolumeClaim | undefined; want: ClaimWish }[] = [
    { title: 'that is pending', found: makeClaim(), want: 'wanted' },
    { title: 'that is not there', found: undefined, want: 'gone' },
    { title: 'that was recreated with the same name', found: makeClaim({ uid: 'u2' }), want: 'gone' },
    {
      title: 'that is being deleted, and still exists',
      found: makeClaim({ deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['kubernetes.io/pvc-protection'] }),
      want: 'wanted',
    },
    {
      title: 'that is bound to the volume',
      found: inPhase('Bound', makeClaim({}, { volumeName: 'pvc-u1' })),
      want: 'has-it',
    },
    {
      title: 'whose volume was lost',
      found: inPhase('Lost', makeClaim({}, { volumeName: 'pvc-u1' })),
      want: 'has-it',
    },
    {
      title: 'into which somebody wrote the name of the volume',
      found: makeClaim({}, { volumeName: 'pvc-u1' }),
      want: 'wanted',
    },
    {
      title: 'that is bound to another volume',
      found: inPhase('Bound', makeClaim({}, { volumeName: 'other' })),
      want: 'elsewhere',
    },
    { title: 'that waits for another volume', found: makeClaim({}, { volumeName: 'other' }), want: 'elsewhere' },
    { title: 'that asks for another provisioner', found: makeClaim(provisioner('other')), want: 'elsewhere' },
    { title: 'that asks for a second name of ours', found: makeClaim(provisioner('in-tree')), want: 'wanted' },
    { title: 'that asks for no provisioner', found: makeClaim({ annotations: {} }), want: 'elsewhere' },
  ];
  for (const { title, found, want } of cases) {
    test(`${title}: ${want}`, async () => {
      assert.equal(await claimWish(record, found, { isKnownProvisioner, qualifies: () => true }), want);
    });
  }

  test('is elsewhere when the provisioner says so, and wanted when it cannot say', async () => {
    const no = { isKnownProvisioner, qualifies: () => Promise.resolve(false) };
    assert.equal(await claimWish(record, makeClaim(), no), 'elsewhere');
    const unknown = { isKnownProvisioner, qualifies: () => Promise.reject(new Error('no answer')) };
    assert.equal(await claimWish(record, makeClaim(), unknown), 'wanted');
  });

  test('is elsewhere for any volume when none was begun', async () => {
    const bound = makeClaim({}, { volumeName: 'pvc-u1' });
    assert.equal(await claimWish({ claim }, bound, { isKnownProvisioner, qualifies: () => true }), 'elsewhere');
    assert.equal(await claimWish({ claim }, makeClaim(), { isKnownProvisioner, qualifies: () => true }), 'wanted');
  });
});
