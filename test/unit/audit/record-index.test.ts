import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RecordIndex } from '../../../src/audit/record-index.ts';
import { recordOf, uidOf } from '../../integration/provision/intent-journal/rig.ts';

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
