import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { classify, type Sighting } from '../../../src/audit/finding.ts';
import { ClusterVolumes, type VolumeHome } from '../../../src/audit/cluster-volumes.ts';
import { RecordIndex } from '../../../src/audit/strangers.ts';
import type { Existence } from '../../../src/audit/driver-volumes.ts';
import { recordOf } from '../../integration/provision/intent-journal/rig.ts';

const driverName = 'd.example.com';

/** One volume, `pv`, and how the look at it went. */
function sighting(how: {
  /** Default: `h`. */
  handle?: string;
  isListed?: boolean;
  isOurs?: boolean;
  home?: VolumeHome;
  existence?: Existence;
  canList?: boolean;
  repeated?: number;
}): Sighting {
  const { handle = 'h', isListed = false, isOurs = true, home = 'here' } = how;
  const { existence, canList = true, repeated = 0 } = how;
  const volumes = new ClusterVolumes({ driverName, migration: undefined, pluginName: undefined, homeOf: () => home });
  volumes.add({
    metadata: { name: 'pv', annotations: isOurs ? { 'pv.kubernetes.io/provisioned-by': driverName } : {} },
    spec: { csi: { driver: driverName, volumeHandle: handle } },
    status: { phase: 'Bound' },
  });
  if (handle !== '') volumes.with(handle)!.isListed = isListed;
  return {
    volumes,
    records: new RecordIndex([]),
    strangers: new Map(),
    isListed: canList,
    repeated,
    existence: new Map(existence === undefined ? [] : [[handle, existence]]),
  };
}

describe('a PersistentVolume', () => {
  for (const { what, how, want } of [
    { what: 'that is listed', how: { isListed: true }, want: [] },
    { what: 'made by hand that is listed', how: { isListed: true, isOurs: false }, want: ['foreign'] },
    { what: 'that is not listed', how: {}, want: ['lost'] },
    { what: 'that the driver knows by its id', how: { existence: 'there' }, want: [] },
    { what: 'that the driver denies', how: { existence: 'gone' }, want: ['lost'] },
    { what: 'about which the driver fails, after its list', how: { existence: 'unknown' }, want: ['lost'] },
    { what: 'that is not listed where others are listed twice', how: { repeated: 1 }, want: ['unverified'] },
    {
      what: 'that the driver denies, and lists others twice',
      how: { repeated: 1, existence: 'gone' },
      want: ['lost'],
    },
    { what: 'made by hand that is not listed', how: { isOurs: false }, want: ['unverified'] },
    { what: 'made by hand that the driver denies', how: { isOurs: false, existence: 'gone' }, want: ['lost'] },
    { what: 'of another node', how: { home: 'elsewhere' }, want: [] },
    { what: 'of another node that this one denies', how: { home: 'elsewhere', existence: 'gone' }, want: [] },
    { what: 'of no known node', how: { home: 'unknown' }, want: ['unverified'] },
    {
      what: 'of no known node that this one denies',
      how: { home: 'unknown', existence: 'gone' },
      want: ['unverified'],
    },
    { what: 'where nothing can be asked', how: { canList: false }, want: [] },
    { what: 'without an id, where nothing can be asked', how: { canList: false, handle: '' }, want: ['unverified'] },
    { what: 'that is denied one by one', how: { canList: false, existence: 'gone' }, want: ['lost'] },
    { what: 'without a clear answer', how: { canList: false, existence: 'unknown' }, want: ['unverified'] },
  ] as const) {
    test(`${what} is ${want.join() || 'not mentioned'}`, () => {
      const { findings } = classify(sighting(how));
      assert.deepEqual(
        findings.map(({ state }) => state),
        want,
      );
    });
  }

  test('is counted once, by what is known of it', () => {
    const counts = (how: Parameters<typeof sighting>[0]) => {
      const { inUse, elsewhere, unchecked } = classify(sighting(how));
      return [inUse, elsewhere, unchecked];
    };
    assert.deepEqual(counts({ isListed: true }), [1, 0, 0]);
    assert.deepEqual(counts({ home: 'elsewhere' }), [0, 1, 0]);
    assert.deepEqual(counts({ canList: false }), [0, 0, 1]);
    assert.deepEqual(counts({}), [0, 0, 0]);
  });
});

describe('a record', () => {
  const stuck = { ...recordOf(1), phase: 'stuck', problem: 'why' } as const;

  for (const { what, record, reportOnly = '', listedIds = [], want } of [
    { what: 'that is stuck', record: stuck, want: ['stuck -'] },
    {
      what: 'that is stuck and names what is listed',
      record: stuck,
      listedIds: ['a', 'b'],
      want: ['leaked a', 'leaked b'],
    },
    { what: 'that is stuck and names what is not listed', record: { ...stuck, handle: 'x' }, want: ['stuck x'] },
    {
      what: 'that is stuck, may be kept on purpose and names what is listed',
      record: { ...stuck, reason: 'unproved' },
      listedIds: ['a'],
      want: ['stuck a'],
    },
    { what: 'of a copied journal', record: recordOf(1), reportOnly: 'a copy', want: ['stuck -'] },
    {
      what: 'of a copied journal that names a volume',
      record: recordOf(1),
      reportOnly: 'a copy',
      listedIds: ['a'],
      want: ['leaked a'],
    },
    { what: 'that is worked on', record: recordOf(1), want: ['being-made -'] },
    {
      what: 'that is unclear, of a listed volume',
      record: recordOf(1, { phase: 'unclear' }),
      listedIds: ['a'],
      want: ['being-made a'],
    },
    { what: 'that is deleted', record: recordOf(1, { phase: 'delete', handle: 'x' }), want: ['being-deleted x'] },
  ] as const) {
    test(`${what} gives ${want.join(' and ')}`, () => {
      const records = new RecordIndex([{ record, shard: 0, renewedAt: '', reportOnly }]);
      records.all[0]!.listedIds.push(...listedIds);
      const { findings } = classify({ ...sighting({ isListed: true }), records });
      assert.deepEqual(
        findings.map(({ state, volumeId }) => `${state} ${volumeId ?? '-'}`),
        want,
      );
    });
  }
});
