/** Records that an earlier process has left, or one that works beside this one. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { untilAborted } from '../../../src/base/abort.ts';
import { ForeignIntentError, noRecords } from '../../../src/provision/intent-journal/intent-journal.ts';
import type { MemoryJournal } from './memory-journal.ts';
import { annotation, resource } from './rig.ts';
import { lateMs, leftRecord, maxCallMs, recoveryScene } from './recovery-scene.ts';
import { unclear } from './scripted-backend.ts';
import { ScriptedPermit } from './scripted-permit.ts';

describe('a record that is found at the start', () => {
  test('is fulfilled as it was planned while its claim wants the volume', async () => {
    const plan = (uid: string) => ({ name: `pvc-${uid}`, parameters: { of: 'before' } });
    const scene = await recoveryScene({
      class: { parameters: { of: 'after' } },
      found: (uid) => [{ record: leftRecord(uid, { plan: plan(uid) }), owner: 'own' }],
    });
    await using rig = scene.rig;
    const { backend, seen, closedInTime, name, uid } = scene;
    rig.startOnly();
    await rig.until('the volume', () => rig.volume(name));
    await closedInTime();
    assert.deepEqual(backend.plans, []);
    assert.deepEqual(backend.fulfils, [{ plan: plan(uid), mayExist: true }]);
    assert.equal(seen.replayed, 1);
    assert.ok(rig.log.some(({ message }) => message.startsWith('Found the record of a volume')));
  });

  test('keeps the storage of its volume, and is kept, until no call of the earlier process can make it again', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own' }] });
    await using rig = scene.rig;
    const { backend, clock, journal, name, handle } = scene;
    rig.startOnly();
    await rig.until('the volume', () => rig.volume(name));
    rig.releaseVolume(name);
    rig.deleteClaim('a');
    await rig.cached();
    await clock.advance(maxCallMs - 1);
    await rig.settle();
    assert.deepEqual(backend.deleted, []);
    assert.equal(journal.records.size, 1);
    const [wait] = await rig.until('the event', () => {
      const waits = rig.events.filter(({ reason }) => reason === 'VolumeDeletionWaiting');
      return waits.length > 0 && waits;
    });
    assert.equal(wait?.count, 1);
    assert.match(wait.message, /is deleted after 20\d\d-.*Z: until then an earlier call may still/);
    await scene.closedInTime();
    await rig.until('the storage to be deleted', () => backend.deleted.length > 0);
    assert.deepEqual(backend.deleted, [handle]);
  });

  for (const [timeoutS, keptS] of [
    [30, 55],
    [60, 60],
    [1200, 60],
  ] as const) {
    test(`of a process that may be alive keeps the storage for ${keptS} s once the volume is saved, with a timeout of ${timeoutS} s`, async () => {
      const scene = await recoveryScene({
        found: (uid) => [{ record: leftRecord(uid), owner: 'foreign' }],
        rig: { controller: { maxCallMs: timeoutS * 1000 } },
      });
      await using rig = scene.rig;
      const { backend, clock, name, handle } = scene;
      rig.startOnly();
      await rig.until('the volume', () => rig.volume(name));
      rig.releaseVolume(name);
      rig.deleteClaim('a');
      await clock.advance(keptS * 1000 - 1);
      await rig.settle();
      assert.deepEqual(backend.deleted, []);
      await scene.passUntil('the storage to be deleted', () => backend.deleted.length > 0);
      assert.deepEqual(backend.deleted, [handle]);
    });
  }

  test('is closed before the volume that was saved is deleted with its claim: nothing is made again', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own' }] });
    await using rig = scene.rig;
    const { backend, clock, name, handle, uid } = scene;
    backend.make(name);
    const claimRef = { namespace: 'ns', name: 'a', uid };
    rig.addVolume(name, 'Released', { spec: { csi: { driver: 'drv', volumeHandle: handle }, claimRef } });
    rig.deleteClaim('a');
    await rig.start();
    await scene.passUntil('the storage to be deleted', () => backend.deleted.length > 0);
    await scene.closed();
    await clock.advance(10 * lateMs);
    assert.deepEqual(backend.deleted, [handle]);
    assert.deepEqual(backend.revokes, [], 'no second revoke follows a reclaim');
    assert.equal(backend.storage.size, 0);
  });

  test('keeps the name it was given, whatever volumes are named now', async () => {
    const volume = (uid: string) => ({ ...leftRecord(uid).volume, name: `old-${uid}` });
    const scene = await recoveryScene({
      found: (uid) => [
        { record: leftRecord(uid, { volume: volume(uid), plan: { name: `old-${uid}` } }), owner: 'own' },
      ],
    });
    await using rig = scene.rig;
    rig.startOnly();
    await rig.until('a volume', () => rig.volumes[0]);
    await scene.closedInTime();
    await rig.settle();
    assert.deepEqual(
      rig.volumes.map(({ metadata }) => metadata.name),
      [`old-${scene.uid}`],
    );
  });

  for (const timeoutS of [1, 40, 1200]) {
    const heldS = 1.5 * timeoutS;
    test(`of a claim that is gone is undone after ${heldS} s with a timeout of ${timeoutS} s, and deleted only once`, async () => {
      const scene = await recoveryScene({
        found: (uid) => [{ record: leftRecord(uid), owner: 'own' }],
        rig: { controller: { maxCallMs: timeoutS * 1000 } },
      });
      await using rig = scene.rig;
      const { backend, clock, journal, seen, handle, name } = scene;
      rig.deleteClaim();
      await rig.start();
      await clock.advance(heldS * 1000 - 1);
      await rig.settle();
      assert.deepEqual(backend.revokes, []);
      assert.equal(seen.waiting().get('earlier-call'), 1);
      backend.make(name); // by a call that lasts as long as one can
      await scene.undone();
      assert.deepEqual(backend.deleted, [handle]);
      assert.deepEqual(journal.writes, ['put revoke', 'put unclear', 'put delete', 'remove']);
      assert.equal(seen.revoked, 1);
      assert.equal(backend.storage.size, 0);
    });
  }

  test('of a claim that is gone is undone after what its record says, such as where the PersistentVolume may still be created', async () => {
    const scene = await recoveryScene({
      found: (uid) => [{ record: leftRecord(uid, { quietInMs: 65_000 }), owner: 'own' }],
      rig: { controller: { maxCallMs: 10_000 } },
    });
    await using rig = scene.rig;
    const { backend, clock, seen, handle } = scene;
    rig.deleteClaim();
    await rig.start();
    await clock.advance(65_000 - 1);
    assert.deepEqual(backend.revokes, []);
    assert.equal(seen.waiting().get('earlier-call'), 1);
    await scene.passUntil('the deletion', () => backend.deleted.length > 0);
    assert.deepEqual(backend.deleted, [handle]);
    await scene.undone();
  });

  test('of a deletion is brought to its end first, and then the claim gets another volume', async () => {
    const scene = await recoveryScene({
      found: (uid) => [{ record: leftRecord(uid, { phase: 'delete', handle: `handle-pvc-${uid}` }), owner: 'own' }],
    });
    await using rig = scene.rig;
    const { backend, clock, handle, name } = scene;
    backend.make(name);
    await rig.start();
    await clock.advance(maxCallMs - 1);
    assert.deepEqual(backend.deleted, []);
    assert.deepEqual(backend.fulfils, []);
    await clock.advance(1);
    await rig.until('another volume', () => rig.volume(name));
    assert.deepEqual(backend.deleted, [handle]);
    assert.deepEqual(backend.revokes[0]?.handle, handle);
    assert.equal(backend.fulfils.length, 1);
    assert.equal(rig.volume(name)?.spec.csi?.volumeHandle, `${handle}-2`);
  });

  test('of a volume that was saved is closed, and the volume stays', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own' }] });
    await using rig = scene.rig;
    const { backend, clock, closedInTime, name, handle, uid } = scene;
    const claimRef = { namespace: 'ns', name: 'a', uid };
    rig.addVolume(name, 'Bound', { spec: { csi: { driver: 'drv', volumeHandle: handle }, claimRef } });
    await rig.start();
    await closedInTime();
    await clock.advance(10 * maxCallMs);
    assert.deepEqual(backend.fulfils, []);
    assert.deepEqual(backend.deleted, []);
  });

  test('whose volume is bound to its claim, or was lost, is closed', async () => {
    for (const phase of ['Bound', 'Lost']) {
      const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own' }] });
      await using rig = scene.rig;
      const claim = rig.changeClaim('a', {}, { volumeName: scene.name });
      rig.api.updateStatus(resource.claims, { ...structuredClone(claim), status: { phase } });
      await rig.start();
      await scene.closedInTime();
      await scene.clock.advance(10 * maxCallMs);
      assert.deepEqual(scene.backend.fulfils, [], phase);
      assert.deepEqual(scene.backend.deleted, [], phase);
    }
  });

  test('of a volume that is released already is kept until that is gone, and is fulfilled then', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own' }] });
    await using rig = scene.rig;
    const { backend, journal, name, uid } = scene;
    const claimRef = { namespace: 'ns', name: 'a', uid };
    rig.addVolume(name, 'Released', { spec: { claimRef, persistentVolumeReclaimPolicy: 'Retain' } });
    await rig.start();
    await scene.pass(2 * maxCallMs);
    assert.deepEqual(backend.fulfils, []);
    assert.equal(journal.records.size, 1);
    rig.api.delete(resource.volumes, { name });
    await scene.passUntil('the volume', () => rig.volume(name));
    assert.deepEqual(backend.plans, []);
  });

  test('of a volume whose name was taken is reported, not closed, when the claim is bound to the other one', async () => {
    const record = (uid: string) => leftRecord(uid, { nameTaken: true });
    const scene = await recoveryScene({ found: (uid) => [{ record: record(uid), owner: 'own' }] });
    await using rig = scene.rig;
    const claim = rig.changeClaim('a', {}, { volumeName: scene.name });
    rig.api.updateStatus(resource.claims, { ...structuredClone(claim), status: { phase: 'Bound' } });
    rig.startOnly();
    await rig.until('the report', () => scene.seen.reported.length > 0);
    assert.equal(scene.journal.records.get(scene.uid)?.phase, 'stuck');
  });

  test("of a claim that moved becomes stuck when the claim is bound to the other instance's volume", async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own' }] });
    await using rig = scene.rig;
    scene.backend.isElsewhere = ({ spec }) => spec.csi?.volumeHandle === 'of-another-node';
    const claimRef = { namespace: 'ns', name: 'a', uid: scene.uid };
    rig.addVolume(scene.name, 'Bound', { spec: { csi: { driver: 'drv', volumeHandle: 'of-another-node' }, claimRef } });
    const claim = rig.changeClaim('a', {}, { volumeName: scene.name });
    rig.api.updateStatus(resource.claims, { ...structuredClone(claim), status: { phase: 'Bound' } });
    rig.startOnly();
    await rig.until('the report', () => scene.seen.reported.length > 0);
    assert.equal(scene.journal.records.get(scene.uid)?.phase, 'stuck');
  });

  test('of a claim that moved becomes unproved when the claim is gone', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own' }] });
    await using rig = scene.rig;
    scene.backend.isElsewhere = ({ spec }) => spec.csi?.volumeHandle === 'of-another-node';
    const claimRef = { namespace: 'ns', name: 'a', uid: scene.uid };
    const spec = { csi: { driver: 'drv', volumeHandle: 'of-another-node' }, claimRef };
    rig.addVolume(scene.name, 'Bound', { spec: { ...spec, persistentVolumeReclaimPolicy: 'Retain' } });
    rig.deleteClaim('a');
    rig.startOnly();
    await scene.passUntil('the report', () => scene.seen.reported.length > 0);
    assert.equal(scene.journal.records.get(scene.uid)?.reason, 'unproved');
    assert.deepEqual(scene.backend.deleted, []);
  });

  test('with a volume of the name that is for another claim is not closed silently', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own' }] });
    await using rig = scene.rig;
    rig.addVolume(scene.name, 'Bound', { spec: { claimRef: { namespace: 'ns', name: 'b', uid: 'other' } } });
    await rig.start();
    await rig.settle();
    assert.deepEqual(scene.seen.reported, ['undecidable']);
    assert.deepEqual(scene.backend.fulfils, []);
    assert.equal(scene.seen.open.stuck, 1);
  });

  test('says how many are open and how old the oldest is', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own' }] });
    await using rig = scene.rig;
    scene.backend.otherwiseFulfil = unclear();
    await rig.start();
    assert.deepEqual(scene.seen.open, { ...noRecords(), unclear: 1 });
    assert.equal(scene.seen.oldestMs(), Date.parse('2025-12-31T23:59:00.000Z'));
  });
});

describe('a record that must only be reported', () => {
  const reportOnly = 'the Lease was restored';

  test('deletes nothing', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own', reportOnly }] });
    await using rig = scene.rig;
    const { backend, clock, seen, name, journal } = scene;
    backend.make(name);
    rig.deleteClaim();
    await rig.start();
    await clock.advance(20 * maxCallMs);
    await rig.until('the report', () => seen.reported.length > 0);
    assert.deepEqual(seen.reported, ['restored']);
    assert.deepEqual(backend.revokes, []);
    assert.equal(backend.storage.size, 1);
    assert.equal(journal.records.size, 1);
    assert.equal(rig.log.filter(({ message }) => message.includes('needs an operator')).length, 1);
  });

  for (const since of ['', '0']) {
    test(`without a version from which on the history is known, deletes nothing either, and can be discarded: ${JSON.stringify(since)}`, async () => {
      const record = (uid: string) => leftRecord(uid, { phase: 'delete', handle: `handle-pvc-${uid}`, since });
      const scene = await recoveryScene({ found: (uid) => [{ record: record(uid), owner: 'own' }] });
      await using rig = scene.rig;
      const { backend, clock, seen, journal, uid, handle } = scene;
      rig.deleteClaim();
      await rig.start();
      await clock.advance(2 * maxCallMs);
      await rig.until('the report', () => seen.reported.length > 0);
      assert.deepEqual(seen.reported, ['unproved']);
      assert.deepEqual(backend.revokes, []);
      assert.deepEqual(backend.released.length, 1, 'its source is free');
      const { phase, reason, problem, handle: kept } = journal.records.get(uid) ?? {};
      assert.deepEqual([phase, reason, kept], ['stuck', 'unproved', handle]);
      assert.match(problem ?? '', /not known since when/);
      assert.equal(rig.log.filter(({ message }) => message.startsWith('A volume may be kept on purpose')).length, 1);
      await clock.advance(20 * maxCallMs);
      assert.deepEqual(seen.reported, ['unproved'], 'once');
      journal.discard(uid);
      await rig.until('the release', () => backend.released.length === 2);
      assert.deepEqual(seen.open, noRecords());
      await clock.advance(20 * maxCallMs);
      assert.deepEqual(backend.deleted, []);
    });
  }

  test('as its volume has a name of which the claim knows only a part, deletes nothing either', async () => {
    const record = (uid: string) => {
      const left = leftRecord(uid);
      return { ...left, volume: { ...left.volume, name: 'pvc-short' }, plan: { name: 'pvc-short' } };
    };
    const scene = await recoveryScene({ found: (uid) => [{ record: record(uid), owner: 'own' }] });
    await using rig = scene.rig;
    const { backend, clock, seen, journal, uid } = scene;
    rig.deleteClaim();
    await rig.start();
    await clock.advance(10 * lateMs);
    await rig.until('the report', () => seen.reported.length > 0);
    assert.equal(journal.records.get(uid)?.reason, 'unproved');
    assert.deepEqual(backend.revokes, []);
  });

  test('can be discarded, though what it held cannot be released', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own', reportOnly }] });
    await using rig = scene.rig;
    const { backend, journal, uid } = scene;
    backend.release = () => Promise.reject(new Error('the source is out of reach'));
    backend.otherwiseFulfil = unclear();
    await rig.start();
    journal.discard(uid);
    await rig.until('the line', () => rig.log.some(({ message }) => message === 'A discarded record was not released'));
    backend.otherwiseFulfil = (plan) => Promise.resolve(backend.make(plan.name));
    await scene.passUntil('the volume', () => rig.volume(scene.name));
  });

  test('is fulfilled all the same for a claim that wants it', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own', reportOnly }] });
    await using rig = scene.rig;
    rig.startOnly();
    await rig.until('the volume', () => rig.volume(scene.name));
    await scene.closedInTime();
  });

  test('is fulfilled for a claim that is taken elsewhere and comes back, and the claim says why it waits meanwhile', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own', reportOnly }] });
    await using rig = scene.rig;
    const { backend, seen, name } = scene;
    let isOurs = false;
    backend.shouldProvision = () => isOurs;
    await rig.start();
    await scene.passUntil('the report', () => seen.reported.length > 0);
    assert.deepEqual(seen.reported, ['restored']);
    await rig.until('the event', () => rig.events.some(({ message }) => message.endsWith(reportOnly)));
    isOurs = true;
    await scene.passUntil('the volume', () => rig.volume(name));
    assert.deepEqual(backend.deleted, []);
  });
});

test('a record that is discarded while its storage is about to be deleted stops that', async () => {
  const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own' }] });
  await using rig = scene.rig;
  const { backend, clock, journal, uid } = scene;
  rig.deleteClaim();
  await rig.start();
  const slow = rig.fault({
    match: { verb: 'list', resource: 'persistentvolumes' },
    action: { type: 'delay', ms: 200 },
  });
  await clock.advance(lateMs);
  await rig.until('the list', () => slow.hits === 1);
  journal.discard(uid);
  await rig.until('the release', () => backend.released.length > 0);
  await rig.stop();
  assert.deepEqual(backend.deleted, []);
});

for (const [who, close] of [
  ['an operator discards', (journal: MemoryJournal, uid: string) => journal.discard(uid)],
  [
    'another process takes from us',
    (journal: MemoryJournal, uid: string) => {
      journal.records.delete(uid);
      journal.listener.onGone(uid);
    },
  ],
] as const) {
  test(`a record that ${who} while its deletion is recorded stops that`, async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own' }] });
    await using rig = scene.rig;
    const { backend, journal, uid } = scene;
    journal.onPut = ({ phase }) => {
      if (phase === 'delete') close(journal, uid);
      return Promise.resolve();
    };
    rig.deleteClaim();
    await rig.start();
    await scene.passUntil('the deletion to be recorded', () => journal.writes.includes('put delete'));
    await scene.pass(maxCallMs);
    assert.deepEqual(backend.deleted, []);
  });
}

describe('a record of another process', () => {
  test('is taken over for a claim that wants its volume', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'foreign' }] });
    await using rig = scene.rig;
    rig.startOnly();
    await rig.until('the volume', () => rig.volume(scene.name));
    assert.deepEqual(scene.journal.writes.slice(0, 1), ['put create']);
    assert.equal(scene.backend.fulfils[0]?.mayExist, true);
  });

  test('is left to it where it deletes', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'foreign' }] });
    await using rig = scene.rig;
    const { journal, backend, name, uid } = scene;
    journal.onPut = () => Promise.reject(new ForeignIntentError('it is being deleted'));
    await rig.start();
    assert.deepEqual(backend.fulfils, []);
    await rig.until('an event', () =>
      rig.events.some(({ message }) => message === 'Waiting for another process: it is being deleted'),
    );
    journal.records.delete(uid);
    journal.onPut = () => Promise.resolve();
    journal.listener.onGone(uid);
    await rig.until('the volume', () => rig.volume(name));
    assert.equal(backend.plans.length, 1, 'planned anew');
  });

  test('of a claim that is gone is not touched before it is ours for long enough', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'foreign' }] });
    await using rig = scene.rig;
    const { journal, backend, clock, seen, uid, since, handle, undone } = scene;
    rig.deleteClaim();
    await rig.start();
    await clock.advance(10 * maxCallMs);
    assert.deepEqual(backend.revokes, []);
    assert.equal(seen.waiting().get('other-process'), 1);
    journal.listener.onFound({ record: leftRecord(uid, { since }), owner: 'own' });
    await rig.settle();
    await clock.advance(lateMs - 1);
    assert.deepEqual(backend.revokes, []);
    await undone();
    assert.deepEqual(backend.deleted, [handle]);
  });

  test('that was taken over is not undone before the last call of the other one must have ended', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'foreign' }] });
    await using rig = scene.rig;
    const { backend, clock, handle, undone } = scene;
    backend.otherwiseFulfil = unclear();
    await rig.start();
    assert.equal(backend.fulfils.length, 1);
    await clock.advance(2 * maxCallMs);
    rig.deleteClaim();
    await rig.settle();
    await clock.advance(maxCallMs - 1);
    assert.deepEqual(backend.revokes, []);
    await undone();
    assert.deepEqual(backend.deleted, [handle]);
  });

  for (const { title, isWanted } of [
    { title: 'has no storage made for it here any more', isWanted: true },
    { title: 'is not undone here any more', isWanted: false },
  ]) {
    test(`that was taken from us while this process was paused ${title}`, async () => {
      const permit = new ScriptedPermit();
      const scene = await recoveryScene({ rig: { controller: { permit } } });
      await using rig = scene.rig;
      const { backend, journal, uid, since } = scene;
      const taken = (): void => {
        journal.onPut = () => Promise.reject(new ForeignIntentError('it works on the volume'));
        journal.listener.onGone(uid);
        journal.listener.onFound({ record: leftRecord(uid, { since }), owner: 'foreign' });
      };
      backend.fulfilSteps.push(unclear());
      if (isWanted) {
        journal.onPut = () => {
          permit.lose(taken);
          return Promise.resolve();
        };
      }
      await rig.start();
      if (!isWanted) {
        permit.lose(taken);
        rig.deleteClaim();
      }
      await scene.passUntil('the end of the pause', () => permit.isValid);
      await scene.pass(2 * maxCallMs);
      assert.equal(backend.fulfils.length, isWanted ? 0 : 1);
      assert.deepEqual(backend.revokes, []);
    });
  }

  test('that was closed by it while our own call made storage is written again, and the storage is not forgotten', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, journal, uid, name } = scene;
    const call = Promise.withResolvers<undefined>();
    backend.fulfilSteps.push(async (plan) => {
      await call.promise;
      return backend.make(plan.name);
    });
    rig.startOnly();
    await rig.until('the call', () => backend.fulfils.length === 1);
    // it has taken the record over, and undone what there was for a claim that is gone
    rig.deleteClaim();
    journal.records.delete(uid);
    journal.listener.onGone(uid);
    await rig.until('the cache without the claim', () => rig.claimInCache('a') === undefined);
    call.resolve(undefined);
    await rig.until('the record', () => journal.records.has(uid));
    await scene.undone();
    assert.deepEqual([...backend.storage.keys()], [], `${name} is left behind`);
  });

  test('that was closed by it while our own call made storage, and may not be written any more, is an error with the handle', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, journal, uid, name, handle, seen } = scene;
    const call = Promise.withResolvers<undefined>();
    backend.fulfilSteps.push(async (plan) => {
      await call.promise;
      return backend.make(plan.name);
    });
    rig.startOnly();
    await rig.until('the call', () => backend.fulfils.length === 1);
    rig.deleteClaim();
    journal.records.delete(uid);
    journal.listener.onGone(uid);
    journal.onPut = () => Promise.reject(new Error('the lease was lost'));
    call.resolve(undefined);
    const isTold = ({ message }: { message: string }): boolean =>
      message === 'A volume may be left behind: its record was closed while it was created';
    await rig.until('the error', () => rig.log.some(isTold));
    const { level, fields } = rig.log.find(isTold)!;
    assert.equal(level, 'error');
    assert.match(JSON.stringify(fields), new RegExp(`"volume":"${name}".*"volumeHandle":"${handle}"`));
    assert.deepEqual(seen.reported, ['lost']);
    await scene.pass(2 * maxCallMs);
    assert.deepEqual([...journal.records.keys()], [], 'nothing is written');
    assert.deepEqual(backend.deleted, []);
    assert.equal(rig.volume(name), undefined);
  });

  for (const { title, volumes, fulfils } of [
    { title: 'with its volume saved, which no cache shows yet, leads to no second request', volumes: 1, fulfils: 0 },
    { title: 'without a volume leads to a request of our own', volumes: 0, fulfils: 1 },
  ]) {
    test(`that was closed by it ${title}`, async () => {
      const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'foreign' }] });
      await using rig = scene.rig;
      const { backend, journal, uid, name } = scene;
      journal.onPut = () => Promise.reject(new ForeignIntentError('it works on the volume'));
      await rig.start();
      journal.onPut = () => Promise.resolve();
      journal.records.delete(uid);
      const syncs = rig.limiter.syncs(uid).length;
      // both in one turn: the watch tells of the volume later. The claim is not bound yet
      if (volumes > 0) rig.addVolume(name, 'Pending', { spec: { claimRef: { namespace: 'ns', name: 'a', uid } } });
      journal.listener.onGone(uid);
      await rig.synced(uid, syncs + 1);
      await rig.settle();
      assert.equal(backend.fulfils.length, fulfils);
    });
  }

  test('that was opened and closed by it while ours was written leads to no request, as the claim has its volume', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, journal, uid, name } = scene;
    journal.onPut = () => {
      // it was quicker, which no cache shows yet: both watches are behind
      rig.fault({ match: { resource: 'persistentvolumes', watch: true }, action: { type: 'watchStall' } });
      rig.addVolume(name, 'Pending', { spec: { claimRef: { namespace: 'ns', name: 'a', uid } } });
      journal.listener.onFound({ record: leftRecord(uid), owner: 'foreign' });
      journal.listener.onGone(uid);
      return Promise.resolve();
    };
    rig.startOnly();
    await rig.until('the attempt', () => journal.writes.length > 0);
    await rig.settle();
    assert.deepEqual(backend.fulfils, []);
    assert.equal(rig.volumes.length, 1);
  });

  test('that was closed by it may have had a PersistentVolume: what is made afterwards is not deleted', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'foreign' }] });
    await using rig = scene.rig;
    const { backend, journal, uid, handle, name, seen } = scene;
    journal.onPut = () => Promise.reject(new ForeignIntentError('it works on the volume'));
    await rig.start();
    // it has saved the volume, and an administrator has kept the storage
    backend.make(name);
    journal.onPut = () => Promise.resolve();
    backend.fulfilSteps.push(unclear());
    journal.records.delete(uid);
    journal.listener.onGone(uid);
    await rig.until('an attempt', () => backend.fulfils.length === 1);
    rig.deleteClaim();
    await scene.passUntil('the report', () => seen.reported.length > 0 || backend.deleted.length > 0);
    assert.deepEqual(seen.reported, ['unproved']);
    assert.equal(backend.storage.get(name)?.handle, handle);
  });

  test('that was taken from us with the volume saved keeps the storage while our own call may make it again', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, clock, uid, name, handle } = scene;
    const call = Promise.withResolvers<never>();
    backend.fulfilSteps.push((_plan, { signal }) => untilAborted(call.promise, signal));
    rig.startOnly();
    await rig.until('the call', () => backend.fulfils.length === 1);
    // the other process, of whose work the journal says nothing yet
    backend.make(name);
    rig.addVolume(name, 'Released', { spec: { claimRef: { namespace: 'ns', name: 'a', uid } } });
    rig.deleteClaim();
    await rig.synced(name);
    assert.deepEqual(backend.deleted, []);
    await clock.advance(1000);
    await rig.synced(name, 2);
    assert.deepEqual(backend.deleted, []);
    await scene.passUntil('the event', () =>
      rig.events.some(({ message }) => message.includes('is deleted once a call has ended that may still be creating')),
    );
    assert.deepEqual(backend.deleted, []);
    call.reject(unclear());
    await scene.undone();
    await scene.passUntil('the storage to be deleted', () => backend.deleted.length > 0);
    assert.deepEqual(backend.deleted, [handle]);
    assert.equal(backend.storage.size, 0);
  });

  test('that has the name of another open one waits for it, and is only reported then', async () => {
    const scene = await recoveryScene({
      found: (uid) => {
        const [first, second] = [leftRecord(uid), leftRecord('gone')];
        const shared = { ...second, volume: { ...second.volume, name: first.volume.name }, plan: first.plan };
        return [
          { record: first, owner: 'own' },
          { record: shared, owner: 'own' },
        ];
      },
    });
    await using rig = scene.rig;
    const { backend, clock, name, journal, seen, passUntil } = scene;
    const { otherwiseFulfil } = backend;
    backend.otherwiseFulfil = unclear();
    await rig.start();
    backend.make(name);
    await clock.advance(2 * maxCallMs);
    await rig.settle();
    assert.deepEqual(backend.revokes, []);
    backend.otherwiseFulfil = otherwiseFulfil;
    await passUntil('the volume', () => rig.volume(name));
    await clock.advance(900_000);
    await rig.settle();
    assert.deepEqual(backend.deleted, []);
    assert.deepEqual(seen.reported, ['unproved']);
    assert.deepEqual([...journal.records.keys()], ['gone']);
  });
});

test('a journal that another process writes ends the run, abandons what is under way and deletes nothing', async () => {
  const scene = await recoveryScene();
  await using rig = scene.rig;
  const { backend, journal } = scene;
  const aborted = Promise.withResolvers<undefined>();
  backend.fulfilSteps.push(
    (_plan, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          aborted.resolve(undefined);
          reject(unclear());
        });
      }),
  );
  rig.startOnly();
  await rig.until('the attempt', () => backend.fulfils.length === 1);
  journal.listener.onFenced(new Error('another one leads'));
  const failure = await rig.failure();
  assert.equal((failure as Error).message, 'another one leads');
  await aborted.promise;
  assert.deepEqual(backend.deleted, []);
  assert.deepEqual(rig.volumes, []);
});

test('a claim whose annotation names nobody of us has its record undone', async () => {
  const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own' }] });
  await using rig = scene.rig;
  rig.changeClaim('a', { annotations: { [annotation.provisioner]: 'other' } });
  await rig.start();
  await scene.clock.advance(maxCallMs - 1);
  assert.deepEqual(scene.backend.revokes, []);
  await scene.undone();
  assert.deepEqual(scene.backend.deleted, [scene.handle]);
  assert.deepEqual(scene.backend.fulfils, []);
});
