/** Processes with one holder identity: the host name is that of another Pod, too, or of an earlier process. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Clock } from '../../../../src/base/clock.ts';
import type { Lease, LeaseRecord } from '../../../../src/kube/election/lease-record.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { type Candidate, LeaseServer } from '../lease-server.ts';

const markKey = 'csi-provisioner/holder';
const hour = 3_600_000;

interface Namesake {
  place?: string;
  /** Of its clock. */
  wallMs?: number;
  clock?: Clock;
}

/** An elector with the identity `a`, which ends as a crash does: without releasing the Lease. */
function namesake(leases: LeaseServer, name: string, options: Namesake = {}): Candidate {
  const { place = 'here', wallMs = 0, clock = leases.clock.elsewhere({ wallMs }) } = options;
  return leases.elector(name, { identity: 'a', place, clock, releaseOnExit: false }).run();
}

/** The Lease as somebody with kubectl, or another program, leaves it. */
function edited(leases: LeaseServer, spec: LeaseRecord, mark?: (text: string | undefined) => string | undefined): void {
  const { metadata } = leases.lease ?? { metadata: { name: 'lock' } };
  const { [markKey]: written, ...others } = metadata.annotations ?? {};
  const text = mark === undefined ? written : mark(written);
  const annotations = { ...others, ...(text !== undefined && { [markKey]: text }) };
  leases.write({ metadata: { ...metadata, annotations }, spec: { ...leases.spec, ...spec } } satisfies Lease);
}

