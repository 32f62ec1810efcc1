import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { OwnerIndex, type PossibleOwner, RecordIndex } from '../../../src/audit/strangers.ts';
import { recordOf, uidOf } from '../../integration/provision/intent-journal/rig.ts';

const [one, other] = ['0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d', 'fedcba98-7654-4321-8fed-cba987654321'] as const;
const digits = one.replaceAll('-', '');

function found(owners: PossibleOwner[], ...texts: string[]): string[] {
  const index = new OwnerIndex();
  for (const owner of owners) index.add(owner);
  return index.mentionedIn(texts).map(({ volumeName }) => volumeName);
}

describe('a volume may belong to the claim whose UID its id contains', () => {
  const owners = [
    { uid: one, volumeName: `pvc-${one}` },
    { uid: other, volumeName: `pvc-${other}` },
  ];
  const names = owners.map(({ volumeName }) => volumeName);

  for (const { what, id, want } of [
    { what: 'behind letters', id: `vol-pvc-${one}`, want: [names[0]] },
    { what: 'within a word', id: `volume${one}copy`, want: [names[0]] },
    { what: 'in capitals', id: `VOL-${one.toUpperCase()}`, want: [names[0]] },
    { what: 'without dashes', id: `v${digits}`, want: [names[0]] },
    { what: 'with underscores', id: `trident_pvc_${one.replaceAll('-', '_')}`, want: [names[0]] },
    { what: 'without dashes inside a longer hexadecimal string', id: `00ff${digits}ab12`, want: [names[0]] },
    { what: 'behind hexadecimal digits and a dash', id: `ab-${one}-ab`, want: [names[0]] },
    { what: 'together with another one', id: `clone-${one}-of-${other}`, want: names },
    { what: 'with a digit changed', id: `vol-${one.replace('4d', '4e')}`, want: [] },
    { what: 'only in its first groups', id: `vol-${one.slice(0, 23)}`, want: [] },
    { what: 'split by a slash', id: `${one.slice(0, 18)}/${one.slice(18)}`, want: [] },
  ]) {
    test(what, () => assert.deepEqual(found(owners, id), want));
  }

  test('in a text of its context', () => assert.deepEqual(found(owners, 'vol-7', `pvc-${other}`), [names[1]]));

  test('where the UID of the object is in capitals', () => {
    assert.deepEqual(found([{ uid: one.toUpperCase(), volumeName: 'v' }], digits), ['v']);
  });
});

describe('a volume may belong to a shortened name', () => {
  const owners = ['pvc-1', 'pvc-12'].map((volumeName) => ({ uid: one, volumeName }));

  for (const { id, want } of [
    { id: 'vol-pvc-1', want: ['pvc-1'] },
    { id: 'vol-pvc-12', want: ['pvc-12'] },
    { id: 'pool/PVC-12/data', want: ['pvc-12'] },
    { id: 'pvc-1-of-pvc-12', want: ['pvc-1', 'pvc-12'] },
    { id: 'pvc-123', want: [] },
    { id: 'apvc-1', want: [] },
  ]) {
    test(`${want.join(' or ') || 'none'} is in ${id}`, () => assert.deepEqual(found(owners, id), want));
  }

  test('which a thousand volumes share, without going through all of them', () => {
    const many = Array.from({ length: 1000 }, (_, index) => ({ uid: `u${index}`, volumeName: 'pvc-' }));
    assert.equal(found(many, 'vol-pvc-9').length, 4);
  });

  test('is in no id where it is empty', () => assert.deepEqual(found([{ uid: '', volumeName: '' }], 'vol-1'), []));
});

describe('RecordIndex', () => {
  const index = new RecordIndex(
    [recordOf(1, { handle: 'vol-1' }), recordOf(2)].map((record) => ({
      record,
      shard: 0,
      renewedAt: '',
      reportOnly: '',
    })),
  );
  const claims = (id: string): string[] => index.naming(id).map(({ record }) => record.claim.name);
  const name = `pvc-${uidOf(2)}`;

  for (const { what, id, want } of [
    { what: 'a handle', id: 'vol-1', want: ['claim-1'] },
    { what: 'the name of a volume without a known handle', id: name, want: ['claim-2'] },
    { what: 'that name between slashes', id: `/pool/${name}/data`, want: ['claim-2'] },
    { what: 'that name as the last part', id: `server#share#${name}`, want: ['claim-2'] },
    { what: 'the same part twice', id: `${name}/${name}`, want: ['claim-2'] },
    { what: 'a name that begins or ends otherwise', id: `clone-${name}`, want: [] },
    { what: 'a name that goes on', id: `pool/${name}-1`, want: [] },
    { what: 'the name of a volume whose handle is known', id: `pvc-${uidOf(1)}`, want: [] },
    { what: 'no id', id: '', want: [] },
  ]) {
    test(`finds ${want.length === 0 ? 'nothing' : want.join()} for ${what}`, () => assert.deepEqual(claims(id), want));
  }
});
