import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { count, type Findings, isClean, type Outcome, reasons, type SeenVolume } from '../../scripts/chaos/count.ts';

const uid = '0b7c3a52-6f0e-4c55-9d3c-0a51d1f6a001';
const other = '9e1d2f10-1111-4c55-9d3c-0a51d1f6a002';
const name = `pvc-${uid}`;
const volume: SeenVolume = {
  name,
  handle: 'handle',
  claimUid: uid,
  policy: 'Delete',
  phase: 'Bound',
  sinceMs: 1000,
  exists: true,
};
const claim = { namespace: 'ns', name: 'data', uid, unwantedMs: undefined };
const record = {
  claimUid: other,
  volumeName: `pvc-${other}`,
  handle: undefined,
  phase: 'unclear',
  reason: undefined,
  problem: undefined,
};

/** One claim with its volume. */
const whole: Outcome = {
  claims: [claim],
  found: [{ uid, phase: 'Bound', volumeName: name }],
  volumes: [volume],
  stored: [{ id: 'handle', name }],
  records: [],
  deletions: [],
  kept: [],
};
const unwanted = { claims: [{ ...claim, unwantedMs: 5000 }], found: [] };

describe('the count at the end of a chaos run', () => {
  test('finds nothing where every claim has its volume', () => {
    const findings = count(whole);
    assert.deepEqual(findings, {
      leaked: [],
      lost: [],
      destroyed: [],
      doubled: [],
      pending: [],
      unproved: [],
      stuck: [],
    });
    assert.equal(isClean(findings), true);
  });

  const cases: { title: string; outcome: Partial<Outcome>; wanted: Partial<Record<keyof Findings, number>> }[] = [
    {
      title: 'a volume that nothing refers to is leaked',
      outcome: { ...unwanted, volumes: [] },
      wanted: { leaked: 1 },
    },
    {
      title: 'a volume whose PersistentVolume has gone is leaked',
      outcome: { ...unwanted, volumes: [{ ...volume, exists: false }] },
      wanted: { leaked: 1 },
    },
    {
      title: 'a volume of an open record is not leaked, but the record should be closed',
      outcome: { stored: [...whole.stored, { id: 'more', name: `pvc-${other}` }], records: [record] },
      wanted: { pending: 1 },
    },
    {
      title: 'a volume of a stuck record is allowed',
      outcome: {
        stored: [...whole.stored, { id: 'more', name: 'elsewhere' }],
        records: [{ ...record, handle: 'more', phase: 'stuck', problem: 'the secret is gone' }],
      },
      wanted: { stuck: 1 },
    },
    {
      title: 'a bound volume that the driver does not have is lost',
      outcome: { stored: [] },
      wanted: { lost: 1 },
    },
    {
      title: 'a kept volume that the driver does not have is lost',
      outcome: { ...unwanted, volumes: [{ ...volume, policy: 'Retain', phase: 'Released' }], stored: [] },
      wanted: { lost: 1 },
    },
    {
      title: 'a volume that is deleted while its claim is wanted counts as destroyed, whatever came of it',
      outcome: { deletions: [{ handle: 'handle', endMs: 2000 }] },
      wanted: { destroyed: 1 },
    },
    {
      title: 'a volume that was deleted before its claim had to go counts as destroyed',
      outcome: {
        ...unwanted,
        volumes: [{ ...volume, exists: false }],
        stored: [],
        deletions: [{ handle: 'handle', endMs: 4999 }],
      },
      wanted: { destroyed: 1 },
    },
    {
      title: 'a volume that is deleted after its claim had to go is none',
      outcome: {
        ...unwanted,
        volumes: [{ ...volume, exists: false }],
        stored: [],
        deletions: [{ handle: 'handle', endMs: 5001 }],
      },
      wanted: {},
    },
    {
      title: 'a kept volume must not be deleted after its claim either',
      outcome: {
        ...unwanted,
        volumes: [{ ...volume, policy: 'Retain', phase: 'Released' }],
        deletions: [{ handle: 'handle', endMs: 9000 }],
      },
      wanted: { destroyed: 1 },
    },
    {
      title: 'storage that is kept without a PersistentVolume is well',
      outcome: { ...unwanted, volumes: [{ ...volume, exists: false }], kept: [{ handle: 'handle', sinceMs: 4000 }] },
      wanted: {},
    },
    {
      title: 'storage that was deleted after it was kept on purpose counts once as destroyed',
      outcome: {
        ...unwanted,
        volumes: [{ ...volume, policy: 'Retain', exists: false }],
        stored: [],
        kept: [{ handle: 'handle', sinceMs: 4000 }],
        deletions: [{ handle: 'handle', endMs: 9000 }],
      },
      wanted: { destroyed: 1 },
    },
    {
      title: 'kept storage that is gone counts as destroyed without any known deletion',
      outcome: { ...unwanted, volumes: [], stored: [], kept: [{ handle: 'handle', sinceMs: 4000 }] },
      wanted: { destroyed: 1 },
    },
    {
      title: 'a released volume whose storage was imported under another name may stay',
      outcome: {
        ...unwanted,
        volumes: [
          { ...volume, phase: 'Released' },
          { ...volume, name: 'imported', claimUid: '', policy: 'Retain', phase: 'Available' },
        ],
        kept: [{ handle: 'handle', sinceMs: 4000 }],
      },
      wanted: {},
    },
    {
      title: 'a claim whose short volume name is taken counts as stuck, not as pending',
      outcome: {
        claims: [claim, { ...claim, name: 'more', uid: other }],
        found: [...whole.found, { uid: other, phase: 'Pending', volumeName: '' }],
        records: [{ ...record, claimUid: other, volumeName: 'pvc-0e', phase: 'stuck', problem: 'AlreadyExists' }],
      },
      wanted: { stuck: 1 },
    },
    {
      title: 'a claim whose record is stuck under its full volume name counts as both stuck and pending',
      outcome: {
        claims: [claim, { ...claim, name: 'more', uid: other }],
        found: [...whole.found, { uid: other, phase: 'Pending', volumeName: '' }],
        records: [{ ...record, claimUid: other, volumeName: `pvc-${other}`, phase: 'stuck', problem: 'no' }],
      },
      wanted: { pending: 1, stuck: 1 },
    },
    {
      title: 'a record of storage that may be kept is reported and not pending',
      outcome: { records: [{ ...record, phase: 'stuck', reason: 'unproved', problem: 'nothing is known' }] },
      wanted: { unproved: 1 },
    },
    {
      title: 'a deletion before there was a PersistentVolume harms nobody',
      outcome: { deletions: [{ handle: 'handle', endMs: 999 }] },
      wanted: {},
    },
    {
      title: 'two volumes for one claim are doubled, and the one without holder is leaked',
      outcome: { stored: [...whole.stored, { id: 'more', name: `vol-${uid}` }] },
      wanted: { doubled: 1, leaked: 1 },
    },
    {
      title: 'a volume beside one that may be kept on purpose is not doubled',
      outcome: {
        stored: [...whole.stored, { id: 'more', name: `vol-${uid}` }],
        records: [{ ...record, claimUid: uid, volumeName: `vol-${uid}`, phase: 'stuck', reason: 'unproved' }],
      },
      wanted: { unproved: 1 },
    },
    {
      title: 'imported volumes of different storage are not doubled',
      outcome: {
        volumes: [
          volume,
          { ...volume, name: 'imported-1', handle: 'a', claimUid: '', policy: 'Retain' },
          { ...volume, name: 'imported-2', handle: 'b', claimUid: '', policy: 'Retain' },
        ],
        stored: [...whole.stored, { id: 'a', name: `pvc-${other}` }, { id: 'b', name: 'pvc-b' }],
      },
      wanted: {},
    },
    {
      title: 'one volume for two claims is doubled',
      outcome: {
        claims: [claim, { ...claim, name: 'more', uid: other }],
        found: [...whole.found, { uid: other, phase: 'Bound', volumeName: 'more' }],
        volumes: [volume, { ...volume, name: 'more', claimUid: other }],
      },
      wanted: { doubled: 1 },
    },
    {
      title: 'a wanted claim that is not bound is pending',
      outcome: { found: [{ uid, phase: 'Pending', volumeName: '' }], volumes: [], stored: [] },
      wanted: { pending: 1 },
    },
    {
      title: 'a wanted claim that is gone is pending, and its volume, too',
      outcome: { found: [] },
      wanted: { pending: 2 },
    },
    {
      title: "a claim on another claim's volume is pending",
      outcome: { volumes: [{ ...volume, claimUid: other }] },
      wanted: { pending: 2 },
    },
    {
      title: 'a released volume that should have been deleted is pending',
      outcome: { ...unwanted, volumes: [{ ...volume, phase: 'Released' }] },
      wanted: { pending: 1 },
    },
    {
      title: 'a released volume that is kept is well',
      outcome: { ...unwanted, volumes: [{ ...volume, policy: 'Retain', phase: 'Released' }] },
      wanted: {},
    },
  ];
  for (const { title, outcome, wanted } of cases) {
    test(title, () => {
      const findings = count({ ...whole, ...outcome });
      const numbers = Object.entries(findings).filter(([, list]: [string, string[]]) => list.length > 0);
      const found = Object.fromEntries(numbers.map(([kind, list]: [string, string[]]) => [kind, list.length]));
      assert.deepEqual(found, wanted, JSON.stringify(findings, null, 2));
      assert.equal(
        isClean(findings),
        Object.keys(wanted).every((kind) => kind === 'stuck' || kind === 'unproved'),
      );
    });
  }

  test('stuck records are counted by reason, whatever they name', () => {
    const stuck = [
      `${name}: PersistentVolume "${name}" has other storage`,
      'pvc-2: PersistentVolume "pvc-2" has other storage',
      'pvc-3: no secret in namespace chaos-1',
      `pvc-4: claim ${uid} is gone`,
    ];
    const wanted = { 'PersistentVolume "..." has other storage': 2, 'no secret in namespace ...': 1 };
    assert.deepEqual(Object.fromEntries(reasons(stuck)), { ...wanted, 'claim ... is gone': 1 });
  });
});