describe('a process whose identity holds the lease already', () => {
  const successors: {
    title: string;
    former?: Namesake;
    next?: Namesake;
    /** It still runs, and its requests get no answer; or it stands still, as after SIGSTOP. */
    lives?: 'cut off' | 'paused';
    edit?: (leases: LeaseServer) => void;
    waitsMs: number;
  }[] = [
    { title: 'that of a process that crashed here in the same moment', waitsMs: 0 },
    { title: 'that of a process that crashed here before the clock was set back', next: { wallMs: -hour }, waitsMs: 0 },
    { title: 'that of a process that crashed here before the clock was set', next: { wallMs: hour }, waitsMs: 0 },
    { title: 'that of a paused process', lives: 'paused', waitsMs: 16_000 },
    { title: 'that of a process that is cut off, until it has given up', lives: 'cut off', waitsMs: 12_800 },
    { title: 'that of a process elsewhere', next: { place: 'there' }, waitsMs: 16_000 },
    { title: 'that of a process elsewhere, ahead', next: { place: 'there', wallMs: hour }, waitsMs: 16_000 },
    { title: 'that of a process elsewhere, behind', next: { place: 'there', wallMs: -hour }, waitsMs: 16_000 },
    { title: 'that of a process that could not be seen', former: { place: '' }, waitsMs: 16_000 },
    { title: 'where the successor has no place that can be read', next: { place: '' }, waitsMs: 16_000 },
    { title: 'where nobody can be seen', former: { place: '' }, next: { place: '' }, waitsMs: 16_000 },
    {
      title: 'of a program that has renewed since, and kept the annotation',
      edit: (leases) => edited(leases, { renewTime: '2026-01-01T00:00:00.000001Z' }),
      waitsMs: 16_000,
    },
    { title: 'without the annotation', edit: (leases) => edited(leases, {}, () => undefined), waitsMs: 16_000 },
    { title: 'with a damaged annotation', edit: (leases) => edited(leases, {}, () => '{'), waitsMs: 16_000 },
    { title: 'with an empty annotation', edit: (leases) => edited(leases, {}, () => 'null'), waitsMs: 16_000 },
    {
      title: 'with an annotation of another form',
      edit: (leases) => edited(leases, {}, (text = '') => text.replace(/"process":"[^"]*"/, '"process":1')),
      waitsMs: 16_000,
    },
    { title: 'whose holder was cleared by hand', edit: (leases) => edited(leases, { holderIdentity: '' }), waitsMs: 0 },
    { title: 'that was deleted meanwhile', edit: (leases) => leases.remove(), waitsMs: 0 },
    {
      title: 'for a longer duration set by hand',
      next: { place: 'there' },
      edit: (leases) => edited(leases, { leaseDurationSeconds: 20 }),
      waitsMs: 21_000,
    },
  ];
  for (const { title, former, next, lives, edit, waitsMs } of successors) {
    test(`${waitsMs === 0 ? 'takes it at once' : `waits ${waitsMs / 1000} s`}: ${title}`, async () => {
      await using leases = await LeaseServer.start();
      const first = namesake(leases, 'first', { ...former, ...(lives === 'paused' && { clock: new ManualClock() }) });
      await leases.clock.until(() => first.leads && leases.writesOf('first').length === 2);
      const place = former?.place ?? 'here';
      await leases.clock.until(() => leases.lease?.metadata.annotations?.[markKey]?.includes(`"${place}"`) === true);
      if (lives === 'cut off') leases.cutOff('first');
      else if (lives === undefined) await first.end();
      edit?.(leases);
      const second = namesake(leases, 'second', next);
      assert.equal(await leases.clock.until(() => second.leads), waitsMs);
    });
  }

  test('goes on with the record of its predecessor, as the original does', async () => {
    await using leases = await LeaseServer.start();
    leases.edit({ holderIdentity: '', leaseTransitions: 7 });
    const first = namesake(leases, 'first');
    await leases.clock.until(() => first.leads && leases.writesOf('first').length === 2);
    await first.end();
    const before = leases.spec;
    await leases.clock.advance(3000);
    const second = namesake(leases, 'second');
    await leases.clock.until(() => second.leads);
    const { acquireTime, leaseTransitions } = before ?? {};
    assert.deepEqual([leases.spec?.acquireTime, leases.spec?.leaseTransitions], [acquireTime, leaseTransitions]);
    assert.equal(leaseTransitions, 8);
  });

  test('takes it at once where the API server carries out a renewal of its predecessor late', async () => {
    await using leases = await LeaseServer.start();
    const first = namesake(leases, 'first');
    await leases.clock.until(() => first.leads && leases.writesOf('first').length === 2);
    leases.standStill();
    const sent = leases.server.requests.length;
    await leases.clock.until(() => leases.server.requests.length > sent);
    await first.end();
    const { renewTime } = leases.spec ?? {};
    const second = namesake(leases, 'second');
    await leases.clock.until(() => leases.server.requests.length > sent + 1);
    leases.goOn();
    const waitedMs = await leases.clock.until(() => second.leads);
    assert.equal(waitedMs, 0);
    assert.notEqual(leases.spec?.renewTime, renewTime);
  });
});

describe('processes with one identity', () => {
  for (const { title, places } of [
    { title: 'on one machine', places: ['here', 'here'] },
    { title: 'on two machines', places: ['here', 'there'] },
    { title: 'that cannot be seen', places: ['', ''] },
  ]) {
    for (const isFree of [false, true]) {
      test(`${title} elect one leader ${isFree ? 'of a free' : 'without a'} Lease, and the others follow it`, async () => {
        await using leases = await LeaseServer.start();
        if (isFree) leases.edit({ holderIdentity: '', leaseDurationSeconds: 1 });
        const waits: boolean[] = [];
        const both = places.map((place, index) =>
          leases
            .elector(`process-${index}`, { identity: 'a', place, onNamesake: ({ isAlive }) => waits.push(isAlive) })
            .run(),
        );
        await leases.clock.until(() => both.some(({ leads }) => leads));
        for (let i = 0; i < 120; i++) {
          await leases.clock.advance(500);
          assert.equal(both.filter(({ leads }) => leads).length, 1);
        }
        assert.deepEqual(waits, [false, true], 'what the standby reports');
        const [leader, standby] = both[0]?.leads ? both : both.toReversed();
        leader?.finish();
        const tookMs = await leases.clock.until(() => standby?.leads === true);
        assert.equal(tookMs, 0, 'the Lease was released');
      });
    }
  }
});

describe('a leader', () => {
  const edits: { title: string; edit: (leases: LeaseServer) => void; lost?: string }[] = [
    { title: 'without its annotation', edit: (leases) => edited(leases, {}, () => undefined) },
    { title: 'with a damaged annotation', edit: (leases) => edited(leases, {}, () => '') },
    { title: 'with another duration', edit: (leases) => edited(leases, { leaseDurationSeconds: 30 }) },
    { title: 'with other transitions', edit: (leases) => edited(leases, { leaseTransitions: 12 }) },
    {
      title: 'that another program has renewed with its identity',
      edit: (leases) => edited(leases, { renewTime: '2026-01-01T00:00:00.000001Z' }),
      lost: 'another process holds the lease with the same identity, a',
    },
    {
      title: 'with the annotation of another process',
      edit: (leases) => edited(leases, {}, (text = '') => text.replace(/"process":"[^"]*"/, '"process":"another"')),
    },
    {
      title: 'that a namesake has taken',
      edit: (leases) =>
        edited(leases, { renewTime: '2026-01-01T00:00:01.000000Z' }, () =>
          JSON.stringify({ renewTime: '2026-01-01T00:00:01.000000Z', process: 'another', place: 'here' }),
        ),
      lost: 'another process holds the lease with the same identity, a',
    },
    {
      title: 'that was cleared',
      edit: (leases) => edited(leases, { holderIdentity: '' }),
      lost: 'nobody holds the lease',
    },
  ];
  for (const { title, edit, lost } of edits) {
    test(`${lost === undefined ? 'keeps' : 'loses'} a Lease ${title}`, async () => {
      await using leases = await LeaseServer.start();
      const leader = namesake(leases, 'leader');
      await leases.clock.until(() => leader.leads && leases.writesOf('leader').length === 2);
      edit(leases);
      const after = leases.spec;
      await leases.clock.advance(2000);
      await leases.clock.until(() => !leader.leads || leases.spec?.renewTime !== after?.renewTime);
      assert.equal(leader.lostBecause?.message, lost);
      assert.equal(leader.leads, lost === undefined);
      if (lost !== undefined) assert.deepEqual(leases.spec, after, 'it writes nothing any more');
    });
  }

  test('does not release the Lease of a namesake', async () => {
    await using leases = await LeaseServer.start();
    const leader = leases.elector('leader', { identity: 'a', place: 'here' }).run();
    await leases.clock.until(() => leader.leads && leases.writesOf('leader').length === 2);
    edited(leases, { renewTime: '2026-01-01T00:00:00.000001Z' });
    leader.finish();
    await leases.clock.until(() => leader.outcome !== undefined);
    assert.equal(leases.spec?.holderIdentity, 'a');
  });
});
